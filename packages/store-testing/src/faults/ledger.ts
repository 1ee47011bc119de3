/** What a writer puts down before and after each commit; of JSON, so that a process can send it to another. */
export type Note =
  | { note: 'begun'; commit: string; execution: string }
  /** The commit was reported as done, with these seqs. */
  | { note: 'applied'; commit: string; seqs: readonly number[] }
  /** The store says that nothing was written; `found` is what a conflict has found. */
  | { note: 'refused'; commit: string; found?: number | null }
  /** The store says that it does not know. */
  | { note: 'unknown'; commit: string }
  /** An execution was purged after these commits. */
  | { note: 'purged'; execution: string; applied: readonly string[] }
  /** A promise was broken before everybody's eyes. */
  | { note: 'breach'; what: string }

type Verdict = Extract<Note, { note: 'applied' | 'refused' | 'unknown' }>

/** A commit that was tried. Without a verdict its writer was killed in the middle of it. */
export interface Attempt {
  readonly execution: string
  verdict?: Verdict
}

/** An execution from its first commit to its purge: the commits that it consists of, in their order. */
export interface Life {
  readonly execution: string
  readonly applied: readonly string[]
}

/** All that writers have been told. */
export class Ledger {
  readonly attempts = new Map<string, Attempt>()
  /** Ended by a purge. */
  readonly pastLives: Life[] = []
  readonly breaches: string[] = []
  readonly #progress: ((acknowledged: number) => void) | undefined
  #applied = 0
  #watchers: { applied: number; resolve: () => void }[] = []

  /** @param progress told after each commit that was reported as done how many there are */
  constructor(progress?: (acknowledged: number) => void) {
    this.#progress = progress
  }

  record(note: Note): void {
    switch (note.note) {
      case 'begun':
        this.attempts.set(note.commit, { execution: note.execution })
        return
      case 'purged':
        this.pastLives.push(note)
        return
      case 'breach':
        this.breaches.push(note.what)
        return
      case 'applied':
        this.#applied++
        this.#progress?.(this.#applied)
        for (const { applied, resolve } of this.#watchers) if (applied <= this.#applied) resolve()
    }
    const attempt = this.attempts.get(note.commit)
    if (attempt === undefined) throw new Error(`${note.commit} was never begun`)
    attempt.verdict = note
  }

  /** How many commits were reported as done. */
  get applied(): number {
    return this.#applied
  }

  /** Resolves when so many commits were reported as done. */
  reaches(applied: number): Promise<void> {
    if (applied <= this.#applied) return Promise.resolve()
    return new Promise((resolve) => this.#watchers.push({ applied, resolve }))
  }
}
