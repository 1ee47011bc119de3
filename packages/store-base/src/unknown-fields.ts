import type { JsonObject } from './records.js'

/** By the executions that were loaded with fields that nobody here knows, and by their contexts: those fields. */
const unknown = new WeakMap<object, JsonObject>()

/**
 * Remembers the members of a payload beside `known`, for another program has written them. They outlive commits of the
 * execution that was loaded, and of a copy that shares its context.
 */
export function noteUnknownFields(payload: JsonObject, known: ReadonlySet<string>, holders: readonly object[]): void {
  const names = Object.keys(payload).filter((name) => !known.has(name))
  if (names.length === 0) return
  const fields = Object.fromEntries(names.map((name) => [name, payload[name]])) as JsonObject
  for (const holder of holders) unknown.set(holder, fields)
}

/** What an execution was loaded with beside the fields that are known here. */
export const unknownFieldsOf = (...holders: readonly object[]): JsonObject | undefined => {
  for (const holder of holders) {
    const fields = unknown.get(holder)
    if (fields !== undefined) return fields
  }
  return undefined
}
