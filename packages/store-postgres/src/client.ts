import { OutcomeUnknown, SchemaMissing, StoreClosed, StoreError, StoreUnavailable } from '@harel/store-base'
import type { Sql, TransactionSql } from 'postgres'

/** A parameter: what is no text is written as one, so that no serializer of the caller's client sees it. */
export type Param = string | number | null

/** A row as the server sent it: each column as text, or null. */
export type Row = readonly (string | null)[]

const codeOf = (error: unknown): string =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : ''

/** The connection was never made, so nothing was sent. */
const unsent = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'CONNECT_TIMEOUT'])

/**
 * What a driver's error is to a caller. SQLSTATEs are those of the server, which has rolled back; where the connection
 * broke, a write may have been done.
 */
export function toStoreError(error: unknown, writes: boolean): unknown {
  if (error instanceof StoreError || !(error instanceof Error)) return error
  const code = codeOf(error)
  if (code === '42P01' || code === '42883' || code === '3F000') return new SchemaMissing([error.message])
  if (code === 'CONNECTION_ENDED') return new StoreClosed()
  const isSqlstate = /^[0-9A-Z]{5}$/.test(code) && error.name === 'PostgresError'
  if (!isSqlstate && !unsent.has(code) && writes) {
    return new OutcomeUnknown('the connection to PostgreSQL broke before the reply', error)
  }
  return new StoreUnavailable(`PostgreSQL failed${code === '' ? '' : ` with ${code}`}`, error)
}

/** The SQLSTATE behind a `StoreUnavailable`. */
export const sqlstateOf = (error: unknown): string => (error instanceof StoreUnavailable ? codeOf(error.cause) : '')

/** A pool, or the connection of a transaction. */
export class Client {
  readonly #sql: Sql | TransactionSql
  readonly #prepare: boolean

  constructor(sql: Sql | TransactionSql, prepare: boolean) {
    this.#sql = sql
    this.#prepare = prepare
  }

  /** @throws StoreUnavailable, SchemaMissing, StoreClosed */
  read(text: string, ...params: readonly Param[]): Promise<Row[]> {
    return this.#query(text, params, false)
  }

  /** @throws as `read`, and OutcomeUnknown when the connection broke before the reply */
  write(text: string, ...params: readonly Param[]): Promise<Row[]> {
    return this.#query(text, params, true)
  }

  /**
   * Rows are read from the bytes of the server: a caller's parsers and transforms do not reach them. For the same reason
   * parameters are texts, which are cast where they stand (`$1::text::int`).
   */
  async #query(text: string, params: readonly Param[], writes: boolean): Promise<Row[]> {
    try {
      const texts = params.map((param) => (typeof param === 'number' ? String(param) : param))
      const rows = await this.#sql.unsafe(text, texts, { prepare: this.#prepare }).raw()
      return rows.map((row) => row.map((cell: Buffer | null) => cell?.toString() ?? null))
    } catch (error) {
      throw toStoreError(error, writes)
    }
  }
}

/** The text of an array, as the server reads it. */
export function arrayText(values: readonly Param[]): string {
  const items = values.map((value) => {
    if (value === null) return 'NULL'
    return typeof value === 'number' ? String(value) : `"${value.replace(/["\\]/g, '\\$&')}"`
  })
  return `{${items.join(',')}}`
}
