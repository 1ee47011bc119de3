import { type DynamoDBClient, PutItemCommand, UpdateItemCommand } from '@aws-sdk/client-dynamodb'
import type { StoreCapabilities } from '@harel/store-base'
import { DynamoStore } from '@harel/store-dynamodb'
import { describeStore, type Probes } from '@harel/store-testing'
import { afterAll, describe, test } from 'vitest'
import { itemOf, itemsOf, makeClient } from './database.js'

const capabilities: StoreCapabilities = {
  durable: true,
  shared: true,
  identity: false,
  ordered: false,
  paging: 'key',
  maxCommitWrites: 100,
  maxExecutionBytes: 392 * 1024,
  dedupe: 'forever',
  atomicPurge: false,
  transactions: false,
}

export interface Subject {
  url: () => string
  gsi?: boolean
  prefixes: [string, string]
}

/** Runs all contracts under two prefixes, with a look at what is stored. */
export function describeContracts(name: string, { url, gsi = false, prefixes }: Subject): void {
  let made: DynamoDBClient | undefined
  const client = (): DynamoDBClient => {
    made ??= makeClient(url())
    return made
  }
  afterAll(() => made?.destroy())

  describeStore({ describe, test }, name, {
    capabilities: { ...capabilities, ordered: gsi },
    prefixes,
    open: async (options) => new DynamoStore(client(), { ...options, gsi }),
    probes: (prefix) => {
      const { insertExecutionText, ...probes } = probesOn(client, prefix)
      // What others write is in no index.
      return gsi ? probes : { ...probes, insertExecutionText }
    },
    model: { milliseconds: 1000 },
  })
}

function probesOn(client: () => DynamoDBClient, prefix: string) {
  return {
    executionText: async (id: string) => (await itemOf(client(), `${prefix}_executions`, { id: { S: id } }))?.data?.S,
    insertExecutionText: async (id: string, version: number, data: string) => {
      const Item = { id: { S: id }, data: { S: data }, version: { N: String(version) }, definition_id: { S: 'd' } }
      await client().send(new PutItemCommand({ TableName: `${prefix}_executions`, Item }))
    },
    insertOutboxText: async (targetId: string, event: string) => {
      const { Attributes } = await client().send(
        new UpdateItemCommand({
          TableName: `${prefix}_counters`,
          Key: { id: { S: 'outbox' } },
          UpdateExpression: 'ADD n :one',
          ExpressionAttributeValues: { ':one': { N: '1' } },
          ReturnValues: 'UPDATED_NEW',
        }),
      )
      const Item = { seq: { N: Attributes?.n?.N ?? '' }, target_id: { S: targetId }, event: { S: event } }
      await client().send(new PutItemCommand({ TableName: `${prefix}_outbox`, Item }))
    },
    rows: async () => {
      const tables = ['executions', 'outbox', 'spawns', 'timers', 'processed', 'trace']
      const counts = tables.map(
        async (table) => [table, (await itemsOf(client(), `${prefix}_${table}`)).length] as const,
      )
      return Object.fromEntries(await Promise.all(counts))
    },
  } satisfies Probes
}
