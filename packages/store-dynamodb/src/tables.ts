import {
  CreateTableCommand,
  type CreateTableCommandInput,
  DescribeTableCommand,
  type DynamoDBClient,
  type GlobalSecondaryIndex,
  ResourceInUseException,
  ResourceNotFoundException,
  type ScalarAttributeType,
} from '@aws-sdk/client-dynamodb'
import { Names, SchemaMissing, StoreUnavailable } from '@harel/store-base'
import { toStoreError } from './errors.js'
import type { Settings } from './options.js'

/** The tables of a prefix; Python harel calls that of the processed marks otherwise than in SQL. */
export function tablesOf(prefix: string) {
  const names = Names(prefix)
  return {
    executions: names.executions,
    outbox: names.outbox,
    spawns: names.spawns,
    timers: names.timers,
    processed: `${prefix}_processed`,
    counters: names.counters,
    trace: names.trace,
    definitions: names.definitions,
  }
}

export type Tables = ReturnType<typeof tablesOf>

type Key = readonly [name: string, type: ScalarAttributeType]

/** Executions of one status, in the order of their ids. */
export const BY_STATUS = 'by_status'
/** All timers, in the order of their times, under the one value of `all`. */
export const BY_DUE = 'by_due'

/** Waiting for a table to be made, in milliseconds. */
const PATIENCE = 120_000

const schemaOf = (hash: Key, range?: Key) => ({
  KeySchema: [
    { AttributeName: hash[0], KeyType: 'HASH' as const },
    ...(range === undefined ? [] : [{ AttributeName: range[0], KeyType: 'RANGE' as const }]),
  ],
  AttributeDefinitions: [hash, ...(range === undefined ? [] : [range])].map(([AttributeName, AttributeType]) => ({
    AttributeName,
    AttributeType,
  })),
})

function indexed(table: CreateTableCommandInput, name: string, hash: Key, range: Key): CreateTableCommandInput {
  const { KeySchema, AttributeDefinitions } = schemaOf(hash, range)
  const index: GlobalSecondaryIndex = { IndexName: name, KeySchema, Projection: { ProjectionType: 'ALL' } }
  const known = new Set(table.AttributeDefinitions?.map(({ AttributeName }) => AttributeName))
  const added = AttributeDefinitions.filter(({ AttributeName }) => !known.has(AttributeName))
  return {
    ...table,
    AttributeDefinitions: [...(table.AttributeDefinitions ?? []), ...added],
    GlobalSecondaryIndexes: [index],
  }
}

function definitionsOf(tables: Tables, gsi: boolean): CreateTableCommandInput[] {
  const table = (TableName: string, hash: Key, range?: Key): CreateTableCommandInput => ({
    TableName,
    BillingMode: 'PAY_PER_REQUEST',
    ...schemaOf(hash, range),
  })
  const executions = table(tables.executions, ['id', 'S'])
  const timers = table(tables.timers, ['execution_id', 'S'], ['path', 'S'])
  return [
    gsi ? indexed(executions, BY_STATUS, ['status', 'S'], ['id', 'S']) : executions,
    table(tables.outbox, ['seq', 'N']),
    table(tables.spawns, ['seq', 'N']),
    gsi ? indexed(timers, BY_DUE, ['all', 'S'], ['fire_at', 'N']) : timers,
    table(tables.processed, ['execution_id', 'S'], ['event_id', 'S']),
    table(tables.counters, ['id', 'S']),
    table(tables.trace, ['execution_id', 'S'], ['idx', 'N']),
    table(tables.definitions, ['id', 'S'], ['version', 'S']),
  ]
}

type State = 'missing' | 'active' | 'other'

async function stateOf(client: DynamoDBClient, TableName: string | undefined): Promise<State> {
  try {
    const { Table } = await client.send(new DescribeTableCommand({ TableName }))
    return Table?.TableStatus === 'ACTIVE' || Table?.TableStatus === 'UPDATING' ? 'active' : 'other'
  } catch (error) {
    if (error instanceof ResourceNotFoundException) return 'missing'
    throw toStoreError(error, false)
  }
}

/** Makes the tables that are missing and waits until all can be used. @throws SchemaMissing, StoreUnavailable */
export async function prepareTables(
  client: DynamoDBClient,
  tables: Tables,
  { createSchema, gsi }: Settings,
): Promise<void> {
  const wanted = definitionsOf(tables, gsi)
  const states = await Promise.all(wanted.map(({ TableName }) => stateOf(client, TableName)))
  const missing = wanted.filter((_, index) => states[index] === 'missing')
  if (missing.length > 0 && !createSchema) throw new SchemaMissing(missing.map(({ TableName = '' }) => TableName))
  await Promise.all(missing.map((table) => create(client, table)))
  const deadline = performance.now() + PATIENCE
  await Promise.all(wanted.map(({ TableName = '' }) => untilActive(client, TableName, deadline)))
}

async function create(client: DynamoDBClient, table: CreateTableCommandInput): Promise<void> {
  try {
    await client.send(new CreateTableCommand(table))
  } catch (error) {
    // Somebody else was first.
    if (!(error instanceof ResourceInUseException)) throw toStoreError(error, false)
  }
}

async function untilActive(client: DynamoDBClient, table: string, deadline: number): Promise<void> {
  for (let wait = 20; (await stateOf(client, table)) !== 'active'; wait = Math.min(wait * 2, 2000)) {
    if (performance.now() > deadline) throw new StoreUnavailable(`table ${table} did not become active in time`)
    await new Promise((resolve) => setTimeout(resolve, wait))
  }
}
