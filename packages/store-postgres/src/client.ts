import { OutcomeUnknown, SchemaMissing, StoreClosed, StoreError, StoreUnavailable, TimeLimit } from '@harel/store-base'
import type { Sql, TransactionSql } from 'postgres'
import { pause } from './pause.js'
import { type Pool, type Source, within } from './pool.js'

/** A parameter: what is no text is written as one, so that no serializer of the caller's client sees it. */
export type Param = string | number | null

/** A row as the server sent it: each column as text, or null. */
export type Row = readonly (string | null)[]

/**
 * The pseudo-type `unknown`: the server takes the parameter for whatever the statement needs there, and the driver has
 * no serializer for it, whatever types its owner has set up.
 */
const UNKNOWN = 705

/** How long a statement is tried again that the server undoes for the sake of others, in milliseconds. */
const UNDONE_FOR = 5000

const codeOf = (error: unknown): string =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : ''

const isFromServer = (error: unknown): error is Error & { severity?: string; severity_local?: string } =>
  error instanceof Error && error.name === 'PostgresError'

/** The server has rolled back and goes on, with the same connection. */
const isRefusal = (error: unknown): boolean =>
  isFromServer(error) && (error.severity ?? error.severity_local) === 'ERROR'

/** Serialization failure or deadlock: the same may work at once. */
const isUndone = (error: unknown): boolean => isRefusal(error) && ['40001', '40P01'].includes(codeOf(error))

/**
 * The session takes no writes: its server has become a standby, or is kept from writing. Another session may lead to one
 * that does.
 */
export const isReadOnly = (error: unknown): boolean =>
  codeOf(error instanceof StoreUnavailable ? error.cause : error) === '25006'

/**
 * Refused for good, until somebody changes something: data, constraints, passwords, databases, rights, limits.
 * https://www.postgresql.org/docs/current/errcodes-appendix.html
 */
const isFinal = (code: string): boolean => /^(0A|22|23|28|3D|42|54)/.test(code)

/** The connection was never made, so nothing was sent. */
const UNSENT = ['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'CONNECT_TIMEOUT']
const isUnsent = (error: unknown): boolean => UNSENT.includes(codeOf(error))

/** An error of a connection, and not of what was said over it. */
export const isBroken = (error: unknown): boolean => error instanceof Error && 'errno' in error && !isUnsent(error)

/** Last words of a server or pooler that ends the connection, maybe between the commit and the reply. */
const isCutOff = (error: Error): boolean => !isRefusal(error) && /^(08|57P0[124])/.test(codeOf(error))

/**
 * What a driver's error is to a caller. After an error of the server nothing was written; after a broken connection
 * that is not known of a write.
 */
export function toStoreError(error: unknown, writes: boolean): unknown {
  if (error instanceof StoreError || !(error instanceof Error)) return error
  const code = codeOf(error)
  if (code === '42P01' || code === '42883' || code === '3F000') {
    return new SchemaMissing([error.message.replace(/ does not exist$/, '')])
  }
  if (code === 'CONNECTION_ENDED') return new StoreClosed()
  const nothingWritten = isFromServer(error) ? !isCutOff(error) : isUnsent(error)
  if (writes && !nothingWritten) {
    return new OutcomeUnknown('PostgreSQL has not replied, or the connection broke before it did', error)
  }
  const retryable = !isFromServer(error) || !isFinal(code)
  return new StoreUnavailable(`PostgreSQL failed${code === '' ? '' : ` with ${code}`}`, error, { retryable })
}

/** Whether the server has refused a statement, and would maybe not refuse a part of it. */
export const isRefused = (error: unknown): boolean =>
  error instanceof StoreUnavailable && isRefusal(error.cause) && !isReadOnly(error)

/** Whether the server has given up waiting for a lock. */
export const isLocked = (error: unknown): boolean => isRefused(error) && codeOf((error as Error).cause) === '55P03'

/** Sends statements, in a form that no option of the caller's client changes. */
export class Client {
  readonly #source: Source
  readonly #prepare: boolean
  readonly #retries: boolean
  readonly #limit: TimeLimit | undefined
  readonly #underWay = new Set<Promise<Row[]>>()

  private constructor(source: Source, prepare: boolean, retries: boolean, timeout?: number) {
    this.#source = source
    this.#prepare = prepare
    this.#retries = retries
    this.#limit = timeout === undefined ? undefined : new TimeLimit(timeout)
  }

  /**
   * @param prepare whether statements are prepared, once for each connection, where the pool allows it
   * @param timeout how long to wait for a reply, in milliseconds; absent: for ever
   */
  static of(pool: Pool, prepare: boolean, timeout?: number): Client {
    return new Client(pool, prepare && pool.prepare, true, timeout)
  }

  /** In a transaction nothing can be tried again: with a statement all that was done before it is undone. */
  static within(tx: TransactionSql, prepare: boolean): Client {
    return new Client(within(tx), prepare, false)
  }

  /** @throws StoreUnavailable, SchemaMissing, StoreClosed */
  read(text: string, ...params: readonly Param[]): Promise<Row[]> {
    return this.#query(text, params, false)
  }

  /** @throws as `read`, and OutcomeUnknown when the connection broke before the reply */
  write(text: string, ...params: readonly Param[]): Promise<Row[]> {
    return this.#query(text, params, true)
  }

  /** Resolves when no statement is under way. */
  async drain(): Promise<void> {
    while (this.#underWay.size > 0) await Promise.allSettled(this.#underWay)
  }

  async #query(text: string, params: readonly Param[], writes: boolean): Promise<Row[]> {
    const answer = this.#attempts(text, params, writes)
    this.#underWay.add(answer)
    try {
      return await answer
    } finally {
      this.#underWay.delete(answer)
    }
  }

  async #attempts(text: string, params: readonly Param[], writes: boolean): Promise<Row[]> {
    const deadline = performance.now() + (this.#retries ? UNDONE_FOR : 0)
    for (let longest = 2; ; longest = Math.min(2 * longest, 50)) {
      const sql = await this.#source.handle()
      try {
        return await this.#source.gate.pass(() => this.#attempt(sql, text, params))
      } catch (error) {
        if ((!isRefusal(error) && !isUnsent(error)) || isReadOnly(error)) this.#source.broke(sql)
        if (!isUndone(error) || performance.now() >= deadline) throw toStoreError(error, writes)
        await pause(longest)
      }
    }
  }

  #attempt(sql: Sql | TransactionSql, text: string, params: readonly Param[]): Promise<Row[]> {
    const answer = send(sql, text, params, this.#prepare)
    return this.#limit?.within(answer) ?? answer
  }
}

/** Rows are read from the bytes of the server, so that no parser or transform of the caller's client sees them. */
async function send(
  sql: Sql | TransactionSql,
  text: string,
  params: readonly Param[],
  prepare: boolean,
): Promise<Row[]> {
  const values = params.map((param) => sql.typed(param === null ? null : String(param), UNKNOWN))
  const rows = await sql.unsafe(text, values, { prepare }).raw()
  // What the driver says of a statement that it has lost with its connection, when it connects again.
  if (rows.command === null) throw new Error('the statement got no answer')
  // By position: a transform of whole rows may have made an object of the array.
  return rows.map((row) => rows.columns.map((_, column) => row[column]?.toString() ?? null))
}

/** The text of an array, as the server reads it. */
export function arrayText(values: readonly Param[]): string {
  const items = values.map((value) => {
    if (value === null) return 'NULL'
    return typeof value === 'number' ? String(value) : `"${value.replace(/["\\]/g, '\\$&')}"`
  })
  return `{${items.join(',')}}`
}
