import { OutcomeUnknown, SchemaMissing, StoreUnavailable } from '@harel/store-base'
import { type Sql, type SqlExecutor, type SqlResult, wasNotSent } from '@harel/store-base/sql'
import type { Hosts } from './hosts.js'
import type { Settings } from './options.js'

interface StatementResult {
  values?: (string | number | null)[][]
  rows_affected?: number
  last_insert_id?: number
  error?: string
}

interface Reply {
  results?: StatementResult[]
  error?: string
}

/** Nobody has begun to carry out the request: another node may, or this one later. */
class NotTaken extends Error {
  constructor(cause: unknown) {
    super('no node of rqlite took the request', { cause })
  }
}

/** SQLite's error of one statement, which has undone the whole transaction. */
class StatementError extends Error {}

/**
 * What a node says when it has not begun: there is no leader, it is just starting, or it has found nobody at the
 * leader's address. All its other words (a leadership lost, a connection to the leader broken) leave open what became
 * of a write.
 */
const NOT_TAKEN = /^(leader not found|not leader|store not open)|: pool get: dial /

const pause = (milliseconds: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, milliseconds))

/** Requests to a cluster: to one node as long as it answers, then to the next. A follower forwards to the leader. */
export class RqliteExecutor implements SqlExecutor {
  readonly #hosts: Hosts
  readonly #settings: Settings
  #current = 0

  constructor(hosts: Hosts, settings: Settings) {
    this.#hosts = hosts
    this.#settings = settings
  }

  read(statements: readonly Sql[]): Promise<SqlResult[]> {
    return this.#request(`/db/query?level=${this.#settings.level}`, statements, false)
  }

  /** `request` and not `execute`, because reads stand among the writes. */
  write(statements: readonly Sql[]): Promise<SqlResult[]> {
    return this.#request('/db/request?transaction', statements, true)
  }

  reasonOf(error: unknown): 'refused' | undefined {
    return error instanceof StoreUnavailable && error.cause instanceof StatementError ? 'refused' : undefined
  }

  async close(): Promise<void> {}

  /** Tries the nodes in turn as long as it is certain that none has begun, or that it does not matter. */
  async #request(path: string, statements: readonly Sql[], writes: boolean): Promise<SqlResult[]> {
    if (statements.length === 0) return []
    const { urls } = this.#hosts
    const body = `[${statements.map(toJson).join()}]`
    const deadline = performance.now() + this.#settings.failoverTimeout
    for (let tries = 1; ; tries++) {
      const node = this.#current
      try {
        return readReply(await this.#send(`${urls[node]}${path}`, body), statements.length)
      } catch (error) {
        if (!(error instanceof NotTaken) && (writes || !(error instanceof OutcomeUnknown))) throw error
        if (performance.now() >= deadline) throw new StoreUnavailable('no node of rqlite took the request', error.cause)
        // Unless another request has moved on already.
        if (this.#current === node) this.#current = (node + 1) % urls.length
        // After a round of all nodes: an election takes about a second.
        if (tries % urls.length === 0) await pause(50 + Math.random() * 100)
      }
    }
  }

  async #send(url: string, body: string): Promise<{ status: number; text: string }> {
    const { authorization } = this.#hosts
    const headers = { 'content-type': 'application/json', ...(authorization && { authorization }) }
    const signal = AbortSignal.timeout(this.#settings.timeout)
    try {
      const response = await fetch(url, { method: 'POST', headers, body, signal })
      return { status: response.status, text: await response.text() }
    } catch (error) {
      throw wasNotSent(error) ? new NotTaken(error) : new OutcomeUnknown('rqlite did not reply', error)
    }
  }
}

/** A statement with its parameters. Beyond 2^53 a number without a point would be an integer, and not the same one. */
const toJson = ({ sql, params }: Sql): string =>
  `[${[sql, ...params]
    .map((value) => {
      const text = JSON.stringify(value)
      return Number.isInteger(value) && !Number.isSafeInteger(value) && !text.includes('e') ? `${text}.0` : text
    })
    .join()}]`

function readReply({ status, text }: { status: number; text: string }, statements: number): SqlResult[] {
  const { results = [], error = '' } = status === 200 ? parse(text) : { error: text }
  const cause = new Error(`status ${status}: ${error.slice(0, 200)}`)
  if (NOT_TAKEN.test(error)) throw new NotTaken(cause)
  if (status >= 400 && status < 500) {
    throw new StoreUnavailable(`rqlite refused the request with status ${status}`, cause)
  }
  const failed = results.find((result) => result.error !== undefined)?.error
  if (failed !== undefined) throw refusal(failed)
  if (results.length !== statements) throw new OutcomeUnknown('rqlite has not told what it did', cause)
  return results.map(({ values = [], rows_affected = 0, last_insert_id = 0 }) => ({
    rows: values,
    changes: rows_affected,
    lastId: last_insert_id,
  }))
}

/** What stands between us and the nodes may answer anything. */
function parse(text: string): Reply {
  try {
    return JSON.parse(text)
  } catch {
    return { error: text }
  }
}

function refusal(message: string): Error {
  const table = /no such table: (?:main\.)?(\w+)/.exec(message)?.[1]
  if (table !== undefined) return new SchemaMissing([table])
  return new StoreUnavailable('rqlite refused a statement', new StatementError(message))
}
