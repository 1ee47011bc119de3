/** Checks of what a runner is called with. Each refuses with `InvalidArgument`. */
import {
  checkCount,
  checkKey,
  checkMembers,
  checkObject,
  InvalidArgument,
  type JsonObject,
  type JsonValue,
} from '@harel/store-base'
import { isFromOutside } from './events.js'
import { encodeValid } from './references.js'
import { isOwnEventId, RESERVED_PREFIX } from './reserved.js'

/** A promise of a store is none: whoever opens one has to wait for it. */
export function checkStore(store: unknown): void {
  const isStore = typeof store === 'object' && store !== null && 'commit' in store && 'loadForEvent' in store
  if (isStore) return
  const shown = store instanceof Promise ? 'a promise; was it to be awaited?' : undefined
  throw new InvalidArgument('store', store, 'an execution store', shown)
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
  const { type, ...data } = checkObject('event', event)
  if (typeof type !== 'string' || !isFromOutside(type)) {
    throw new InvalidArgument(
      'event.type',
      type,
      `a string that begins neither with xstate. nor with ${RESERVED_PREFIX}`,
    )
  }
  const encoded = encodeValid(data, 'event') as JsonObject
  return { kind: type, data: encoded, ...(eventId !== undefined && { id: checkEventId(eventId) }) }
}

function checkEventId(eventId: unknown): string {
  const key = checkKey('options.eventId', eventId)
  if (!isOwnEventId(key)) return key
  throw new InvalidArgument('options.eventId', eventId, 'an id that begins neither with harel. nor with timeout:')
}

export function checkListener(type: unknown, listener: unknown): void {
  if (typeof type !== 'string') throw new InvalidArgument('type', type, 'a string')
  if (typeof listener !== 'function') throw new InvalidArgument('listener', listener, 'a function')
}
