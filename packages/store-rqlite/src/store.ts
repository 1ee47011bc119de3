import { CheckedStore, lazyBackend, type StoreCapabilities } from '@harel/store-base'
import { prepareRemoteSchema, RemoteSqliteBackend } from '@harel/store-base/sql'
import { RqliteExecutor } from './executor.js'
import { parseHosts } from './hosts.js'
import { checkOptions, type RqliteOptions } from './options.js'

const capabilities: StoreCapabilities = {
  durable: true,
  shared: true,
  identity: false,
  ordered: true,
  paging: 'key',
  maxCommitWrites: Number.POSITIVE_INFINITY,
  // The server has no limit below SQLite's, but for its memory: it takes about ten times as much.
  maxExecutionBytes: 64_000_000,
  dedupe: 'forever',
  atomicPurge: true,
  transactions: false,
}

/** How many requests with commits may be under way at once: one is read and made while the other one is carried out. */
const IN_FLIGHT = 2

/**
 * Keeps executions in rqlite, over HTTP. A commit is one request; commits that arrive while two of them are under way
 * share the next one.
 */
export class RqliteStore extends CheckedStore {
  readonly #opened: () => Promise<RemoteSqliteBackend>

  /**
   * A store on one or more nodes of a cluster. The first call looks for the tables and makes what is missing.
   *
   * @throws InvalidPrefix, InvalidArgument
   */
  constructor(urls: string | readonly string[], options: RqliteOptions = {}) {
    const settings = checkOptions(options)
    const executor = new RqliteExecutor(parseHosts(urls, options), settings)
    const { onWarning = console.warn } = options
    const { backend, opened } = lazyBackend(capabilities, async () => {
      const { summary } = await prepareRemoteSchema(executor, settings, onWarning)
      return new RemoteSqliteBackend(executor, capabilities, { ...settings, summary, inFlight: IN_FLIGHT })
    })
    super(backend, options)
    this.#opened = opened
  }

  /** As the constructor, with the tables ready. @throws as the constructor, SchemaMissing, StoreUnavailable */
  static async connect(urls: string | readonly string[], options: RqliteOptions = {}): Promise<RqliteStore> {
    const store = new RqliteStore(urls, options)
    await store.#opened()
    return store
  }

  /** Adds the columns, indexes and triggers that were left out at start-up because a table is large. */
  async migrate(): Promise<void> {
    const backend = await this.#opened()
    await backend.migrate()
  }
}
