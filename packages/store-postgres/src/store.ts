import { CheckedStore, type ExecutionStore, InvalidArgument, keepVersions, lazyBackend, Names } from '@harel/store-base'
import postgres, { type Options, type Sql, type TransactionSql } from 'postgres'
import { capabilities, PostgresBackend } from './backend.js'
import { Client, toStoreError } from './client.js'
import { checkOptions, type PostgresOptions } from './options.js'
import { migrateSchema, prepareSchema, wantedObjects } from './schema.js'
import { begin } from './transaction.js'

/** The statements that make the tables, functions, triggers and indexes of a prefix. @throws InvalidPrefix */
export const printSchema = (prefix = 'harel', schema = 'public'): string =>
  wantedObjects(Names(prefix).prefix.toLowerCase(), schema)
    .filter(({ kind }) => kind !== 'column')
    .map(({ sql }) => `${sql.trim()};\n`)
    .join('')

/** The pools that were opened here and so are ended with their store; a caller's are the caller's to end. */
const opened = new WeakSet<Sql>()

/**
 * Keeps executions in PostgreSQL (15 or newer). A commit of any shape is one function call; commits that arrive while
 * others are being written are written together, and each is acknowledged after its transaction is committed.
 */
export class PostgresStore extends CheckedStore {
  readonly #sql: Sql
  readonly #options: PostgresOptions
  readonly #opened: () => Promise<PostgresBackend>

  /**
   * A store on a pool of the caller's, who also ends it. The first call looks for the tables and makes what is missing.
   *
   * @throws InvalidPrefix, InvalidArgument
   */
  constructor(sql: Sql, options: PostgresOptions = {}) {
    const settings = checkOptions(options)
    const { onWarning = console.warn } = options
    const { backend, opened: ready } = lazyBackend(capabilities, async () => {
      const place = await prepareSchema(sql, settings, onWarning)
      const client = new Client(sql, sql.options.prepare !== false)
      const end = async () => {
        if (opened.has(sql)) await endPool(sql)
      }
      return new PostgresBackend(client, settings, place, false, end)
    })
    super(backend, options)
    this.#sql = sql
    this.#options = options
    this.#opened = ready
  }

  /**
   * Connects, and makes the tables ready. `close` ends the pool.
   *
   * @param options those of the store, and in `client` those of postgres.js: `{ client: { max: 20, prepare: false } }`
   * @throws InvalidPrefix, InvalidArgument, SchemaMissing, StoreUnavailable
   */
  static async connect(
    url: string,
    { client, ...options }: PostgresOptions & { client?: Options<Record<string, never>> } = {},
  ): Promise<PostgresStore> {
    const sql = openPool(url, client)
    opened.add(sql)
    try {
      const store = new PostgresStore(sql, options)
      await store.#opened()
      return store
    } catch (error) {
      await endPool(sql)
      throw error
    }
  }

  /**
   * Commits executions and the caller's own rows together: what `work` does with the store and the connection it is
   * given is written as a whole when it resolves, or not at all when it rejects; then the versions of the executions are
   * what they were. A commit inside waits for locks as long as the transaction's own settings say.
   */
  async transaction<T>(work: (store: ExecutionStore, tx: TransactionSql) => Promise<T>): Promise<T> {
    const backend = await this.#opened()
    const { prepare } = this.#sql.options
    let restore = () => {}
    let failure: { error: unknown } | undefined
    let committing = false
    try {
      return await begin(this.#sql, async (tx) => {
        const bound = new CheckedStore(backend.within(new Client(tx, prepare !== false)), this.#options)
        const { store, restoreVersions } = keepVersions<ExecutionStore>(bound)
        restore = restoreVersions
        try {
          const result = await work(store, tx)
          committing = true
          return result
        } catch (error) {
          failure = { error }
          throw error
        } finally {
          await bound.close()
        }
      })
    } catch (error) {
      restore()
      // An error of `work` is the caller's own; one of begin or commit is the driver's.
      throw error === failure?.error ? error : toStoreError(error, committing)
    }
  }

  /** Adds the indexes that were left out at start-up because a table is large; writers can go on meanwhile. */
  async migrate(): Promise<void> {
    const backend = await this.#opened()
    await backend.migrate((settings, schema) => migrateSchema(this.#sql, settings, schema))
  }
}

/** With nothing under way. The driver waits in vain for a connection that broke in a query, so not for long. */
const endPool = (sql: Sql): Promise<void> => sql.end({ timeout: 0.5 })

function openPool(url: string, client: Options<Record<string, never>> = {}): Sql {
  try {
    return postgres(url, {
      // Notices of "already exists" are not worth a line.
      onnotice: () => {},
      // Seconds until the next attempt to connect: the driver's own 20 are too long for a server that is back.
      backoff: (attempts) => Math.random() * Math.min(2 ** attempts / 100, 1),
      ...client,
    })
  } catch (cause) {
    // The cause may show the URL, and with it the password.
    throw new InvalidArgument('url', '(not shown)', `a connection URL of PostgreSQL (${(cause as Error).name})`)
  }
}
