import { createHash } from 'node:crypto'
import { CorruptRecord, OutcomeUnknown, StoreClosed, StoreError, StoreUnavailable } from '@harel/store-base'
import type { Cluster, Redis } from 'ioredis'
import { CORRUPT, WRONG_KEY } from './scripts.js'

export type Client = Redis | Cluster

type Value = string | number

const digests = new Map<string, string>()

function sha1(script: string): string {
  const known = digests.get(script)
  if (known !== undefined) return known
  const digest = createHash('sha1').update(script).digest('hex')
  digests.set(script, digest)
  return digest
}

/** An answer of the server: it has refused, and what was asked is not done. */
const isReply = (error: Error): boolean => error.name === 'ReplyError'

/** What a driver's error is to a caller. */
export function toStoreError(error: unknown, writes: boolean): unknown {
  if (error instanceof StoreError || !(error instanceof Error)) return error
  const { message } = error
  if (isReply(error)) {
    if (message.includes(CORRUPT)) return new CorruptRecord('the stored execution', 'its version cannot be found')
    if (message.includes(WRONG_KEY)) return new StoreUnavailable('a key of the store holds something else', error)
    return new StoreUnavailable(`Redis refused with ${/^[A-Z]+/.exec(message)?.[0] ?? 'an error'}`, error)
  }
  // The client was ended by its owner.
  if (message === 'Connection is closed.') return new StoreClosed()
  if (writes) return new OutcomeUnknown('the connection to Redis broke before the reply', error)
  return new StoreUnavailable('Redis cannot be reached', error)
}

/** Runs commands that only read. */
export async function reading<T>(command: Promise<T>): Promise<T> {
  try {
    return await command
  } catch (error) {
    throw toStoreError(error, false)
  }
}

/** Runs a script by its digest, and by its text where the server does not know it (any more). */
export async function runScript(
  client: Client,
  script: string,
  keys: readonly string[],
  args: readonly Value[],
): Promise<unknown> {
  try {
    return await client.evalsha(sha1(script), keys.length, ...keys, ...args)
  } catch (error) {
    if (!(error instanceof Error && error.message.startsWith('NOSCRIPT'))) throw toStoreError(error, true)
  }
  try {
    return await client.eval(script, keys.length, ...keys, ...args)
  } catch (error) {
    throw toStoreError(error, true)
  }
}
