import {
  type AttributeValue,
  DynamoDBClient,
  type DynamoDBClientConfig,
  GetItemCommand,
  ScanCommand,
} from '@aws-sdk/client-dynamodb'
import { type DynamoOptions, DynamoStore } from '@harel/store-dynamodb'
import { onTestFinished } from 'vitest'

export type Item = Record<string, AttributeValue>

/** A name under which nothing is stored yet. */
export const freshPrefix = (): string => `t_${Math.random().toString(36).slice(2)}`

export const credentials = { accessKeyId: 'harelkey', secretAccessKey: 'harelsecret' }

export const configFor = (endpoint: string, config: DynamoDBClientConfig = {}): DynamoDBClientConfig => ({
  endpoint,
  region: 'eu-central-1',
  credentials,
  ...config,
})

export const makeClient = (url: string, config: DynamoDBClientConfig = {}): DynamoDBClient =>
  new DynamoDBClient(configFor(url, config))

/** A client, which goes with the test. */
export function clientFor(url: string, config: DynamoDBClientConfig = {}): DynamoDBClient {
  const client = makeClient(url, config)
  onTestFinished(() => client.destroy())
  return client
}

/** A store on a client, under a prefix of its own unless another one is given. */
export function storeOn(client: DynamoDBClient, options: DynamoOptions = {}): DynamoStore {
  const store = new DynamoStore(client, { prefix: freshPrefix(), ...options })
  onTestFinished(() => store.close())
  return store
}

export async function itemOf(client: DynamoDBClient, TableName: string, Key: Item): Promise<Item | undefined> {
  return (await client.send(new GetItemCommand({ TableName, Key, ConsistentRead: true }))).Item
}

/** Everything in a table. */
export async function itemsOf(client: DynamoDBClient, TableName: string): Promise<Item[]> {
  const items: Item[] = []
  let from: Item | undefined
  do {
    const page = await client.send(new ScanCommand({ TableName, ConsistentRead: true, ExclusiveStartKey: from }))
    items.push(...(page.Items ?? []))
    from = page.LastEvaluatedKey
  } while (from !== undefined)
  return items
}
