import { setTimeout as delay, setImmediate as turn } from 'node:timers/promises'
import { StoreUnavailable } from '@harel/store-base'

/** Waits for up to so many milliseconds, at random, so that those who meet do not meet again. */
export const pause = async (milliseconds: number): Promise<void> => {
  await delay(Math.random() * milliseconds)
}

/** Until a socket that has failed tells that it is closed: in the same turn of the event loop, after everything else. */
export async function untilClosed(): Promise<void> {
  await turn()
  await turn()
}

/** The longest pause between two attempts, in milliseconds. */
const LONGEST = 50

/**
 * Repeats an attempt while it comes back as `busy`: somebody else holds what it needs. No connection is kept waiting
 * meanwhile, so that no other call waits behind it.
 *
 * @param what is held
 * @throws StoreUnavailable when it is still busy after so many milliseconds
 */
export async function untilFree<T>(milliseconds: number, what: string, attempt: () => Promise<T | 'busy'>): Promise<T> {
  const deadline = performance.now() + milliseconds
  for (let longest = 4; ; longest = Math.min(2 * longest, LONGEST)) {
    const result = await attempt()
    if (result !== 'busy') return result
    const left = deadline - performance.now()
    if (left <= 0) throw new StoreUnavailable(`another transaction has held ${what} for ${milliseconds} ms`)
    await pause(Math.min(longest, left))
  }
}
