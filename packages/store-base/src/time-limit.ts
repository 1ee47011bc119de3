/** The longest delay of a timer, in milliseconds; a longer one would be none. */
export const MAX_DELAY = 2 ** 31 - 1

interface Waiting {
  /** When it has taken too long, by `performance.now`. */
  readonly end: number
  giveUp(): void
}

/**
 * How long to wait for one thing, of many. They have a timer in common, which goes on while nothing is waited for, because
 * to set and clear one for each takes longer than the rest of the waiting.
 */
export class TimeLimit {
  readonly #milliseconds: number
  /** The same time for all: whoever came first has to go first. */
  readonly #waiting = new Set<Waiting>()
  #timer: NodeJS.Timeout | undefined

  /** @param milliseconds at most `MAX_DELAY` */
  constructor(milliseconds: number) {
    this.#milliseconds = milliseconds
  }

  /**
   * What work results in, or a `TimeoutError` as of `AbortSignal.timeout` when that takes longer. Whatever becomes of it
   * after that, nobody looks at.
   */
  within<T>(work: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const waiting: Waiting = {
        end: performance.now() + this.#milliseconds,
        giveUp: () => reject(new DOMException(`no reply for ${this.#milliseconds} ms`, 'TimeoutError')),
      }
      this.#add(waiting)
      work.then(
        (result) => {
          this.#remove(waiting)
          resolve(result)
        },
        (error: unknown) => {
          this.#remove(waiting)
          reject(error)
        },
      )
    })
  }

  #add(waiting: Waiting): void {
    this.#waiting.add(waiting)
    if (this.#timer === undefined) this.#setTimer(this.#milliseconds)
    else if (this.#waiting.size === 1) this.#timer.ref()
  }

  #remove(waiting: Waiting): void {
    // It is not to keep a process alive that waits for nothing.
    if (this.#waiting.delete(waiting) && this.#waiting.size === 0) this.#timer?.unref()
  }

  #setTimer(milliseconds: number): void {
    this.#timer = setTimeout(() => this.#look(), milliseconds)
  }

  #look(): void {
    this.#timer = undefined
    const now = performance.now()
    for (const waiting of this.#waiting) {
      const left = waiting.end - now
      // A timer may be early by less than one.
      if (left >= 1) {
        this.#setTimer(left)
        break
      }
      this.#waiting.delete(waiting)
      waiting.giveUp()
    }
  }
}
