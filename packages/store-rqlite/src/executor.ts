import { OutcomeUnknown, SchemaMissing, StoreUnavailable, TimeLimit } from '@harel/store-base'
import { type Sql, type SqlExecutor, type SqlResult, wasNotSent } from '@harel/store-base/sql'
import type { Host } from './hosts.js'
import { type Answer, post } from './http.js'
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
  readonly #hosts: readonly Host[]
  readonly #settings: Settings
  readonly #limit: TimeLimit
  readonly #underWay = new Set<Promise<unknown>>()
  #current = 0

  constructor(hosts: readonly Host[], settings: Settings) {
    this.#hosts = hosts
    this.#settings = settings
    this.#limit = new TimeLimit(settings.timeout)
  }

  read(statements: readonly Sql[]): Promise<SqlResult[]> {
    return this.#track(this.#request(`/db/query?level=${this.#settings.level}`, statements, false))
  }

  /** `request` and not `execute`, because reads stand among the writes. */
  write(statements: readonly Sql[]): Promise<SqlResult[]> {
    return this.#track(this.#request('/db/request?transaction', statements, true))
  }

  reasonOf(error: unknown): 'refused' | undefined {
    return error instanceof StoreUnavailable && error.cause instanceof StatementError ? 'refused' : undefined
  }

  async close(): Promise<void> {
    await Promise.allSettled(this.#underWay)
  }

  async #track<T>(request: Promise<T>): Promise<T> {
    this.#underWay.add(request)
    try {
      return await request
    } finally {
      this.#underWay.delete(request)
    }
  }

  /** Tries the nodes in turn as long as it is certain that none has begun, or that it does not matter. */
  async #request(path: string, statements: readonly Sql[], writes: boolean): Promise<SqlResult[]> {
    if (statements.length === 0) return []
    const nodes = this.#hosts.length
    const body = `[${statements.map(toJson).join()}]`
    const deadline = performance.now() + this.#settings.failoverTimeout
    for (let tries = 1; ; tries++) {
      const node = this.#current
      try {
        const answer = await this.#send(this.#hosts[node] as Host, path, body)
        if (!writes && this.#settings.level === 'linearizable') checkLinearizable(answer)
        return readReply(answer, statements.length)
      } catch (error) {
        const silent = error instanceof OutcomeUnknown
        if (!silent && !(error instanceof NotTaken)) throw error
        // Unless another request has moved on already.
        if (this.#current === node) this.#current = (node + 1) % nodes
        if (silent && writes) throw error
        if (tries >= nodes && performance.now() >= deadline) {
          throw new StoreUnavailable('no node of rqlite took the request', error.cause)
        }
        // After a round of all nodes: an election takes about a second.
        if (tries % nodes === 0) await pause(50 + Math.random() * 100)
      }
    }
  }

  async #send({ origin, base, authorization }: Host, path: string, body: string): Promise<Answer> {
    const headers = { 'content-type': 'application/json', ...(authorization && { authorization }) }
    const { answer, abandon } = post(origin, `${base}${path}`, headers, body)
    try {
      return await this.#limit.within(answer)
    } catch (error) {
      abandon()
      throw wasNotSent(error) ? new NotTaken(error) : new OutcomeUnknown('rqlite did not reply', error)
    }
  }
}

/** A parameter. Beyond 2^53 a number without a point would be an integer, and not the same one. */
const valueToJson = (value: Sql['params'][number]): string => {
  const text = JSON.stringify(value)
  return Number.isInteger(value) && !Number.isSafeInteger(value) && !text.includes('e') ? `${text}.0` : text
}

/** A statement with its parameters. */
const toJson = ({ sql, params }: Sql): string => `[${[JSON.stringify(sql), ...params.map(valueToJson)].join()}]`

/**
 * A node that does not know the level takes it for `weak`, which may show what was a while ago. It came with 8.32 and was
 * put right in the patches to it.
 *
 * @throws StoreUnavailable
 */
function checkLinearizable({ status, version }: Answer): void {
  const [, major, minor] = /^v?(\d+)(?:\.(\d+))?/.exec(version) ?? []
  if (status !== 200 || Number(major) * 1000 + Number(minor ?? 0) >= 8033) return
  const reason = `rqlite ${version} is not known to have linearizable reads, which came with 8.33; read at level 'strong'`
  throw new StoreUnavailable(reason, undefined, { retryable: false })
}

function readReply({ status, text }: Answer, statements: number): SqlResult[] {
  const { results = [], error = '' } = status === 200 ? parse(text) : { error: text }
  const cause = new Error(`status ${status}: ${error.slice(0, 200)}`)
  if (NOT_TAKEN.test(error) || (status >= 300 && status < 400)) throw new NotTaken(cause)
  if (status >= 400 && status < 500) {
    const retryable = status !== 401 && status !== 403
    throw new StoreUnavailable(`rqlite refused the request with status ${status}`, cause, { retryable })
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
    const { results, error = '' } = JSON.parse(text)
    const isReply = Array.isArray(results) && results.every((result) => typeof result === 'object' && result !== null)
    return { error: String(error), ...(isReply && { results }) }
  } catch {
    return { error: text }
  }
}

function refusal(message: string): Error {
  const table = /no such table: (?:main\.)?(\w+)/.exec(message)?.[1]
  if (table !== undefined) return new SchemaMissing([table])
  return new StoreUnavailable('rqlite refused a statement', new StatementError(message))
}
