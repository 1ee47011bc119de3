import { InvalidArgument, keepVersions, SyncCheckedStore, type SyncExecutionStore } from '@harel/store-base'
import BetterSqlite3, { type Database } from 'better-sqlite3'
import { SqliteBackend } from './backend.js'
import { Connection } from './connection.js'
import { claimPath, ensureDurable, openFile } from './open-file.js'
import { checkOptions, type SqliteOptions } from './schema.js'
import { OpenTransaction } from './transaction.js'

const isThenable = (value: unknown): value is PromiseLike<unknown> =>
  typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function'

/**
 * Keeps executions in a SQLite file, synchronously: a method returns when its work is on the disk.
 *
 * Any number of stores, in any number of processes, may use one file; a writer waits for the others, for
 * `lockTimeout` at most, and blocks its thread meanwhile.
 */
export class SqliteStore extends SyncCheckedStore {
  readonly #connection: Connection
  readonly #backend: SqliteBackend
  readonly #options: SqliteOptions

  /**
   * A store on a connection of the caller's, who also closes it. Its `synchronous` level is raised to FULL; its journal
   * mode stays as it is.
   *
   * @throws InvalidArgument, InvalidPrefix, SchemaMissing, StoreUnavailable
   */
  constructor(db: Database, options: SqliteOptions = {}) {
    const settings = checkOptions(options)
    if (typeof db?.prepare !== 'function') {
      throw new InvalidArgument('db', db, 'a connection of better-sqlite3; for a path there is SqliteStore.open')
    }
    const connection = new Connection(db, settings.lockTimeout)
    let backend: SqliteBackend
    try {
      connection.claim()
      ensureDurable(connection)
      backend = SqliteBackend.open(connection, settings, options.onWarning ?? console.warn)
    } catch (error) {
      connection.close()
      throw error
    }
    super(backend, options)
    this.#connection = connection
    this.#backend = backend
    this.#options = options
  }

  /** Opens the file, or makes it; `close` closes it. `':memory:'` is a database of this store alone. */
  static open(path: string, options: SqliteOptions = {}): SqliteStore {
    const { lockTimeout } = checkOptions(options)
    const release = claimPath(path)
    try {
      return new SqliteStore(openFile(BetterSqlite3, path, lockTimeout).db, options)
    } finally {
      // By now the store has a claim of its own.
      release()
    }
  }

  /**
   * Commits executions and the caller's own rows together: what `work` does with the store and the connection it is
   * given is written as a whole when it returns, or not at all when it throws; then the versions of the executions are
   * what they were. `work` must be synchronous.
   */
  transaction<T>(work: (store: SyncExecutionStore, db: Database) => T): T {
    const transaction = new OpenTransaction(this.#connection, this.#backend)
    const bound = new SyncCheckedStore(transaction.backend, this.#options)
    const { store, restoreVersions } = keepVersions(bound)
    try {
      const result = work(store, this.#connection.db)
      if (isThenable(result)) {
        // What it was about to do is refused from now on; that is no error of its own.
        result.then(undefined, () => {})
        throw new InvalidArgument('work', result, 'a synchronous function')
      }
      transaction.commit()
      return result
    } catch (error) {
      restoreVersions()
      transaction.rollback()
      throw error
    } finally {
      bound.close()
    }
  }

  /** Adds the columns, indexes and triggers that were left out at start-up because a table is large. */
  migrate(): void {
    this.#backend.migrate()
  }
}
