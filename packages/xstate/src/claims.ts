import { type Host, newDraft } from './host.js'
import { SWEEP } from './reserved.js'
import { type Claim, isAhead, type Part, setState, stateOf } from './sweep-state.js'
import { update } from './update.js'

/** What this process is working on, as the others are told. */
export class Claims {
  readonly #host: Host
  #part: Claim | undefined
  /** Executions that are worked on for longer than others would wait. */
  readonly #busy = new Set<string>()
  #telling: NodeJS.Timeout | undefined

  constructor(host: Host) {
    this.#host = host
  }

  /** How long a claim holds, in seconds: short, because what a dead process has claimed waits for that long. */
  get #duration(): number {
    return Math.max(1, 2 * this.#host.settings.grace)
  }

  /** Whether a claim until then, of whatever process, is still to be respected. */
  holds(until: number, now: number): boolean {
    return isAhead(until, now, this.#duration)
  }

  /** Claims a part of the queues, from now on; that has still to be committed. */
  take(part: Part, now: number): Claim {
    this.#part = { owner: this.#host.id, until: now + this.#duration, ...part }
    return this.#part
  }

  /** Lets go of that part. */
  release(): void {
    this.#part = undefined
  }

  isBusy(executionId: string): boolean {
    return this.#busy.has(executionId)
  }

  /**
   * Works on an execution; if that takes so long that others would soon take it for orphaned, it tells them, and goes on
   * telling them until it is done.
   */
  async holding<T>(executionId: string, work: () => Promise<T>): Promise<T> {
    const timeout = setTimeout(
      () => {
        this.#busy.add(executionId)
        this.keepTelling()
      },
      (this.#host.settings.grace / 4) * 1000,
    )
    try {
      return await work()
    } finally {
      clearTimeout(timeout)
      this.#busy.delete(executionId)
    }
  }

  /**
   * Tells others every now and then what this process is still working on, for as long as there is anything: one commit
   * for all of it, however much it is.
   */
  keepTelling(): void {
    if (this.#telling !== undefined) return
    this.#telling = setTimeout(
      async () => {
        // What cannot be told now is told the next time.
        await this.#tell().catch(() => {})
        this.#telling = undefined
        if (this.#part !== undefined || this.#busy.size > 0) this.keepTelling()
      },
      Math.min(this.#duration / 3, (2 / 3) * this.#host.settings.grace) * 1000,
    )
    this.#telling.unref()
  }

  #tell(): Promise<void> {
    return update<void>(this.#host, SWEEP, undefined, ({ execution }) => {
      const own = this.#part
      if (execution === undefined || (own === undefined && this.#busy.size === 0)) return { result: undefined }
      const state = stateOf(execution)
      const now = this.#host.settings.clock()
      const until = now + this.#duration
      const claims = state.claims.filter(({ owner }) => owner !== this.#host.id)
      const others = Object.entries(state.busy).filter(([, end]) => this.holds(end, now))
      const busy = Object.fromEntries([...others, ...[...this.#busy].map((id) => [id, until] as const)])
      setState(execution, { ...state, claims: own === undefined ? claims : [...claims, { ...own, until }], busy })
      return { result: undefined, draft: newDraft() }
    })
  }
}
