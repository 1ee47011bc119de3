import {
  CheckedStore,
  type ExecutionStore,
  InvalidArgument,
  keepVersions,
  lazyBackend,
  type StoreCapabilities,
} from '@harel/store-base'
import { prepareRemoteSchema, RemoteSqliteBackend } from '@harel/store-base/sql'
import type { Client, Config, Transaction } from '@libsql/client'
import { borrow, type Connection, checkClient, connect, isReplica } from './client.js'
import { toStoreError } from './errors.js'
import { commit, LibsqlExecutor, TransactionExecutor } from './executor.js'
import { checkOptions, type LibsqlOptions } from './options.js'

/** The connections of the clients that were opened here. */
const opened = new WeakMap<Client, Connection>()

/** Keeps executions in libSQL: a file, a server (sqld, Turso), or an embedded replica of one. */
export class LibsqlStore extends CheckedStore {
  readonly #client: Client
  readonly #options: LibsqlOptions
  readonly #executor: LibsqlExecutor
  readonly #opened: () => Promise<RemoteSqliteBackend>

  /**
   * A store on a client of the caller's, who also closes it. The first call looks for the tables and makes what is
   * missing; only then `capabilities` know whether the client's database is in memory.
   *
   * @throws InvalidPrefix, InvalidArgument
   */
  constructor(client: Client, options: LibsqlOptions = {}) {
    const settings = checkOptions(options)
    const { onWarning = console.warn } = options
    const connection = opened.get(checkClient(client)) ?? borrow(client)
    const capabilities: Mutable<StoreCapabilities> = { ...connection.capabilities }
    const executor = new LibsqlExecutor(connection, settings)
    const { backend, opened: ready } = lazyBackend(capabilities, async () => {
      try {
        if (client.protocol === 'file') {
          if (connection.claim === undefined) await executor.enableWal()
          else {
            const file = await fileOf(client, executor)
            capabilities.durable = file !== ''
            if (file !== '') connection.claim(file)
          }
        }
        const { summary } = await prepareRemoteSchema(executor, settings, onWarning)
        connection.replica?.()
        return new RemoteSqliteBackend(executor, capabilities, { ...settings, summary })
      } catch (error) {
        connection.close()
        throw error
      }
    })
    super(backend, options)
    this.#client = client
    this.#options = options
    this.#executor = executor
    this.#opened = ready
  }

  /**
   * Opens a database, and makes the tables ready. `close` closes it.
   *
   * @param config that of `@libsql/client`: `{ url: 'file:orders.db' }`, `{ url, authToken }`; with `syncUrl`, commits
   *   and what they are decided by go to the primary, and only listings and traces are read from the file
   * @throws InvalidPrefix, InvalidArgument, SchemaMissing, StoreUnavailable
   */
  static async connect(config: Config, options: LibsqlOptions = {}): Promise<LibsqlStore> {
    const { timeout } = checkOptions(options)
    const connection = connect(config, timeout)
    opened.set(connection.client, connection)
    const store = new LibsqlStore(connection.client, options)
    await store.#opened()
    return store
  }

  /**
   * Commits executions and the caller's own rows together: what `work` does with the store and the transaction it is
   * given is written as a whole when it resolves, or not at all when it rejects; then the versions of the executions are
   * what they were. The database has one writer at a time: all others wait meanwhile.
   */
  async transaction<T>(work: (store: ExecutionStore, tx: Transaction) => Promise<T>): Promise<T> {
    const outer = await this.#opened()
    const tx = await this.#executor.begin()
    const executor = new TransactionExecutor(tx, this.#executor)
    const bound = new CheckedStore(outer.within(executor), this.#options)
    const { store, restoreVersions } = keepVersions<ExecutionStore>(bound)
    let working = true
    try {
      const result = await work(store, tx)
      working = false
      executor.check()
      await this.#executor.inTime(commit(tx, this.#client))
      return result
    } catch (error) {
      restoreVersions()
      // An error of `work` is the caller's own; one of the commit is the driver's.
      throw working ? error : toStoreError(error, true)
    } finally {
      // Rolls back what was not committed.
      tx.close()
      await bound.close()
    }
  }

  /** Adds the columns, indexes and triggers that were left out at start-up because a table is large. */
  async migrate(): Promise<void> {
    await this.#opened().then((backend) => backend.migrate())
  }
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] }

/**
 * The file of a caller's client; empty in memory.
 *
 * @throws InvalidArgument for an embedded replica, whose commits are not decided in its file
 */
async function fileOf(client: Client, executor: LibsqlExecutor): Promise<string> {
  if (await isReplica(client)) {
    throw new InvalidArgument(
      'client',
      '(an embedded replica)',
      'on a file or a server; LibsqlStore.connect opens replicas',
    )
  }
  const [databases] = await executor.read([{ sql: 'SELECT file FROM pragma_database_list', params: [] }])
  return String(databases?.rows[0]?.[0] ?? '')
}
