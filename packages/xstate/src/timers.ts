import type { DueTimer } from '@harel/store-base'

/** How far ahead timers are held in memory, in seconds, and how many at the most. Later ones are found by sweeps. */
const HORIZON = 60
const MOST = 10_000

/** The longest that a timer of Node may run, in milliseconds, well below its limit. */
const LONGEST = 1_000_000

/**
 * The timers that this process has armed itself and that are due soon, so that they fire when they are due and no store
 * has to be asked for them. It may forget any of them: the store has them all.
 */
export class Alarms {
  readonly #clock: () => number
  readonly #fire: (timer: DueTimer) => void
  /** A binary heap, the earliest first. */
  readonly #heap: DueTimer[] = []
  #timeout: NodeJS.Timeout | undefined
  /** How many have started it and not stopped it. */
  #users = 0

  constructor(clock: () => number, fire: (timer: DueTimer) => void) {
    this.#clock = clock
    this.#fire = fire
  }

  /** While the clock has failed it is too early for anything; sweeps find what is due. */
  #now(): number {
    try {
      return this.#clock()
    } catch {
      return Number.NEGATIVE_INFINITY
    }
  }

  add(timer: DueTimer): void {
    if (this.#users === 0 || timer.fireAt > this.#now() + HORIZON || this.#heap.length >= MOST) return
    this.#heap.push(timer)
    this.#up(this.#heap.length - 1)
    if (this.#heap[0] === timer) this.#wind()
  }

  start(): void {
    this.#users += 1
  }

  stop(): void {
    this.#users -= 1
    if (this.#users === 0) this.clear()
  }

  clear(): void {
    this.#heap.length = 0
    clearTimeout(this.#timeout)
  }

  #wind(): void {
    clearTimeout(this.#timeout)
    const [first] = this.#heap
    if (first === undefined) return
    const milliseconds = Math.ceil((first.fireAt - this.#now()) * 1000)
    this.#timeout = setTimeout(() => this.#ring(), Math.min(LONGEST, Math.max(0, milliseconds)))
  }

  #ring(): void {
    const now = this.#now()
    for (let first = this.#heap[0]; first !== undefined && first.fireAt <= now; first = this.#heap[0]) {
      const last = this.#heap.pop()
      if (last !== undefined && last !== first) {
        this.#heap[0] = last
        this.#down(0)
      }
      this.#fire(first)
    }
    this.#wind()
  }

  #at(index: number): number {
    return this.#heap[index]?.fireAt ?? Number.POSITIVE_INFINITY
  }

  #swap(a: number, b: number): void {
    const [first, second] = [this.#heap[a], this.#heap[b]]
    if (first === undefined || second === undefined) return
    this.#heap[a] = second
    this.#heap[b] = first
  }

  #up(index: number): void {
    for (
      let at = index, above = (at - 1) >> 1;
      at > 0 && this.#at(at) < this.#at(above);
      at = above, above = (at - 1) >> 1
    ) {
      this.#swap(at, above)
    }
  }

  #down(index: number): void {
    for (let at = index; ; ) {
      const [left, right] = [2 * at + 1, 2 * at + 2]
      const below = this.#at(right) < this.#at(left) ? right : left
      if (this.#at(below) >= this.#at(at)) return
      this.#swap(at, below)
      at = below
    }
  }
}
