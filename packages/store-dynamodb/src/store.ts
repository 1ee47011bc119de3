import { DynamoDBClient, type DynamoDBClientConfig } from '@aws-sdk/client-dynamodb'
import { CheckedStore, lazyBackend } from '@harel/store-base'
import { capabilitiesOf, DynamoBackend } from './backend.js'
import { Connection } from './client.js'
import { checkOptions, type DynamoOptions } from './options.js'
import { prepareTables, tablesOf } from './tables.js'

/** The clients that were made here and so are destroyed with their store; a caller's are the caller's. */
const opened = new WeakSet<DynamoDBClient>()

/** How long is waited for a service that says nothing: a client waits for ever. */
const PATIENCE = { connectionTimeout: 5000, requestTimeout: 10_000, throwOnRequestTimeout: true }

/** Keeps executions in DynamoDB. A commit is one transaction of at most 100 writes. Every read is consistent. */
export class DynamoStore extends CheckedStore {
  readonly #opened: () => Promise<DynamoBackend>

  /**
   * A store on a client of the caller's (a document client as well), who also destroys it. The first call looks for the
   * tables and makes those that are missing. How long a call waits for a service that says nothing is what the client's
   * `requestHandler` says.
   *
   * @throws InvalidPrefix, InvalidArgument
   */
  constructor(client: DynamoDBClient, options: DynamoOptions = {}) {
    const settings = checkOptions(options)
    const { backend, opened: ready } = lazyBackend(capabilitiesOf(settings), async () => {
      const connection = new Connection(client)
      const tables = tablesOf(settings.prefix)
      await prepareTables(connection, tables, settings)
      return new DynamoBackend(connection, tables, settings, async () => {
        if (!opened.has(client)) return
        await connection.drain()
        client.destroy()
      })
    })
    super(backend, options)
    this.#opened = ready
  }

  /**
   * Makes a client, and the tables ready. `close` destroys it.
   *
   * @param config that of the client: `{ region }`, for a local server `{ endpoint, region, credentials }`
   * @throws InvalidPrefix, InvalidArgument, SchemaMissing, StoreUnavailable
   */
  static async connect(config: DynamoDBClientConfig = {}, options: DynamoOptions = {}): Promise<DynamoStore> {
    checkOptions(options)
    const client = new DynamoDBClient({ requestHandler: PATIENCE, ...config })
    opened.add(client)
    try {
      const store = new DynamoStore(client, options)
      await store.#opened()
      return store
    } catch (error) {
      client.destroy()
      throw error
    }
  }
}
