import { OutcomeUnknown, StoreUnavailable, type SyncStoreBackend } from '@harel/store-base'
import type { SqliteBackend } from './backend.js'
import type { Connection } from './connection.js'

const ENDED = 'the transaction has ended before its time, by an error or by a statement of its own'

/** A transaction of the caller's, from its begin to its end. */
export class OpenTransaction {
  /** The store's part of it. */
  readonly backend: SyncStoreBackend
  readonly #connection: Connection
  #failure: { readonly error: unknown } | undefined

  constructor(connection: Connection, backend: SqliteBackend) {
    this.#connection = connection
    this.backend = backend.within((work) => {
      this.#check()
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
   * Runs a part of the work. Some errors, a full disk for one, end the transaction; what is written after that would
   * be committed at once.
   *
   * @throws StoreUnavailable when the transaction has ended
   */
  inside<T>(work: () => T): T {
    this.#check()
    return work()
  }

  #check(): void {
    if (!this.#connection.db.inTransaction) throw new StoreUnavailable(ENDED)
  }

  /**
   * @throws what a method of `backend` has thrown before: it may have written a part of its work, so the transaction
   *   can only be rolled back; OutcomeUnknown when the work has ended the transaction itself, by whatever statement
   */
  commit(): void {
    if (this.#failure !== undefined) throw this.#failure.error
    if (!this.#connection.db.inTransaction) throw new OutcomeUnknown(ENDED, undefined, { untold: true })
    this.#connection.commit()
  }

  rollback(): void {
    this.#connection.rollback()
  }
}
