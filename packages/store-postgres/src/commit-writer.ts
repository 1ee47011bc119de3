import { Coalescer, CommitTooLarge, type PreparedCommit, type Verdict } from '@harel/store-base'
import { type Client, isLocked, isRefused, type Param, type Row } from './client.js'
import { commitAllParams, commitParams, lengthOf, type Outcome, outcomes, textsOf } from './commit.js'
import type { Functions } from './commit-functions.js'
import { untilFree } from './pause.js'

export interface CommitWriterOptions {
  readonly functions: Functions
  readonly traceMax: number
  readonly lockTimeout: number
  /** Write concurrent commits together. */
  readonly groupCommit: boolean
  /** Inside a transaction of the caller's: its settings say how long to wait for locks, and nothing is tried again. */
  readonly inTransaction: boolean
}

/** The most bytes of a commit. The server takes up to 1 GB at once, of which it makes copies. */
export const MAX_BYTES = 256 * 1024 * 1024

function checkSize(commit: PreparedCommit): void {
  if (3 * lengthOf(commit) <= MAX_BYTES) return
  const bytes = textsOf(commit).reduce((sum, text) => sum + Buffer.byteLength(text), 0)
  if (bytes > MAX_BYTES) throw new CommitTooLarge('bytes', bytes, MAX_BYTES)
}

/** How many transactions with commits may be under way at once: one is made while the other one is being written. */
const IN_FLIGHT = 2

/** Writes commits, together where they come together, and waits for executions that somebody else holds. */
export class CommitWriter {
  readonly #client: Client
  readonly #options: CommitWriterOptions
  readonly #batches: Coalescer<PreparedCommit, Outcome>
  readonly #underWay = new Set<Promise<Verdict>>()

  constructor(client: Client, options: CommitWriterOptions) {
    this.#client = client
    this.#options = options
    this.#batches = new Coalescer({
      run: (batch) => this.#writeAll(batch),
      keyOf: ({ id }) => id,
      sizeOf: lengthOf,
      mayReplay: isRefused,
      inFlight: IN_FLIGHT,
    })
  }

  /** @throws CommitTooLarge, StoreUnavailable, OutcomeUnknown, SchemaMissing, StoreClosed */
  async commit(commit: PreparedCommit): Promise<Verdict> {
    checkSize(commit)
    const written = this.#writeWhenFree(commit)
    this.#underWay.add(written)
    try {
      return await written
    } finally {
      this.#underWay.delete(written)
    }
  }

  /** Resolves when nothing is under way. */
  async drain(): Promise<void> {
    await Promise.allSettled(this.#underWay)
  }

  /** In company at first. One that finds its execution held goes on alone, so as to hold up nobody. */
  #writeWhenFree(commit: PreparedCommit): Promise<Verdict> {
    const { groupCommit, inTransaction, lockTimeout } = this.#options
    let inCompany = groupCommit && !inTransaction
    return untilFree(lockTimeout, 'the execution', async () => {
      try {
        if (!inCompany) return await this.#write(commit)
        inCompany = false
        return await this.#batches.submit(commit)
      } catch (error) {
        if (isLocked(error) && !inTransaction) return 'busy'
        throw error
      }
    })
  }

  async #writeAll(commits: readonly PreparedCommit[]): Promise<Outcome[]> {
    const [first] = commits
    if (first !== undefined && commits.length === 1) return [await this.#write(first)]
    const { functions, traceMax } = this.#options
    return outcomes(commits, await this.#call(functions.commitAll, commitAllParams(commits, traceMax)))
  }

  async #write(commit: PreparedCommit): Promise<Outcome> {
    const { functions, traceMax, inTransaction } = this.#options
    const settings = inTransaction ? ", p_lock_timeout => current_setting('lock_timeout')" : ''
    const row = await this.#call(functions.commit, commitParams(commit, traceMax), settings)
    return outcomes([commit], row)[0] ?? 'busy'
  }

  async #call(name: string, params: readonly Param[], settings = ''): Promise<Row | undefined> {
    const placeholders = params.map((_, index) => `$${index + 1}`)
    const [row] = await this.#client.write(`SELECT ${name}(${placeholders}${settings})`, ...params)
    return row
  }
}
