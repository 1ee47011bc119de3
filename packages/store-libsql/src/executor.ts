import { OutcomeUnknown, SchemaMissing, StoreClosed, StoreError, StoreUnavailable } from '@harel/store-base'
import { type Sql, type SqlExecutor, type SqlResult, wasNotSent } from '@harel/store-base/sql'
import type { InStatement, ResultSet, Transaction } from '@libsql/client'
import type { Connection } from './client.js'

/** Another connection has the lock, or an open transaction has the only connection. Nothing was done. */
const BUSY = /^(SQLITE_BUSY|SQLITE_LOCKED|TRANSACTION_BUSY|TRANSACTION_ACTIVE)/
/** Nothing of the transaction was written. After an error of the disk that is not certain. */
const REFUSED = /^(SQLITE_(?!IOERR)|SQL_|ARGS_|AUTH_|TRANSACTION_)/
/** sqld sends 10 MB at once. */
const TOO_LARGE = 'RESPONSE_TOO_LARGE'
/** How often a read is sent when no answer comes: a connection that was idle may have been cut long ago. */
const READ_ATTEMPTS = 3

const codeOf = (error: unknown): string =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : ''

/** Whether a server refused the request itself, by a status of HTTP's. */
function wasRefused(error: Error): boolean {
  const { status } = (error.cause ?? {}) as { status?: unknown }
  return typeof status === 'number' && status >= 400 && status < 500
}

/** What a driver's error is to a caller. */
export function toStoreError(error: unknown, writes: boolean): unknown {
  if (error instanceof StoreError || !(error instanceof Error)) return error
  const table = /no such table: (?:main\.)?(\w+)/.exec(error.message)?.[1]
  if (table !== undefined) return new SchemaMissing([table])
  const code = codeOf(error)
  if (code === 'CLIENT_CLOSED') return new StoreClosed()
  if (writes && !REFUSED.test(code) && !wasRefused(error) && !wasNotSent(error)) {
    return new OutcomeUnknown('libSQL has not told whether it has committed', error)
  }
  return new StoreUnavailable(`libSQL failed${code === '' ? '' : ` with ${code}`}`, error)
}

function reasonOf(error: unknown): ReturnType<SqlExecutor['reasonOf']> {
  const code = error instanceof StoreUnavailable ? codeOf(error.cause) : ''
  if (code === TOO_LARGE) return 'too large'
  return REFUSED.test(code) && !BUSY.test(code) ? 'refused' : undefined
}

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

const pause = (milliseconds: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, milliseconds))

/** Statements on a client. A list of writes is one transaction and, over the network, one round trip. */
export class LibsqlExecutor implements SqlExecutor {
  readonly reasonOf = reasonOf
  readonly #connection: Connection
  readonly #lockTimeout: number
  readonly #underWay = new Set<Promise<unknown>>()
  #lastWrite: Promise<unknown> = Promise.resolve()
  #closed = false

  /** @param lockTimeout how long to wait for other writers, in milliseconds */
  constructor(connection: Connection, lockTimeout: number) {
    this.#connection = connection
    this.#lockTimeout = lockTimeout
  }

  async read(statements: readonly Sql[], from: 'primary' | 'replica' = 'primary'): Promise<SqlResult[]> {
    const { client, replica } = this.#connection
    const results = await this.#run(async () => {
      if (from === 'primary' || replica === undefined) return client.batch(statements.map(toStatement), 'read')
      await replica.sync()
      const copied: ResultSet[] = []
      // One by one: the driver sends a batch to the primary.
      for (const statement of statements) copied.push(await replica.execute(toStatement(statement)))
      return copied
    })
    return results.map(toResult)
  }

  /** One at a time: there is one lock, and where many wait for it at once, sqld stands still for seconds. */
  async write(statements: readonly Sql[]): Promise<SqlResult[]> {
    if (statements.length === 0) return []
    const batch = statements.map(toStatement)
    const results = await this.#track(() => {
      const turn = this.#lastWrite.then(() => this.#attempt(() => this.#connection.client.batch(batch, 'write'), true))
      this.#lastWrite = turn.catch(() => {})
      return turn
    })
    return results.map(toResult)
  }

  /** Readers of a file do not block its writer, nor he them. */
  async enableWal(): Promise<void> {
    await this.#run(() => this.#connection.client.execute('PRAGMA journal_mode = WAL'))
  }

  /** A transaction of the caller's that has the write lock from its start. */
  begin(): Promise<Transaction> {
    return this.#run(async () => {
      const transaction = await this.#connection.client.transaction('write')
      try {
        // Over the network, the lock is taken with the first statements.
        await transaction.batch([])
        return transaction
      } catch (error) {
        transaction.close()
        throw error
      }
    })
  }

  async close(): Promise<void> {
    this.#closed = true
    await Promise.allSettled(this.#underWay)
    this.#connection.close()
  }

  /** Work that changes nothing. */
  #run<T>(work: () => Promise<T>): Promise<T> {
    return this.#track(() => this.#attempt(work, false))
  }

  async #track<T>(work: () => Promise<T>): Promise<T> {
    if (this.#closed || this.#connection.client.closed) throw new StoreClosed()
    const running = work()
    this.#underWay.add(running)
    try {
      return await running
    } finally {
      this.#underWay.delete(running)
    }
  }

  /** Tries again while another connection has the lock, and what changes nothing also when no answer came. */
  async #attempt<T>(work: () => Promise<T>, writes: boolean): Promise<T> {
    const deadline = performance.now() + this.#lockTimeout
    for (let attempt = 1; ; attempt++) {
      try {
        return await work()
      } catch (error) {
        const busy = BUSY.test(codeOf(error))
        if (busy && performance.now() >= deadline) {
          throw new StoreUnavailable(`the database stayed locked for ${this.#lockTimeout} ms`, error)
        }
        const lost = toStoreError(error, true) instanceof OutcomeUnknown && codeOf(error) !== TOO_LARGE
        if (!busy && (writes || !lost || attempt === READ_ATTEMPTS)) throw toStoreError(error, writes)
        await pause(0.2 + Math.random() * 1.5)
      }
    }
  }
}

/** Statements inside a transaction of the caller's. */
export class TransactionExecutor implements SqlExecutor {
  readonly reasonOf = reasonOf
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
