import type { SyncStoreBackend } from '@harel/store-base'
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
        return work()
      } catch (error) {
        this.#failure ??= { error }
        throw error
      }
    })
    connection.begin()
  }

  /**
   * @throws what a method of `backend` has thrown before: it may have written a part of its work, so the transaction
   *   can only be rolled back
   */
  commit(): void {
    if (this.#failure !== undefined) throw this.#failure.error
    this.#connection.commit()
  }

  rollback(): void {
    this.#connection.rollback()
  }
}
