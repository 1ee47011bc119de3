import {
  CheckedStore,
  type ExecutionStore,
  InvalidArgument,
  keepVersions,
  lazyBackend,
  StoreError,
} from '@harel/store-base'
import { type ClientSession, type Db, MongoClient, type MongoClientOptions, MongoServerError } from 'mongodb'
import { capabilitiesOf, MongoBackend } from './backend.js'
import { collectionsOf, INDEXES } from './collections.js'
import { reading, toStoreError } from './errors.js'
import { checkOptions, type MongoOptions } from './options.js'

/** The clients that were opened here and so are closed with their store; a caller's are the caller's to close. */
const opened = new WeakSet<object>()

/**
 * Keeps executions in MongoDB, each with its queues, marks, timers and trace in one document, so that a commit is one
 * update of it. Writes are acknowledged by a majority, reads go to the primary.
 */
export class MongoStore extends CheckedStore {
  readonly #db: Db
  readonly #options: MongoOptions
  readonly #opened: () => Promise<MongoBackend>

  /**
   * A store in a database of the caller's client, who also closes it. The first call makes the indexes that are missing.
   *
   * @throws InvalidPrefix, InvalidArgument
   */
  constructor(db: Db, options: MongoOptions = {}) {
    const settings = checkOptions(options)
    const collections = collectionsOf(db, settings.prefix)
    const end = async () => {
      if (opened.has(db.client)) await db.client.close()
    }
    const { backend, opened: ready } = lazyBackend(capabilitiesOf(settings.dedupe), async () => {
      if (settings.createIndexes)
        await reading(collections.executions.createIndexes(INDEXES.map((index) => ({ ...index }))))
      return new MongoBackend(collections, settings, end)
    })
    super(backend, options)
    this.#db = db
    this.#options = options
    this.#opened = ready
  }

  /**
   * Connects. `close` ends the connection.
   *
   * @param options those of the store, `database` (default: that of the URL, else `harel`), and in `client` those of the
   *   driver
   * @throws InvalidPrefix, InvalidArgument, StoreUnavailable
   */
  static async connect(
    url: string,
    {
      client: clientOptions,
      database,
      ...options
    }: MongoOptions & { client?: MongoClientOptions; database?: string } = {},
  ): Promise<MongoStore> {
    checkOptions(options)
    const client = openClient(url, clientOptions)
    opened.add(client)
    try {
      await reading(client.connect())
      const named = database ?? client.options.dbName
      const store = new MongoStore(client.db(named === 'test' && database === undefined ? 'harel' : named), options)
      await store.#opened()
      return store
    } catch (error) {
      await client.close()
      throw error
    }
  }

  /**
   * Commits executions and the caller's own documents together: what `work` does with the store and, in its session, with
   * the client is written as a whole when it resolves, or not at all when it rejects; then the versions of the executions
   * are what they were. Takes a replica set.
   *
   * @throws StoreError with code `STORE_UNAVAILABLE` when the server has no transactions
   */
  async transaction<T>(work: (store: ExecutionStore, session: ClientSession) => Promise<T>): Promise<T> {
    const backend = await this.#opened()
    const session = this.#db.client.startSession()
    const bound = new CheckedStore(backend.within(session), this.#options)
    const { store, restoreVersions } = keepVersions<ExecutionStore>(bound)
    let working = true
    try {
      session.startTransaction({ writeConcern: { w: 'majority' }, readPreference: 'primary' })
      const result = await work(store, session)
      working = false
      await session.commitTransaction()
      return result
    } catch (error) {
      restoreVersions()
      if (session.inTransaction()) await session.abortTransaction().catch(() => undefined)
      if (hasNoTransactions(error)) {
        throw new StoreError('STORE_UNAVAILABLE', 'this MongoDB server has no transactions; they take a replica set', {
          cause: error,
        })
      }
      // An error of `work` is the caller's own; one of the commit is the driver's.
      throw working ? error : toStoreError(error, true)
    } finally {
      await session.endSession()
      await bound.close()
    }
  }
}

/** IllegalOperation: transaction numbers are only allowed on a replica set member or mongos. */
const hasNoTransactions = (error: unknown): boolean => {
  const cause = error instanceof StoreError ? error.cause : error
  return cause instanceof MongoServerError && cause.code === 20
}

function openClient(url: string, options: MongoClientOptions = {}): MongoClient {
  try {
    return new MongoClient(url, options)
  } catch (error) {
    // The message may show the URL, and with it the password.
    throw new InvalidArgument('url', '(not shown)', `a connection string of MongoDB (${(error as Error).name})`)
  }
}
