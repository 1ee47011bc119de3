import { CorruptRecord, InvalidArgument, type OutcomeUnknown, StoreError, StoreUnavailable } from '@harel/store-base'
import { NO_VERSION, WRONG_KEY } from './lua.js'

/** What the codes of Redis mean to somebody who has to put it right. */
const REASONS: Readonly<Record<string, string>> = {
  LOADING: 'it is still loading its data',
  MASTERDOWN: 'it is a replica that has lost its master',
  MISCONF: 'it cannot write to its disk',
  MOVED: 'the keys are on another node of the cluster; give the store a Cluster client',
  NOAUTH: 'it wants a password',
  NOPERM: 'the user lacks a right; the README lists those that are needed',
  NOREPLICAS: 'it has too few replicas',
  OOM: 'its memory is full',
  READONLY: 'it is a replica',
  WRONGPASS: 'the user or the password is wrong',
}

/** Nothing but somebody's doing changes these. */
const FINAL = new Set(['MOVED', 'NOAUTH', 'NOPERM', 'WRONGPASS'])

const isReply = (error: Error): boolean => error.name === 'ReplyError'

/** Whether a server does not know a script by its digest. */
export const isUnknownScript = (error: unknown): boolean =>
  error instanceof Error && isReply(error) && error.message.startsWith('NOSCRIPT')

/** Whether a server does not let the user ask. */
export const isForbidden = (error: unknown): boolean =>
  error instanceof Error && isReply(error) && error.message.startsWith('NOPERM')

/**
 * What an error of the driver is to a caller.
 *
 * @param Lost where it is not an answer of the server, so that nobody knows what has become of what was asked
 */
export function toStoreError(error: unknown, Lost: typeof StoreUnavailable | typeof OutcomeUnknown): unknown {
  if (error instanceof StoreError || !(error instanceof Error)) return error
  const cause = withoutCommand(error)
  if (!isReply(error)) return new Lost('the connection to Redis was lost or could not be made', cause)
  return refusalOf(error.message, cause)
}

/** What the text of an error of the server is to a caller. */
export function refusalOf(message: string, cause = new Error(message)): StoreError {
  const [, key, reason] = new RegExp(`${WRONG_KEY} (.*) (holds .*)$`, 's').exec(message) ?? []
  if (key !== undefined && reason !== undefined) return new CorruptRecord(`key ${JSON.stringify(key)}`, `it ${reason}`)
  if (message.includes(NO_VERSION)) return new CorruptRecord('the stored execution', 'its version cannot be found')
  const code = /^[A-Z]+/.exec(message)?.[0] ?? ''
  if (code === 'WRONGTYPE') return new CorruptRecord('a key of the store', 'it holds something else than it should')
  if (code === 'CROSSSLOT') return needsHashTag()
  const meaning = code in REASONS ? `: ${REASONS[code]}` : ''
  return new StoreUnavailable(`Redis refused with ${code}${meaning}`, cause, { retryable: !FINAL.has(code) })
}

export const needsHashTag = (): InvalidArgument =>
  new InvalidArgument('hashTag', false, 'true on a Redis Cluster, where all keys of a commit have to be in one slot')

/** The driver notes the command beside the error, with all its arguments: payloads, or a password. */
function withoutCommand(error: Error): Error {
  for (const each of [error, Reflect.get(error, 'lastNodeError')]) {
    if (each instanceof Error) Reflect.deleteProperty(each, 'command')
  }
  return error
}
