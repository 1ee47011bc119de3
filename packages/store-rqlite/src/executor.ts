import { InvalidArgument, OutcomeUnknown, SchemaMissing, StoreUnavailable } from '@harel/store-base'
import type { Sql, SqlExecutor, SqlResult } from '@harel/store-base/sql'
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

/** Where requests go, and with what. */
export interface Hosts {
  readonly urls: readonly string[]
  readonly authorization: string | undefined
}

/**
 * @param urls of the nodes, each with a user and password or without
 * @throws InvalidArgument, which shows no password
 */
export function parseHosts(urls: string | readonly string[], username?: string, password?: string): Hosts {
  const list = typeof urls === 'string' ? [urls] : urls
  if (!Array.isArray(list) || list.length === 0) throw new InvalidArgument('urls', urls, 'one or more URLs')
  let credentials = username === undefined ? undefined : `${username}:${password ?? ''}`
  const origins = list.map((text: unknown) => {
    const url = typeof text === 'string' && URL.canParse(text) ? new URL(text) : undefined
    if (url === undefined || !/^https?:$/.test(url.protocol)) {
      throw new InvalidArgument('urls', '(not shown)', 'URLs with http: or https:')
    }
    if (url.username !== '') {
      credentials ??= `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`
    }
    return `${url.origin}${url.pathname.replace(/\/$/, '')}`
  })
  const authorization = credentials && `Basic ${Buffer.from(credentials).toString('base64')}`
  return { urls: origins, authorization }
}

/** Another node may do it, or this one later: it has not begun. */
const REFUSED = /leader not found|not leader|no leader/i

/** The connection was never made, so nothing was sent. */
const isUnsent = (error: unknown): boolean =>
  /ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|UND_ERR_CONNECT_TIMEOUT/.test(causeCodes(error))

const causeCodes = (error: unknown): string => {
  if (!(error instanceof Error)) return ''
  const code = 'code' in error ? String(error.code) : ''
  return `${code} ${causeCodes(error.cause)} ${error instanceof AggregateError ? error.errors.map(causeCodes).join(' ') : ''}`
}

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

  async close(): Promise<void> {}

  /** Tries the nodes in turn as long as it is certain that none has taken the request. */
  async #request(path: string, statements: readonly Sql[], writes: boolean): Promise<SqlResult[]> {
    if (statements.length === 0) return []
    const body = JSON.stringify(statements.map(({ sql, params }) => [sql, ...params]))
    const deadline = performance.now() + this.#settings.failoverTimeout
    for (let tries = 1; ; tries++) {
      try {
        return await this.#send(path, body, writes)
      } catch (error) {
        if (!(error instanceof NotTaken)) throw error
        if (performance.now() >= deadline) throw new StoreUnavailable('no node of rqlite took the request', error.cause)
        this.#current = (this.#current + 1) % this.#hosts.urls.length
        // After each round of all nodes: an election takes about a second.
        if (tries % this.#hosts.urls.length === 0)
          await new Promise((resolve) => setTimeout(resolve, 50 + Math.random() * 100))
      }
    }
  }

  async #send(path: string, body: string, writes: boolean): Promise<SqlResult[]> {
    const { authorization } = this.#hosts
    const headers = { 'content-type': 'application/json', ...(authorization && { authorization }) }
    let status = 0
    let text: string
    try {
      const signal = AbortSignal.timeout(this.#settings.timeout)
      const response = await fetch(`${this.#hosts.urls[this.#current]}${path}`, {
        method: 'POST',
        headers,
        body,
        signal,
      })
      status = response.status
      text = await response.text()
    } catch (error) {
      if (isUnsent(error)) throw new NotTaken(error)
      // A read changes nothing, so it may be sent again.
      throw writes ? new OutcomeUnknown('the connection to rqlite broke before the reply', error) : new NotTaken(error)
    }
    return readReply(status, text, writes)
  }
}

/** Nobody has begun to carry out the request. */
class NotTaken extends Error {
  constructor(cause: unknown) {
    super('not taken', { cause })
  }
}

function readReply(status: number, text: string, writes: boolean): SqlResult[] {
  if (status !== 200) {
    const cause = new Error(`status ${status}: ${text.slice(0, 200)}`)
    if (status === 401 || status === 403)
      throw new StoreUnavailable(`rqlite refused the request with status ${status}`, cause)
    if (REFUSED.test(text) || (status === 503 && !writes)) throw new NotTaken(cause)
    if (writes && status >= 500) throw new OutcomeUnknown(`rqlite failed with status ${status}`, cause)
    throw new StoreUnavailable(`rqlite failed with status ${status}`, cause)
  }
  const { results = [], error } = JSON.parse(text) as Reply
  const failure = error ?? results.find((result) => result.error !== undefined)?.error
  if (failure !== undefined) throw toStoreError(failure, writes)
  return results.map(({ values = [], rows_affected = 0, last_insert_id = 0 }) => ({
    rows: values,
    changes: rows_affected,
    lastId: last_insert_id,
  }))
}

/** What an error in a reply is to a caller: those of SQLite undid the transaction, those of the cluster may not have. */
function toStoreError(message: string, writes: boolean): Error {
  const cause = new Error(message)
  const table = /no such table: (?:main\.)?(\w+)/.exec(message)?.[1]
  if (table !== undefined) return new SchemaMissing([table])
  if (REFUSED.test(message)) return new NotTaken(cause)
  if (writes && /leadership lost|timeout|timed out|raft/i.test(message)) {
    return new OutcomeUnknown('rqlite lost its leader before the reply', cause)
  }
  return new StoreUnavailable('rqlite refused a statement', cause)
}
