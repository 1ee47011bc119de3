import { StoreUnavailable, type SyncStoreBackend } from '@harel/store-base'
import type { SqliteBackend } from './backend.js'
import type { Connection } from './connection.js'

/** A transaction of the caller's, from its begin to its end. */
export class OpenTransaction {
  /** The store's part of it. */
  readonly backend: SyncStoreBackend
  readonly #connection: Connection
  #failure: { readonly error: unknown } | undefined

  constructor(connection: Connection, backend: SqliteBackend) {
    this.#connection = connection
    this.backend = backend.within((work) => {
      try {
        return this.inside(work)
      } catch (error) {
        this.#failure ??= { error }
        throw error
      }
    })
    connection.begin()
  }

  /**
   * Runs a part of the work. Some errors, a full disk for one, end the transaction; what is written after that would
   * be committed at once.
   *
   * @throws StoreUnavailable when the transaction has ended
   */
  inside<T>(work: () => T): T {
    if (!this.#connection.db.inTransaction) {
      throw new StoreUnavailable('the transaction has ended before its time, by an error or by a statement of its own')
    }
    return work()
  }

  /**
   * @throws what a method of `backend` has thrown before: it may have written a part of its work, so the transaction
   *   can only be rolled back
   */
  commit(): void {
    if (this.#failure !== undefined) throw this.#failure.error
    this.inside(() => this.#connection.commit())
  }

  rollback(): void {
    this.#connection.rollback()
  }
}
