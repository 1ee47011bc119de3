import {
  CheckedStore,
  checkMembers,
  type ExecutionStore,
  InvalidArgument,
  keepVersions,
  lazyBackend,
  OutcomeUnknown,
  StoreError,
  StoreUnavailable,
} from '@harel/store-base'
import { type ClientSession, type Db, MongoClient, type MongoClientOptions } from 'mongodb'
import { capabilitiesOf, MongoBackend } from './backend.js'
import { collectionsOf } from './collections.js'
import { Connection } from './connection.js'
import { hasNoTransactions, toStoreError } from './errors.js'
import { prepareIndexes } from './indexes.js'
import { checkOptions, type MongoOptions } from './options.js'

/** The clients that were opened here and so are closed with their store; a caller's are the caller's to close. */
const opened = new WeakSet<MongoClient>()

/**
 * How long is waited for a reply, unless the URL or the caller says otherwise: the driver waits for ever as long as its
 * heartbeats are answered.
 */
const PATIENCE: MongoClientOptions = { socketTimeoutMS: 30_000 }

/**
 * Keeps executions in MongoDB (5.0 or newer), each with its queues, marks, timers and trace in one document, so that a
 * commit is one update of it. Writes are acknowledged by a majority, reads go to the primary.
 */
export class MongoStore extends CheckedStore {
  readonly #client: MongoClient
  readonly #connection: Connection
  readonly #options: MongoOptions
  readonly #opened: () => Promise<MongoBackend>

  /**
   * A store in a database of the caller's client, who also closes it. The first call makes the indexes that are missing.
   *
   * @throws InvalidPrefix, InvalidArgument
   */
  constructor(db: Db, options: MongoOptions = {}) {
    const settings = checkOptions(options)
    const { client } = checkDatabase(db)
    const connection = new Connection(client, collectionsOf(db, settings.prefix))
    const { backend, opened: ready } = lazyBackend(capabilitiesOf(settings.dedupe), async () => {
      if (settings.createIndexes) await prepareIndexes(connection)
      return new MongoBackend(connection, settings, async () => {
        if (opened.has(client)) await client.close()
      })
    })
    super(backend, options)
    this.#client = client
    this.#connection = connection
    this.#options = options
    this.#opened = ready
  }

  /**
   * Connects, and makes the indexes that are missing. `close` ends the connection.
   *
   * @param options those of the store, `database` (default: that of the URL, else `harel`), and in `client` those of the
   *   driver
   * @throws InvalidPrefix, InvalidArgument, StoreUnavailable
   */
  static async connect(url: string, options: MongoOptions & ConnectOptions = {}): Promise<MongoStore> {
    // Taken apart as it is, what is no object would become {}.
    const { client: clientOptions, database, ...own } = checkMembers('options', options) as typeof options
    checkOptions(own)
    const client = openClient(url, clientOptions)
    opened.add(client)
    try {
      const store = new MongoStore(client.db(database ?? databaseOf(url)), own)
      await client.connect()
      await store.#opened()
      return store
    } catch (error) {
      await client.close()
      throw toStoreError(error, StoreUnavailable)
    }
  }

  /**
   * Commits executions and the caller's own documents together: what `work` does with the store and, in its session, with
   * the client is written as a whole when it resolves, or not at all when it rejects; then the versions of the executions
   * are what they were. Takes a replica set or a sharded cluster.
   *
   * @throws StoreError with code `STORE_UNAVAILABLE`, which is not retryable, when the server has no transactions
   */
  async transaction<T>(work: (store: ExecutionStore, session: ClientSession) => Promise<T>): Promise<T> {
    const backend = await this.#opened()
    const session = this.#client.startSession()
    const bound = new CheckedStore(backend.within(this.#connection.within(session)), this.#options)
    const { store, restoreVersions } = keepVersions<ExecutionStore>(bound)
    let working = true
    try {
      session.startTransaction({
        readConcern: { level: 'snapshot' },
        writeConcern: { w: 'majority', journal: true },
        readPreference: 'primary',
      })
      const result = await work(store, session)
      working = false
      await bound.close()
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
      throw working ? error : toStoreError(error, OutcomeUnknown)
    } finally {
      await bound.close()
      await session.endSession()
    }
  }
}

interface ConnectOptions {
  client?: MongoClientOptions
  database?: string
}

function checkDatabase(db: Db): Db {
  if (typeof db?.collection === 'function' && typeof db.client?.startSession === 'function') return db
  throw new InvalidArgument('db', db, 'a database of a MongoClient: client.db()', `a value of type ${typeof db}`)
}

function openClient(url: string, options: MongoClientOptions = {}): MongoClient {
  try {
    return new MongoClient(url, { ...(!/[?&]socketTimeoutMS=/i.test(url) && PATIENCE), ...options })
  } catch (error) {
    // The message may show the URL, and with it the password.
    const { name } = error as Error
    throw new InvalidArgument('url', '(not shown)', `a connection string of MongoDB with valid options (${name})`)
  }
}

/** The one that the URL names. The driver's own default is `test`, which Python harel does not use. */
const databaseOf = (url: string): string | undefined => (/\/\/[^/]+\/[^?]/.test(url) ? undefined : 'harel')
