import type { Execution, JsonObject } from './records.js'

interface Noted {
  readonly id: string
  readonly fields: JsonObject
}

/** By the executions that were loaded with fields that nobody here knows, and by their contexts: those fields. */
const noted = new WeakMap<object, Noted>()

/**
 * Remembers the members of a payload beside `known`, for another program has written them. They outlive commits of the
 * execution that was loaded, and of a copy of it that shares its context.
 */
export function noteUnknownFields(execution: Execution, payload: JsonObject, known: ReadonlySet<string>): void {
  const names = Object.keys(payload).filter((name) => !known.has(name))
  if (names.length === 0) return
  const fields = Object.fromEntries(names.map((name) => [name, payload[name]])) as JsonObject
  for (const holder of [execution, execution.context]) noted.set(holder, { id: execution.id, fields })
}

/** What an execution was loaded with beside the fields that are known here; its id and context, if they were read. */
export function unknownFieldsOf(
  execution: Execution,
  { id, context }: Pick<Execution, 'id' | 'context'> = execution,
): JsonObject | undefined {
  const found = noted.get(execution) ?? noted.get(context)
  // Another execution may have been given the same context.
  return found?.id === id ? found.fields : undefined
}

/** Lets the copy of an execution be committed with those fields, too. */
export function copyUnknownFields(from: Execution, to: Execution): void {
  const fields = unknownFieldsOf(from)
  if (fields !== undefined) noted.set(to, { id: to.id, fields })
}
