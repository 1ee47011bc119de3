/**
 * References to executions, as XState's machines hold them: actor refs that know the id of their execution. In the store
 * a reference is `{ "xstate$$type": 1, "id": <execution id> }`, and an `Error` is `{ "xstate$$type": "error", … }`,
 * of which name, message and code are kept.
 */
import { checkKey, encodeJson, type JsonValue, NotSerializable, StoreError } from '@harel/store-base'
import {
  type ActorLogic,
  type AnyActorRef,
  type AnyEventObject,
  createActor,
  type EventObject,
  type Snapshot,
} from 'xstate'
import { currentStep } from './effect.js'
import { ActorNotRestorable } from './errors.js'

const MARK = 'xstate$$type'
const REFERENCE = 1
const ERROR = 'error'

/** The execution that a reference stands for. */
const executionIds = new WeakMap<object, string>()

const stub = (snapshot: Snapshot<unknown>): ActorLogic<Snapshot<unknown>, EventObject> => ({
  transition: (same) => same,
  getInitialSnapshot: () => snapshot,
  getPersistedSnapshot: (same) => same,
})

/** What a machine sees of itself before its start. */
export const ACTIVE: Snapshot<unknown> = { status: 'active', output: undefined, error: undefined }

const isReference = (value: object): value is AnyActorRef => 'sessionId' in value && 'send' in value && 'ref' in value

/** Makes an actor stand for an execution: what is sent to it by `ref.send` in an action becomes an event in the commit. */
export function bind(ref: AnyActorRef, executionId: string): void {
  executionIds.set(ref, executionId)
  ref.send = (event: AnyEventObject) => currentStep().send(ref, event)
}

export const executionIdOf = (ref: object): string | undefined => executionIds.get(ref)

/** What the machine of an execution sees of an actor. Without a snapshot it is another's, whose state is not at hand. */
export function reference(
  executionId: string,
  options: { id?: string; parent?: AnyActorRef; systemId?: string; src?: string; snapshot?: Snapshot<unknown> } = {},
): AnyActorRef {
  const { snapshot, id = executionId, ...rest } = options
  const ref: AnyActorRef = createActor(stub(snapshot ?? ACTIVE), { id, ...rest })
  bind(ref, executionId)
  if (snapshot === undefined) ref.getSnapshot = () => unseen(executionId, id)
  return ref
}

/** XState asks for the snapshot of what it stops, for nothing but its children; whoever reads of it is refused. */
const unseen = (executionId: string, id: string): object =>
  new Proxy(
    {},
    {
      get: (_, member) => {
        if (typeof member === 'symbol') return undefined
        const reason = `has its ${member} in an execution of its own; have it sent in an event, or use onSnapshot`
        throw new ActorNotRestorable(executionId, id, reason)
      },
    },
  )

/** Lets what has a parent look up only actors of its own: that others are elsewhere must not look as if there were none. */
export function confine({ system }: AnyActorRef, executionId: string): void {
  const { get } = system
  system.get = (systemId) => {
    const found = get(systemId)
    if (found === undefined) {
      const reason = 'is no child of its own with this systemId; pass references in its input, or use execution(id)'
      throw new ActorNotRestorable(executionId, String(systemId), reason)
    }
    return found
  }
}

/**
 * A reference to any execution, for `sendTo`:
 * `sendTo(({ context }) => execution(context.warehouse), { type: 'RESERVE' })`.
 *
 * @throws InvalidArgument for what is no id
 */
export const execution = (id: string): AnyActorRef => reference(checkKey('the id of execution()', id))

const isCode = (code: unknown): code is string | number => typeof code === 'string' || Number.isFinite(code)

/** Deeper than any store takes. */
const DEPTH = 256

/**
 * The value with each reference and each error in its stored form. What is plain already is returned as it is, and so is
 * what is too deep or contains itself: the store refuses it, with its path.
 *
 * @throws NotSerializable for what throws when it is read, for a reference to an actor that is no execution, and for JSON
 *   that would be read as one: what comes from outside must not be able to name an execution
 */
export function encode(value: unknown, path: string, around = new Set<object>()): unknown {
  if (typeof value !== 'object' || value === null || around.size === DEPTH || around.has(value)) return value
  return reading(value, path, () => encodeObject(value, path, around))
}

function encodeObject(value: object, path: string, around: Set<object>): unknown {
  if (value instanceof Error) {
    const { name, message, code } = value as Error & { code?: unknown }
    return { xstate$$type: ERROR, name, message, ...(isCode(code) && { code }) }
  }
  if (isReference(value)) {
    const id = executionIdOf(value)
    if (id === undefined) throw new NotSerializable(path, 'refers to an actor that is no execution')
    return { xstate$$type: REFERENCE, id }
  }
  if (MARK in value) throw new NotSerializable(`${path}.${MARK}`, 'is a key that is kept for references to executions')
  around.add(value)
  const encoded = mapped(value, (member, key) =>
    encode(member, Array.isArray(value) ? `${path}[${key}]` : `${path}.${key}`, around),
  )
  around.delete(value)
  return encoded
}

/** Getters and proxies are code of others. @throws NotSerializable, with the path to the member that throws when it is read */
function reading<T>(value: object, path: string, read: () => T): T {
  try {
    return read()
  } catch (error) {
    if (error instanceof StoreError) throw error
    throw unreadable(value, path, error)
  }
}

function unreadable(value: object, path: string, cause: unknown): NotSerializable {
  let member = path
  try {
    for (const key of Object.keys(value)) {
      member = Array.isArray(value) ? `${path}[${key}]` : `${path}.${key}`
      void (value as { [key: string]: unknown })[key]
    }
  } catch (error) {
    return new NotSerializable(member, 'throws when it is read', error)
  }
  return new NotSerializable(path, 'throws when it is read', cause)
}

/** The event without its type. @throws NotSerializable */
export function splitEvent(event: object, path: string): { type: unknown; data: object } {
  const { type, ...data } = reading(event, path, () => ({ ...event }) as { type?: unknown })
  return { type, data }
}

/** As `encode`, for what every store takes then. @throws NotSerializable */
export function encodeValid(value: unknown, path: string): JsonValue {
  const encoded = encode(value, path)
  encodeJson(encoded, path)
  return encoded as JsonValue
}

/** The opposite of `encode`; `refer` gives the reference to an execution. */
export function decode(value: unknown, refer: (executionId: string) => AnyActorRef): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (MARK in value) {
    const { xstate$$type: type, id, name, message, code } = value as { [key: string]: unknown }
    if (type === REFERENCE && typeof id === 'string') return refer(id)
    if (type === ERROR) return Object.assign(new Error(String(message)), { name }, isCode(code) && { code })
  }
  return mapped(value, (member) => decode(member, refer))
}

/** The same container if no member changes, a copy otherwise. What is neither plain nor an array is left alone. */
function mapped(value: object, change: (member: unknown, key: string) => unknown): unknown {
  if (!Array.isArray(value)) {
    const prototype: unknown = Object.getPrototypeOf(value)
    if (prototype !== Object.prototype && prototype !== null) return value
  }
  let copy: { [key: string]: unknown } | unknown[] | undefined
  for (const key of Object.keys(value)) {
    const member = (value as { [key: string]: unknown })[key]
    const next = change(member, key)
    if (next === member) continue
    copy ??= Array.isArray(value) ? value.slice() : { ...value }
    ;(copy as { [key: string]: unknown })[key] = next
  }
  return copy ?? value
}
