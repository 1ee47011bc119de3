import { setTimeout as sleep } from 'node:timers/promises'

/** Longer than any store may take to make up its mind. */
export const PATIENCE_MS = 60_000

/** Rejects when the call does not settle within so many milliseconds. */
export async function settled<T>(call: Promise<T>, what: string, milliseconds: number): Promise<T> {
  const abandon = new AbortController()
  const timeout = sleep(milliseconds, undefined, { signal: abandon.signal }).then(() => {
    throw new Error(`${what} has not settled within ${milliseconds / 1000} s`)
  })
  try {
    return await Promise.race([call, timeout])
  } finally {
    abandon.abort()
    timeout.catch(() => {})
  }
}
