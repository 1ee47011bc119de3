import { Long } from 'mongodb'
import type { Collections } from './collections.js'
import { toStoreError } from './errors.js'

interface Waiting {
  readonly count: number
  resolve(first: number): void
  reject(error: unknown): void
}

/**
 * Numbers from a counter that Python harel takes its own from. Calls that wait while a request is under way share the next
 * one; no number is kept for later, because then numbers of several processes would not be in the order of time.
 */
export class Sequence {
  readonly #counters: Collections['counters']
  readonly #name: 'outbox' | 'spawn'
  #waiting: Waiting[] = []
  #running = false

  constructor(counters: Collections['counters'], name: 'outbox' | 'spawn') {
    this.#counters = counters
    this.#name = name
  }

  /** The first of `count` numbers that follow each other. */
  take(count: number): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ count, resolve, reject })
      if (!this.#running) void this.#run()
    })
  }

  async #run(): Promise<void> {
    this.#running = true
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0)
      const total = batch.reduce((sum, { count }) => sum + count, 0)
      try {
        let next = (await this.#reserve(total)) - total + 1
        for (const { count, resolve } of batch) {
          resolve(next)
          next += count
        }
      } catch (error) {
        // A number that was taken and not told is a gap, which is allowed: nothing was written.
        for (const { reject } of batch) reject(toStoreError(error, false))
      }
    }
    this.#running = false
  }

  async #reserve(count: number): Promise<number> {
    const counter = await this.#counters.findOneAndUpdate(
      { _id: this.#name },
      { $inc: { n: Long.fromNumber(count) } },
      { upsert: true, returnDocument: 'after' },
    )
    return Number(counter?.n)
  }
}
