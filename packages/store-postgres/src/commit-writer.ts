import { Coalescer, CommitTooLarge, type PreparedCommit, textLength, type Verdict } from '@harel/store-base'
import { type Client, isLocked, isRefused } from './client.js'
import { commitAllParams, commitParams, type Outcome, outcomes, textsOf } from './commit.js'
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
  if (3 * textLength(commit) <= MAX_BYTES) return
  const bytes = textsOf(commit).reduce((sum, text) => sum + Buffer.byteLength(text), 0)
  if (bytes > MAX_BYTES) throw new CommitTooLarge('bytes', bytes, MAX_BYTES)
}

/** How many transactions with commits may be under way at once: one is made here while the server writes the other one. */
const IN_FLIGHT = 2

/** Writes commits, together where they come together, and waits for executions that somebody else holds. */
export class CommitWriter {
  readonly #client: Client
  readonly #options: CommitWriterOptions
  readonly #callOne: (params: number) => string
  readonly #callAll: (params: number) => string
  readonly #batches: Coalescer<PreparedCommit, Outcome>
  readonly #underWay = new Set<Promise<Verdict>>()

  constructor(client: Client, options: CommitWriterOptions) {
    this.#client = client
    this.#options = options
    const { functions, inTransaction } = options
    this.#callOne = callsOf(
      functions.commit,
      inTransaction ? ", p_lock_timeout => current_setting('lock_timeout')" : '',
    )
    this.#callAll = callsOf(functions.commitAll)
    this.#batches = new Coalescer({
      run: (batch) => this.#writeAll(batch),
      keyOf: ({ id }) => id,
      sizeOf: textLength,
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
    const params = commitAllParams(commits, this.#options.traceMax)
    const [answer] = await this.#client.write(this.#callAll(params.length), ...params)
    return outcomes(commits, answer)
  }

  async #write(commit: PreparedCommit): Promise<Outcome> {
    const params = commitParams(commit, this.#options.traceMax)
    const [answer] = await this.#client.write(this.#callOne(params.length), ...params)
    return outcomes([commit], answer)[0] ?? 'busy'
  }
}

/** Statements that call a function, by the number of their parameters; made once. */
function callsOf(name: string, settings = ''): (params: number) => string {
  const texts = new Map<number, string>()
  return (params) => {
    let text = texts.get(params)
    if (text === undefined) {
      text = `SELECT ${name}(${Array.from({ length: params }, (_, index) => `$${index + 1}`)}${settings})`
      texts.set(params, text)
    }
    return text
  }
}
