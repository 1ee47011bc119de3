import { setTimeout as wait } from 'node:timers/promises'

/** Runs tasks with the same key one after the other, in the order in which they came; other keys do not wait. */
export class KeyedQueue {
  readonly #last = new Map<string, Promise<unknown>>()

  run<T>(key: string, task: () => Promise<T>): Promise<T> {
    const before = this.#last.get(key)
    const result = before === undefined ? task() : before.then(task, task)
    this.#last.set(key, result)
    const forget = () => {
      if (this.#last.get(key) === result) this.#last.delete(key)
    }
    result.then(forget, forget)
    return result
  }

  /** Until nothing runs and nothing waits. */
  async idle(): Promise<void> {
    while (this.#last.size > 0) await Promise.allSettled(this.#last.values())
  }
}

/** Which executions wait for which: an action holds its own while it waits for a step of another one. */
export class Waits {
  readonly #edges = new Set<{ readonly from: string; readonly to: string }>()

  /** Whether one of these is waited for, in the end, by whoever holds `id`. */
  leadTo(ids: readonly string[], id: string): boolean {
    const seen = new Set([id])
    for (const held of seen) {
      if (ids.includes(held)) return true
      for (const { from, to } of this.#edges) if (from === held) seen.add(to)
    }
    return false
  }

  /** Notes for as long as it takes that `from` waits for `to`. */
  async during<T>(from: string, to: string, work: () => Promise<T>): Promise<T> {
    const edge = { from, to }
    this.#edges.add(edge)
    try {
      return await work()
    } finally {
      this.#edges.delete(edge)
    }
  }
}

/** Runs at most `most` tasks at once; of those that wait, at most `room`, and the others are turned away. */
export class Pool {
  readonly #most: number
  readonly #room: number
  readonly #waiting: { task: () => Promise<void>; dropped: () => void }[] = []
  #running = 0
  #idle: (() => void)[] = []

  constructor(most: number, room: number) {
    this.#most = most
    this.#room = room
  }

  /**
   * Whether the task will be run. It must not reject.
   *
   * @param dropped  called if it waits and is forgotten
   */
  add(task: () => Promise<void>, dropped: () => void = () => {}): boolean {
    if (this.#running >= this.#most) {
      if (this.#waiting.length >= this.#room) return false
      this.#waiting.push({ task, dropped })
      return true
    }
    this.#running += 1
    void this.#work(task)
    return true
  }

  async #work(first: () => Promise<void>): Promise<void> {
    for (let task: typeof first | undefined = first; task !== undefined; task = this.#waiting.shift()?.task)
      await task()
    this.#running -= 1
    if (this.#running > 0) return
    for (const resolve of this.#idle.splice(0)) resolve()
  }

  /** Forgets what waits. */
  clear(): void {
    for (const { dropped } of this.#waiting.splice(0)) dropped()
  }

  get busy(): boolean {
    return this.#running > 0
  }

  /** Until nothing runs and nothing waits. */
  async idle(): Promise<void> {
    if (this.#running > 0) await new Promise<void>((resolve) => this.#idle.push(resolve))
  }
}

/** Until the work is done, or so many seconds have passed. */
export async function atMost(seconds: number, work: Promise<unknown>): Promise<void> {
  const done = new AbortController()
  await Promise.race([work.finally(() => done.abort()), pause(seconds, done.signal)])
}

/** Returns early, without an error, when the signal is aborted. */
export async function pause(seconds: number, signal: AbortSignal, unref = false): Promise<void> {
  await wait(Math.max(0, seconds) * 1000, undefined, { signal, ref: !unref }).catch(() => {})
}

/** Calls what others have given us: neither what it throws nor what it rejects with goes any further. */
export function guarded(call: () => unknown, failed: (error: unknown) => void = () => {}): void {
  try {
    Promise.resolve(call()).catch(failed)
  } catch (error) {
    failed(error)
  }
}
