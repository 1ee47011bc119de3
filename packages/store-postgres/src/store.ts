import { CheckedStore, checkMembers, type ExecutionStore, keepVersions, lazyBackend, Names } from '@harel/store-base'
import type { Sql, TransactionSql } from 'postgres'
import { capabilities, PostgresBackend } from './backend.js'
import { Client, toStoreError } from './client.js'
import { checkOptions, type PostgresOptions } from './options.js'
import { type ClientOptions, callersPool, ownPool, type Pool } from './pool.js'
import { migrateSchema, prepareSchema, wantedObjects } from './schema.js'
import { begin } from './transaction.js'

/** The statements that make the tables, functions, triggers and indexes of a prefix. @throws InvalidPrefix */
export const printSchema = (prefix = 'harel', schema = 'public'): string =>
  wantedObjects(Names(prefix).prefix.toLowerCase(), schema)
    .filter(({ kind }) => kind !== 'column')
    .map(({ sql }) => `${sql.trim()};\n`)
    .join('')

/** The pools that `connect` has opened, by their first handle. */
const ownPools = new WeakMap<Sql, Pool>()

/**
 * Keeps executions in PostgreSQL (15 or newer). A commit of any shape is one function call; commits that arrive while
 * others are being written are written together, and each is acknowledged after its transaction is committed.
 */
export class PostgresStore extends CheckedStore {
  readonly #pool: Pool
  readonly #options: PostgresOptions
  readonly #opened: () => Promise<PostgresBackend>

  /**
   * A store on a pool of the caller's, who also ends it. The first call looks for the tables and makes what is missing.
   *
   * @throws InvalidPrefix, InvalidArgument
   */
  constructor(sql: Sql, options: PostgresOptions = {}) {
    const settings = checkOptions(options)
    const pool = ownPools.get(sql) ?? callersPool(sql)
    const { onWarning = console.warn } = options
    const { backend, opened } = lazyBackend(capabilities, async () => {
      const place = await prepareSchema(pool, settings, onWarning)
      return new PostgresBackend(Client.of(pool, true, settings.timeout), settings, place, false, () => pool.end())
    })
    super(backend, options)
    this.#pool = pool
    this.#options = options
    this.#opened = opened
  }

  /**
   * Connects, and makes the tables ready. `close` ends the pool.
   *
   * @param options those of the store, and in `client` those of postgres.js: `{ client: { max: 20, prepare: false } }`
   * @throws InvalidPrefix, InvalidArgument, SchemaMissing, StoreUnavailable
   */
  static async connect(
    url: string,
    options: PostgresOptions & { client?: ClientOptions } = {},
  ): Promise<PostgresStore> {
    // Taken apart as it is, what is no object would become {}.
    const { client, ...own } = checkMembers('options', options) as typeof options
    const { timeout } = checkOptions(own)
    const pool = ownPool(url, timeout, client)
    const sql = await pool.handle()
    ownPools.set(sql, pool)
    const store = new PostgresStore(sql, own)
    try {
      await store.#opened()
      return store
    } catch (error) {
      await pool.end()
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
    let restore = () => {}
    let failure: { error: unknown } | undefined
    let committing = false
    try {
      return await begin(this.#pool, async (tx) => {
        const bound = new CheckedStore(backend.within(Client.within(tx, this.#pool.prepare)), this.#options)
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
    await backend.migrate((settings, schema) => migrateSchema(this.#pool, settings, schema))
  }
}
