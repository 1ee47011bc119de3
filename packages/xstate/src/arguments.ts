/** Checks of what a runner is called with. Each refuses with `InvalidArgument`. */
import {
  checkCount,
  checkFlag,
  checkKey,
  checkMembers,
  checkObject,
  encodeJson,
  InvalidArgument,
  type JsonObject,
  type JsonValue,
} from '@harel/store-base'
import { isFromOutside, OUTSIDE } from './events.js'
import { encodeValid, splitEvent } from './references.js'
import { isOwnEventId, RESERVED_PREFIX } from './reserved.js'

/** A promise of a store is none: whoever opens one has to wait for it. Nor is a synchronous one, which has no turns. */
export function checkStore(store: unknown): void {
  const isStore = typeof store === 'object' && store !== null && 'commit' in store && 'loadForEvent' in store
  if (isStore && Symbol.asyncDispose in store) return
  const isPromise = store instanceof Promise
  const shown = isStore ? 'a synchronous one' : isPromise ? 'a promise; was it to be awaited?' : undefined
  throw new InvalidArgument('store', store, 'an execution store; asyncStore() makes one of a synchronous one', shown)
}

/** What of the options of `create` is given, the input in its stored form. @throws NotSerializable */
export function checkCreate(options: unknown): { id?: string; priority?: number; input: JsonValue | undefined } {
  const { id, priority, input } = checkMembers('options', options ?? {}, ['id', 'priority', 'input'])
  const encoded = input === undefined ? undefined : encodeValid(input, 'input')
  return {
    ...(id !== undefined && { id: checkOwnId(id) }),
    ...(priority !== undefined && { priority: checkCount('options.priority', priority, 0, 4) }),
    input: encoded,
  }
}

function checkOwnId(id: unknown): string {
  const key = checkKey('options.id', id)
  if (!key.startsWith(RESERVED_PREFIX)) return key
  throw new InvalidArgument('options.id', id, `an id that does not begin with ${RESERVED_PREFIX}`)
}

/** An event from outside, its data in their stored form. @throws NotSerializable */
export function checkSend(id: unknown, event: unknown, options: unknown) {
  checkKey('id', id)
  const { eventId } = checkMembers('options', options, ['eventId'])
  const { type, data } = splitEvent(checkObject('event', event), 'event')
  if (typeof type !== 'string' || !type.isWellFormed() || !isFromOutside(type)) {
    throw new InvalidArgument('event.type', type, `a string without lone surrogates ${OUTSIDE}`)
  }
  const encoded = encodeValid(data, 'event') as JsonObject
  return { kind: type, data: encoded, ...(eventId !== undefined && { id: checkEventId(eventId) }) }
}

function checkEventId(eventId: unknown): string {
  const key = checkKey('options.eventId', eventId)
  if (!isOwnEventId(key)) return key
  throw new InvalidArgument('options.eventId', eventId, 'an id that begins neither with harel. nor with timeout:')
}

export function checkSignal(signal: unknown): AbortSignal | undefined {
  if (signal === undefined || signal instanceof AbortSignal) return signal
  throw new InvalidArgument('options.signal', signal, 'an AbortSignal')
}

/** A signal is an object without members of its own: given in the place of the options, it would be passed over. */
export function checkRun(options: unknown): AbortSignal | undefined {
  if (options instanceof AbortSignal) {
    throw new InvalidArgument('options', options, 'an object, { signal }', 'an AbortSignal')
  }
  return checkSignal(checkMembers('options', options, ['signal']).signal)
}

export function checkCancel(id: unknown, options: unknown): { id: string; reason?: string } {
  const { reason } = checkMembers('options', options, ['reason'])
  if (reason === undefined) return { id: checkKey('id', id) }
  if (typeof reason !== 'string') throw new InvalidArgument('options.reason', reason, 'a string')
  encodeJson(reason, 'options.reason')
  return { id: checkKey('id', id), reason }
}

export function checkRedrive(id: unknown, options: unknown): { id: string; skip: boolean } {
  const { skip = false } = checkMembers('options', options, ['skip'])
  return { id: checkKey('id', id), skip: checkFlag('options.skip', skip) }
}

export function checkListener(type: unknown, listener: unknown): void {
  if (typeof type !== 'string') throw new InvalidArgument('type', type, 'a string')
  if (typeof listener !== 'function') throw new InvalidArgument('listener', listener, 'a function')
}
