export interface CoalescerOptions<Item, Result> {
  /** Writes a batch in one transaction and returns the results in its order, after the transaction was committed. */
  run(batch: readonly Item[]): Promise<readonly Result[]>
  /** Items of one key never share a batch, and are run in the order in which they came. */
  keyOf(item: Item): string
  sizeOf(item: Item): number
  /** Whether this error of `run` proves that nothing of the batch was written, so that its items may be run again. */
  mayReplay(error: unknown): boolean
  /** Default: its part of 256, of which each batch that may be under way has one. */
  maxItems?: number
  /** The largest sum of `sizeOf` in a batch, unless a single item is larger. Default: 4 MiB. */
  maxSize?: number
  /** How many batches may be under way at once. Default: 1. */
  inFlight?: number
}

interface Waiting<Item, Result> {
  readonly item: Item
  readonly key: string
  resolve(result: Result): void
  reject(error: unknown): void
}

/** How many items are under way at most, where nothing else is said. */
const MOST_UNDER_WAY = 256

/**
 * Group commit: what arrives while a batch is under way makes up the next one. An item that finds nothing under way is
 * run at once, together with those submitted in the same turn of the event loop; nobody waits for company.
 *
 * Batches are sorted by key, so that writers who lock rows in the order of a batch do not deadlock. When a batch fails
 * as a whole and may be replayed, its halves are run, and theirs, until the one bad item fails alone.
 */
export class Coalescer<Item, Result> {
  readonly #options: Required<CoalescerOptions<Item, Result>>
  #queue: Waiting<Item, Result>[] = []
  readonly #busyKeys = new Set<string>()
  #running = 0
  #scheduled = false
  #idle: (() => void)[] = []

  constructor(options: CoalescerOptions<Item, Result>) {
    const { inFlight = 1 } = options
    // Parts, because callers who all wait for one batch come back at once, and nobody would be left for the others.
    const maxItems = Math.ceil(MOST_UNDER_WAY / inFlight)
    this.#options = { maxItems, maxSize: 4 * 1024 * 1024, ...options, inFlight }
  }

  submit(item: Item): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.#queue.push({ item, key: this.#options.keyOf(item), resolve, reject })
      // Otherwise the end of a batch sees to it.
      if (this.#running < this.#options.inFlight) this.#schedule(queueMicrotask)
    })
  }

  /** Resolves when nothing is waiting or under way. */
  async drain(): Promise<void> {
    if (this.#queue.length === 0 && this.#running === 0) return
    await new Promise<void>((resolve) => this.#idle.push(resolve))
  }

  #schedule(soon: (run: () => void) => void): void {
    if (this.#scheduled) return
    this.#scheduled = true
    soon(() => {
      this.#scheduled = false
      while (this.#running < this.#options.inFlight) {
        const batch = this.#take()
        if (batch.length === 0) break
        this.#start(batch)
      }
    })
  }

  /** The oldest items that may run together: distinct keys, none of which is under way, in the order of the keys. */
  #take(): Waiting<Item, Result>[] {
    const { maxItems, maxSize, sizeOf } = this.#options
    const batch: Waiting<Item, Result>[] = []
    let left: Waiting<Item, Result>[] = []
    const keys = new Set<string>()
    let size = 0
    for (const [index, waiting] of this.#queue.entries()) {
      if (batch.length === maxItems) {
        left = left.concat(this.#queue.slice(index))
        break
      }
      const grown = size + sizeOf(waiting.item)
      if (keys.has(waiting.key) || this.#busyKeys.has(waiting.key) || (batch.length > 0 && grown > maxSize)) {
        left.push(waiting)
      } else {
        batch.push(waiting)
        size = grown
      }
      // Also the key of one that stays behind: a later item of that key must not overtake it.
      keys.add(waiting.key)
    }
    this.#queue = left
    return batch.sort((a, b) => (a.key < b.key ? -1 : 1))
  }

  #start(batch: readonly Waiting<Item, Result>[]): void {
    this.#running += 1
    for (const { key } of batch) this.#busyKeys.add(key)
    void this.#settle(batch).then(() => {
      this.#running -= 1
      for (const { key } of batch) this.#busyKeys.delete(key)
      if (this.#queue.length === 0 && this.#running === 0) {
        for (const resolve of this.#idle.splice(0)) resolve()
      }
      // After the callers have seen their results, so that their next items are in the batch, too: the first of several
      // who comes back would else have a batch to himself, and all others would wait for it.
      if (this.#queue.length > 0 || batch.length > 1) this.#schedule(setImmediate)
    })
  }

  async #settle(batch: readonly Waiting<Item, Result>[]): Promise<void> {
    try {
      const results = await this.#options.run(batch.map(({ item }) => item))
      for (const [index, { resolve }] of batch.entries()) resolve(results[index] as Result)
    } catch (error) {
      if (batch.length === 1 || !this.#options.mayReplay(error)) {
        for (const { reject } of batch) reject(error)
        return
      }
      const middle = batch.length >> 1
      await this.#settle(batch.slice(0, middle))
      await this.#settle(batch.slice(middle))
    }
  }
}
