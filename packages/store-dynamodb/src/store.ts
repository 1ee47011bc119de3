import { DynamoDBClient, type DynamoDBClientConfig } from '@aws-sdk/client-dynamodb'
import { CheckedStore, lazyBackend } from '@harel/store-base'
import { capabilitiesOf, DynamoBackend } from './backend.js'
import { checkOptions, type DynamoOptions } from './options.js'
import { prepareTables, tablesOf } from './tables.js'

/** The clients that were made here and so are destroyed with their store; a caller's are the caller's. */
const opened = new WeakSet<DynamoDBClient>()

/** Keeps executions in DynamoDB. A commit is one transaction of at most 100 writes. Every read is consistent. */
export class DynamoStore extends CheckedStore {
  readonly #opened: () => Promise<DynamoBackend>

  /**
   * A store on a client of the caller's (a document client as well), who also destroys it. The first call looks for the
   * tables and makes those that are missing.
   *
   * @throws InvalidPrefix, InvalidArgument
   */
  constructor(client: DynamoDBClient, options: DynamoOptions = {}) {
    const settings = checkOptions(options)
    const tables = tablesOf(settings.prefix)
    const end = () => {
      if (opened.has(client)) client.destroy()
    }
    const { backend, opened: ready } = lazyBackend(capabilitiesOf(settings), async () => {
      await prepareTables(client, tables, settings)
      return new DynamoBackend(client, tables, settings, end)
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
  static async connect(config: DynamoDBClientConfig, options: DynamoOptions = {}): Promise<DynamoStore> {
    checkOptions(options)
    const client = new DynamoDBClient(config)
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
