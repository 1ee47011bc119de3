import { CheckedStore, type ExecutionStore, keepVersions, lazyBackend, type StoreCapabilities } from '@harel/store-base'
import { prepareRemoteSchema, RemoteSqliteBackend, storeSchema } from '@harel/store-base/sql'
import type { Client, Config, Transaction } from '@libsql/client'
import { begin, enableWal, LibsqlExecutor, openClient, TransactionExecutor, toStoreError } from './executor.js'
import { checkOptions, type LibsqlOptions, type Settings } from './options.js'

/** The statements that make the tables, indexes and triggers of a prefix. @throws InvalidPrefix */
export const printSchema = (prefix?: string): string =>
  storeSchema('sqlite', prefix)
    .filter(({ kind }) => kind !== 'column')
    .map(({ sql }) => `${sql};\n`)
    .join('')

const capabilities: StoreCapabilities = {
  durable: true,
  shared: true,
  identity: false,
  ordered: true,
  paging: 'key',
  maxCommitWrites: Number.POSITIVE_INFINITY,
  // SQLite's own limit of a row (SQLITE_MAX_LENGTH), which holds a little more than the payload.
  maxExecutionBytes: 999_000_000,
  dedupe: 'forever',
  atomicPurge: true,
  transactions: true,
}

/** The clients that were opened here and so are closed with their store; a caller's are the caller's to close. */
const opened = new WeakSet<Client>()

/** Keeps executions in libSQL: a file, a server (sqld, Turso), or an embedded replica of one. */
export class LibsqlStore extends CheckedStore {
  readonly #client: Client
  readonly #options: LibsqlOptions
  readonly #settings: Settings
  readonly #opened: () => Promise<RemoteSqliteBackend>

  /**
   * A store on a client of the caller's, who also closes it. The first call looks for the tables and makes what is
   * missing.
   *
   * @throws InvalidPrefix, InvalidArgument
   */
  constructor(client: Client, options: LibsqlOptions = {}) {
    const settings = checkOptions(options)
    const { onWarning = console.warn } = options
    const end = async () => {
      if (opened.has(client)) client.close()
    }
    const { backend, opened: ready } = lazyBackend(capabilities, async () => {
      const executor = new LibsqlExecutor(client, settings.lockTimeout, end)
      if (opened.has(client) && client.protocol === 'file') await enableWal(client)
      const { summary } = await prepareRemoteSchema(executor, settings, onWarning)
      return new RemoteSqliteBackend(executor, capabilities, { ...settings, summary })
    })
    super(backend, options)
    this.#client = client
    this.#options = options
    this.#settings = settings
    this.#opened = ready
  }

  /**
   * Opens a database, and makes the tables ready. `close` closes it.
   *
   * @param config that of `@libsql/client`: `{ url: 'file:orders.db' }`, `{ url, authToken }`
   * @throws InvalidPrefix, InvalidArgument, SchemaMissing, StoreUnavailable
   */
  static async connect(config: Config, options: LibsqlOptions = {}): Promise<LibsqlStore> {
    const { lockTimeout } = checkOptions(options)
    const client = openClient({ timeout: lockTimeout, ...config })
    opened.add(client)
    try {
      const store = new LibsqlStore(client, options)
      await store.#opened()
      return store
    } catch (error) {
      client.close()
      throw error
    }
  }

  /**
   * Commits executions and the caller's own rows together: what `work` does with the store and the transaction it is
   * given is written as a whole when it resolves, or not at all when it rejects; then the versions of the executions are
   * what they were. The database has one writer at a time: all others wait meanwhile.
   */
  async transaction<T>(work: (store: ExecutionStore, tx: Transaction) => Promise<T>): Promise<T> {
    const outer = await this.#opened()
    const tx = await begin(this.#client, this.#settings.lockTimeout)
    const executor = new TransactionExecutor(tx)
    const bound = new CheckedStore(outer.within(executor), this.#options)
    const { store, restoreVersions } = keepVersions<ExecutionStore>(bound)
    let working = true
    try {
      const result = await work(store, tx)
      working = false
      executor.check()
      await tx.commit()
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
