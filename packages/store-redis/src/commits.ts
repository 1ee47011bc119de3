import { OutcomeUnknown, type PreparedCommit, type Verdict } from '@harel/store-base'
import type { Argument, Connection } from './client.js'
import { COMMITS } from './commit-script.js'
import { refusalOf } from './errors.js'
import type { Keys } from './keys.js'
import { addCommit } from './rows.js'

/** How many commits one script makes: while it runs, the server answers nobody. */
const MAX_COMMITS = 64
/** The largest sum of their sizes, unless a single one is larger. */
const MAX_SIZE = 1024 * 1024

/** What a script has answered for one commit, and whether it may have run twice. */
interface Answer {
  readonly answer: unknown
  readonly repeated: boolean
}

interface Waiting {
  readonly commit: PreparedCommit
  resolve(answer: Answer): void
  reject(error: unknown): void
}

/**
 * Commits of one turn of the event loop share a script, which is sent at the end of the turn: the server makes them
 * durable with one write to its disk. Nobody waits for company, and the failure of one is nothing to the others.
 */
export class Commits {
  readonly #connection: Connection
  readonly #keys: Keys
  readonly #traceMax: number
  #waiting: Waiting[] = []
  #size = 0

  constructor(connection: Connection, keys: Keys, traceMax: number) {
    this.#connection = connection
    this.#keys = keys
    this.#traceMax = traceMax
  }

  /** @param size of the commit: the length of its texts and the number of its writes */
  async add(commit: PreparedCommit, size: number): Promise<Verdict> {
    const { answer, repeated } = await new Promise<Answer>((resolve, reject) => {
      if (this.#waiting.length === MAX_COMMITS || this.#size + size > MAX_SIZE) this.send()
      if (this.#waiting.length === 0) process.nextTick(() => this.send())
      this.#waiting.push({ commit, resolve, reject })
      this.#size += size
    })
    if (!Array.isArray(answer)) return { applied: true, seqs: commit.emits.map((_, index) => Number(answer) + index) }
    const [found, isOwn] = answer as unknown[]
    const refusal = isOwn === undefined ? refusalOf(String(found)) : undefined
    if (repeated)
      throw new OutcomeUnknown('the connection broke, and the commit was refused when it was sent again', refusal)
    if (refusal !== undefined) throw refusal
    return { applied: false, found: found === '' ? null : Number(found), foreign: Number(isOwn) !== 1 }
  }

  /** Sends at once what is to be sent at the end of the turn. */
  send(): void {
    const group = this.#waiting
    this.#waiting = []
    this.#size = 0
    if (group.length > 0) void this.#run(group)
  }

  async #run(group: readonly Waiting[]): Promise<void> {
    const keys = [...this.#keys.shared]
    const args: Argument[] = [this.#traceMax]
    for (const { commit } of group) {
      this.#addKeys(keys, commit)
      addCommit(args, commit)
    }
    try {
      const { answer, repeated } = await this.#connection.write(COMMITS, keys, args)
      for (const [index, { resolve }] of group.entries()) resolve({ answer: (answer as unknown[])[index], repeated })
    } catch (error) {
      for (const { reject } of group) reject(error)
    }
  }

  /** Adds those of the keys of an execution that the commit has something for. */
  #addKeys(keys: string[], { id, processedEventId, timers, trace }: PreparedCommit): void {
    keys.push(this.#keys.execution(id))
    if (processedEventId !== undefined) keys.push(this.#keys.processed(id))
    if (timers.length > 0) keys.push(this.#keys.timerPaths(id))
    if (trace !== undefined) keys.push(this.#keys.trace(id), this.#keys.traceCounter(id))
  }
}
