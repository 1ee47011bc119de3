import {
  type AttributeValue,
  BatchGetItemCommand,
  BatchWriteItemCommand,
  type DynamoDBClient,
  GetItemCommand,
  QueryCommand,
  type QueryCommandInput,
  ScanCommand,
  type ScanCommandInput,
  type TransactWriteItem,
  TransactWriteItemsCommand,
} from '@aws-sdk/client-dynamodb'
import { OutcomeUnknown, StoreUnavailable } from '@harel/store-base'
import { isLost, isPassing, isUnmet, reasonsOf, toStoreError } from './errors.js'
import type { Item } from './values.js'

/** For how long is tried again what others have kept from being done, or what got no answer, in milliseconds. */
const PATIENCE = 5000

/** Limits of DynamoDB. Source: BatchGetItem and BatchWriteItem in its documentation. */
const GETS = 100
const DELETES = 25

/** Which conditions of a transaction did not hold, in the order of its writes, with what was stored where it was asked for. */
export type Refusal = readonly { readonly met: boolean; readonly stored: Item | undefined }[]

/** A pause that grows and is random, so that those who were in each other's way do not meet again. */
const pause = (tries: number): Promise<void> =>
  new Promise((resolve) => setTimeout(resolve, Math.random() * Math.min(5 * 2 ** tries, 500)))

/** The requests of the store. Each is repeated for a while where that may help. All reads of tables are consistent. */
export class Connection {
  readonly #client: DynamoDBClient
  readonly #underWay = new Set<Promise<unknown>>()

  constructor(client: DynamoDBClient) {
    this.#client = client
  }

  /** @throws StoreUnavailable, SchemaMissing */
  async ask<T>(request: (client: DynamoDBClient) => Promise<T>): Promise<T> {
    try {
      return await this.#patiently(() => request(this.#client))
    } catch (error) {
      throw toStoreError(error)
    }
  }

  /** As `ask`, for a write with a condition; false when it does not hold. */
  async askIf(request: (client: DynamoDBClient) => Promise<unknown>): Promise<boolean> {
    return this.ask((client) =>
      request(client).then(
        () => true,
        (error: unknown) => {
          if (isUnmet(error)) return false
          throw error
        },
      ),
    )
  }

  /** Resolves when nothing is under way any more, nor follows from what was. */
  async drain(): Promise<void> {
    while (this.#underWay.size > 0) {
      await Promise.allSettled(this.#underWay)
      await new Promise(setImmediate)
    }
  }

  async #patiently<T>(attempt: () => Promise<T>): Promise<T> {
    const underWay = untilAnswered(attempt)
    this.#underWay.add(underWay)
    try {
      return await underWay
    } finally {
      this.#underWay.delete(underWay)
    }
  }

  async get(TableName: string, Key: Item): Promise<Item | undefined> {
    const command = new GetItemCommand({ TableName, Key, ConsistentRead: true })
    return (await this.ask((client) => client.send(command))).Item
  }

  /** Those of the items that are there, in any order. */
  async getAll(TableName: string, keys: readonly Item[]): Promise<Item[]> {
    const items: Item[] = []
    await inBatches(keys, GETS, async (Keys) => {
      const command = new BatchGetItemCommand({ RequestItems: { [TableName]: { Keys, ConsistentRead: true } } })
      const { Responses, UnprocessedKeys } = await this.ask((client) => client.send(command))
      items.push(...(Responses?.[TableName] ?? []))
      return UnprocessedKeys?.[TableName]?.Keys ?? []
    })
    return items
  }

  /** Deletes items whose keys differ; those that are not there are no error. */
  async deleteAll(TableName: string, keys: readonly Item[]): Promise<void> {
    await inBatches(keys, DELETES, async (part) => {
      const requests = part.map((Key) => ({ DeleteRequest: { Key } }))
      const command = new BatchWriteItemCommand({ RequestItems: { [TableName]: requests } })
      const { UnprocessedItems } = await this.ask((client) => client.send(command))
      return (UnprocessedItems?.[TableName] ?? []).map(({ DeleteRequest }) => DeleteRequest?.Key ?? {})
    })
  }

  /** The pages of a query or a scan. One may be empty without being the last. */
  async *#pages(
    read: (from: Item | undefined) => Promise<{ Items?: Item[] | undefined; LastEvaluatedKey?: Item | undefined }>,
    start?: Item,
  ) {
    let from = start
    do {
      const { Items = [], LastEvaluatedKey } = await read(from)
      from = LastEvaluatedKey
      yield { items: Items, isLast: from === undefined }
    } while (from !== undefined)
  }

  /** The pages of a query of a table, or of an index, which alone is not consistent. */
  query(input: QueryCommandInput) {
    const ConsistentRead = input.IndexName === undefined
    return this.#pages((ExclusiveStartKey) => {
      const command = new QueryCommand({ ...input, ConsistentRead, ExclusiveStartKey })
      return this.ask((client) => client.send(command))
    })
  }

  /** The pages of a table, behind the key `start`. */
  scan(input: ScanCommandInput, start?: Item) {
    return this.#pages((ExclusiveStartKey) => {
      const command = new ScanCommand({ ...input, ConsistentRead: true, ExclusiveStartKey })
      return this.ask((client) => client.send(command))
    }, start)
  }

  /**
   * Writes all or nothing, once, however often it has to be sent: the service remembers the token for ten minutes.
   *
   * @returns undefined when it was written, else why not
   * @throws StoreUnavailable when nothing was written; OutcomeUnknown when no answer tells
   */
  async transact(TransactItems: TransactWriteItem[], ClientRequestToken: string): Promise<Refusal | undefined> {
    const command = new TransactWriteItemsCommand({ TransactItems, ClientRequestToken })
    let lost = false
    // The client sends again by itself, and shows but the last error.
    command.middlewareStack.add(
      (next) => (args) =>
        next(args).catch((error: unknown) => {
          lost ||= isLost(error)
          throw error
        }),
      { step: 'finalizeRequest', priority: 'low' },
    )
    try {
      // With options, for a client may reuse the middleware of another command where there are none.
      await this.#patiently(() => this.#client.send(command, {}))
      return undefined
    } catch (error) {
      if (isUnmet(error)) {
        return reasonsOf(error).map(({ Code, Item }) => ({ met: Code !== 'ConditionalCheckFailed', stored: Item }))
      }
      // To read back would tell no more than to send again has told: what was lost may still be under way.
      if (lost) throw new OutcomeUnknown('DynamoDB did not answer', error, { untold: true })
      throw toStoreError(error)
    }
  }
}

/** @param send answers what of its part was left undone */
async function inBatches(
  all: readonly Item[],
  size: number,
  send: (part: Item[]) => Promise<Record<string, AttributeValue>[]>,
): Promise<void> {
  const parts: Item[][] = []
  for (let start = 0; start < all.length; start += size) parts.push(all.slice(start, start + size))
  await Promise.all(
    parts.map(async (part) => {
      let deadline = performance.now() + PATIENCE
      for (let left = part, tries = 0; left.length > 0; tries++) {
        if (tries > 0) await pause(tries)
        const undone = await send(left)
        if (undone.length < left.length) deadline = performance.now() + PATIENCE
        else if (performance.now() > deadline)
          throw new StoreUnavailable('DynamoDB leaves batches undone: it is throttled')
        left = undone
      }
    }),
  )
}

async function untilAnswered<T>(attempt: () => Promise<T>): Promise<T> {
  const deadline = performance.now() + PATIENCE
  for (let tries = 1; ; tries++) {
    try {
      return await attempt()
    } catch (error) {
      if (!isPassing(error) || performance.now() > deadline) throw error
    }
    await pause(tries)
  }
}
