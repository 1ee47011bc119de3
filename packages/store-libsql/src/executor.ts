import {
  InvalidArgument,
  OutcomeUnknown,
  SchemaMissing,
  StoreClosed,
  StoreError,
  StoreUnavailable,
} from '@harel/store-base'
import type { Sql, SqlExecutor, SqlResult } from '@harel/store-base/sql'
import {
  type Client,
  type Config,
  createClient,
  type InStatement,
  type ResultSet,
  type Transaction,
} from '@libsql/client'

const codeOf = (error: unknown): string =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : ''

/** Whether another connection has the lock. Nothing was written. */
export const isBusy = (error: unknown): boolean =>
  error instanceof Error &&
  (/^SQLITE_(BUSY|LOCKED)/.test(codeOf(error)) || /database (table )?is locked/.test(error.message))

/** What a driver's error is to a caller. An answer of SQLite's says that the transaction was undone. */
export function toStoreError(error: unknown, writes: boolean): unknown {
  if (error instanceof StoreError || !(error instanceof Error)) return error
  const code = codeOf(error)
  const table = /no such table: (?:main\.)?(\w+)/.exec(error.message)?.[1]
  if (table !== undefined) return new SchemaMissing([table])
  if (code === 'CLIENT_CLOSED') return new StoreClosed()
  const answered = code.startsWith('SQLITE_') || code.startsWith('SQL_') || code === 'TRANSACTION_ACTIVE'
  if (writes && !answered && !/ECONNREFUSED|ENOTFOUND|EAI_AGAIN/.test(`${code} ${causeCode(error)}`)) {
    return new OutcomeUnknown('the connection to libSQL broke before the reply', error)
  }
  return new StoreUnavailable(`libSQL failed${code === '' ? '' : ` with ${code}`}`, error)
}

const causeCode = (error: Error): string =>
  codeOf(error.cause) || (error.cause instanceof Error ? codeOf(error.cause.cause) : '')

const toStatement = ({ sql, params }: Sql): InStatement => ({ sql, args: [...params] })

/** The caller's client may be set to give integers as bigints or texts; those read here are all safe as numbers. */
const toResult = ({ rows, columns, rowsAffected, lastInsertRowid }: ResultSet): SqlResult => ({
  rows: rows.map((row) =>
    columns.map((_, index) => {
      const value = row[index]
      return typeof value === 'bigint' ? Number(value) : ((value ?? null) as string | number | null)
    }),
  ),
  changes: rowsAffected,
  lastId: Number(lastInsertRowid ?? 0),
})

/** Runs `attempt`, and again at random intervals while another connection has the lock. */
async function whenFree<T>(attempt: () => Promise<T>, lockTimeout: number, writes: boolean): Promise<T> {
  const deadline = performance.now() + lockTimeout
  for (;;) {
    try {
      return await attempt()
    } catch (error) {
      if (!isBusy(error) || performance.now() >= deadline) throw toStoreError(error, writes)
      await new Promise((resolve) => setTimeout(resolve, 0.2 + Math.random() * 1.5))
    }
  }
}

/** A client for the configuration. @throws InvalidArgument, StoreUnavailable */
export function openClient(config: Config): Client {
  try {
    return createClient(config)
  } catch (error) {
    // The message may show the URL, and with it a token.
    if (codeOf(error).startsWith('URL_')) {
      throw new InvalidArgument('config.url', '(not shown)', `a URL of libSQL (${codeOf(error)})`)
    }
    throw toStoreError(error, false)
  }
}

/** Readers do not block the writer of a file, nor he them. */
export async function enableWal(client: Client): Promise<void> {
  await whenFree(() => client.execute('PRAGMA journal_mode = WAL'), 5000, false)
}

/** A transaction that has the write lock from its start. */
export const begin = (client: Client, lockTimeout: number): Promise<Transaction> =>
  whenFree(() => client.transaction('write'), lockTimeout, false)

/** Statements on a client. A list of writes is one transaction and, over the network, one round trip. */
export class LibsqlExecutor implements SqlExecutor {
  readonly #client: Client
  readonly #lockTimeout: number
  readonly #end: () => Promise<void>

  /** @param lockTimeout how long to wait for other writers, in milliseconds */
  constructor(client: Client, lockTimeout: number, end: () => Promise<void>) {
    this.#client = client
    this.#lockTimeout = lockTimeout
    this.#end = end
  }

  read(statements: readonly Sql[]): Promise<SqlResult[]> {
    return this.#send(statements, 'read')
  }

  write(statements: readonly Sql[]): Promise<SqlResult[]> {
    return this.#send(statements, 'write')
  }

  close(): Promise<void> {
    return this.#end()
  }

  async #send(statements: readonly Sql[], mode: 'read' | 'write'): Promise<SqlResult[]> {
    if (statements.length === 0) return []
    const batch = () => this.#client.batch(statements.map(toStatement), mode)
    return (await whenFree(batch, this.#lockTimeout, mode === 'write')).map(toResult)
  }
}

/** Statements inside a transaction of the caller's. */
export class TransactionExecutor implements SqlExecutor {
  readonly #transaction: Transaction
  #failure: { readonly error: unknown } | undefined

  constructor(transaction: Transaction) {
    this.#transaction = transaction
  }

  /** @throws what a write has failed with: a part of it may be written, so the transaction can only be rolled back */
  check(): void {
    if (this.#failure !== undefined) throw this.#failure.error
  }

  async read(statements: readonly Sql[]): Promise<SqlResult[]> {
    try {
      return (await this.#transaction.batch(statements.map(toStatement))).map(toResult)
    } catch (error) {
      throw toStoreError(error, false)
    }
  }

  async write(statements: readonly Sql[]): Promise<SqlResult[]> {
    try {
      return await this.read(statements)
    } catch (error) {
      this.#failure ??= { error }
      throw error
    }
  }

  async close(): Promise<void> {}
}
