import {
  InvalidArgument,
  OutcomeUnknown,
  SchemaMissing,
  StoreClosed,
  StoreError,
  StoreUnavailable,
} from '@harel/store-base'
import { claimFile, mayPass, type Sql } from '@harel/store-base/sql'
import type { Database, RunResult, Statement } from 'better-sqlite3'

/** What claims of files are known by. */
export const PACKAGE = '@harel/store-sqlite'

const codeOf = (error: unknown): string =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : ''

const isLocked = (error: unknown): boolean => /^SQLITE_(BUSY|LOCKED)/.test(codeOf(error))

/** Whether the caller reads from his connection at this moment. */
const isBusy = ({ message }: Error): boolean => message === 'This database connection is busy executing a query'

/** What a driver's error is to a caller. */
export function toStoreError(error: unknown): unknown {
  if (error instanceof StoreError || !(error instanceof Error)) return error
  const table = /^no such table: (?:main\.)?(\S+)/.exec(error.message)?.[1]
  if (table !== undefined) return new SchemaMissing([table])
  if (error.message === 'The database connection is not open') return new StoreClosed()
  const code = codeOf(error)
  if (code === '' && !/database|connection/i.test(error.message)) return error
  // Behind a code stands what a trigger says, and more; without one, a fixed text of better-sqlite3's.
  const reason = code === '' ? `SQLite failed: ${error.message}` : `SQLite failed with ${code}`
  return new StoreUnavailable(reason, error, { retryable: mayPass(code) || isBusy(error) })
}

const sleeper = new Int32Array(new SharedArrayBuffer(4))
const pause = (milliseconds: number): void => {
  Atomics.wait(sleeper, 0, 0, milliseconds)
}

/** The connections that a store has opened and so closes; a caller's are the caller's to close. */
export const owned: WeakSet<Database> = new WeakSet()

/** More statements than the protocol has; the rest are variants of listings. */
const KEPT_STATEMENTS = 200

/** A connection that keeps its statements prepared and waits for locks. */
export class Connection {
  readonly db: Database
  readonly #lockTimeout: number
  #release = () => {}
  readonly #statements = new Map<string, Statement>()
  #closed = false

  /** @param lockTimeout how long to wait for other writers, in milliseconds */
  constructor(db: Database, lockTimeout: number) {
    this.db = db
    this.#lockTimeout = lockTimeout
  }

  /**
   * Claims the file for this package until the end of the connection's use.
   *
   * @throws InvalidArgument while a store of another package has it open
   */
  claim(): void {
    const main = this.get<{ file: string | null }>({ sql: 'PRAGMA database_list', params: [] })
    if (main?.file) this.#release = claimFile('db', main.file, PACKAGE)
  }

  #prepared(sql: string): Statement {
    const kept = this.#statements.get(sql)
    if (kept !== undefined) return kept
    if (this.#statements.size >= KEPT_STATEMENTS) this.#statements.clear()
    // A caller's connection may be set to return bigints.
    const statement = this.db.prepare(sql).safeIntegers(false)
    this.#statements.set(sql, statement)
    return statement
  }

  run({ sql, params }: Sql): RunResult {
    return this.retry(() => this.#prepared(sql).run(...params))
  }

  get<Row>({ sql, params }: Sql): Row | undefined {
    return this.retry(() => this.#prepared(sql).get(...params)) as Row | undefined
  }

  all<Row>({ sql, params }: Sql): Row[] {
    return this.retry(() => this.#prepared(sql).all(...params)) as Row[]
  }

  /** For what is not a single statement that is worth keeping. */
  exec(sql: string): void {
    this.retry(() => this.db.exec(sql))
  }

  /** Runs `work` in one transaction: all of it is written, durably, or nothing. */
  write<T>(work: () => T): T {
    this.begin()
    try {
      const result = work()
      this.commit()
      return result
    } catch (error) {
      this.rollback()
      throw error
    }
  }

  /** Takes the write lock at once: a lock taken half-way would fail instead of waiting. */
  begin(): void {
    if (this.db.inTransaction) {
      throw new InvalidArgument('connection', 'one with an open transaction', 'idle; write through store.transaction()')
    }
    this.run({ sql: 'BEGIN IMMEDIATE', params: [] })
  }

  /** @throws OutcomeUnknown when the disk failed: the commit may stand in the log and show after a restart */
  commit(): void {
    try {
      this.run({ sql: 'COMMIT', params: [] })
    } catch (error) {
      const { cause } = error as Error
      if (codeOf(cause).startsWith('SQLITE_IOERR')) {
        throw new OutcomeUnknown('the disk failed during a commit', cause, { untold: true })
      }
      throw error
    }
  }

  rollback(): void {
    // Some errors, a full disk for one, have ended the transaction already.
    if (this.db.inTransaction) this.run({ sql: 'ROLLBACK', params: [] })
  }

  /** Ends the use of the connection, and the connection itself if it is ours. */
  close(): void {
    this.#closed = true
    if (owned.has(this.db)) this.db.close()
    this.#release()
  }

  /**
   * Waits for locks by trying again at random intervals. SQLite's own waiting backs off, so that under load the
   * process that has waited longest tries least often: some then wait for more than a second.
   */
  retry<T>(work: () => T): T {
    if (this.#closed) throw new StoreClosed()
    const deadline = performance.now() + this.#lockTimeout
    for (;;) {
      try {
        return work()
      } catch (error) {
        if (!isLocked(error)) throw toStoreError(error)
        if (performance.now() >= deadline) {
          throw new StoreUnavailable(`the database stayed locked for ${this.#lockTimeout} ms`, error)
        }
        pause(0.2 + Math.random() * 1.5)
      }
    }
  }
}
