interface Waiting {
  readonly count: number
  resolve(first: number): void
  reject(error: unknown): void
}

/**
 * Numbers from a counter in the database. Calls that wait while a request is under way share the next one; no number is
 * kept for later, because then the numbers of several processes would not be in the order of time.
 */
export class Sequence {
  readonly #reserve: (count: number) => Promise<number>
  #waiting: Waiting[] = []
  #running = false

  /** @param reserve adds to the counter and returns its new value: the last of the numbers taken */
  constructor(reserve: (count: number) => Promise<number>) {
    this.#reserve = reserve
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
    // Those who ask in the same turn of the event loop share the first request, too.
    await null
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
        for (const { reject } of batch) reject(error)
      }
    }
    this.#running = false
  }
}
