import {
  CreateTableCommand,
  type CreateTableCommandInput,
  DescribeTableCommand,
  ResourceInUseException,
  ResourceNotFoundException,
  type ScalarAttributeType,
  type TableDescription,
  UpdateTableCommand,
} from '@aws-sdk/client-dynamodb'
import { Names, SchemaMissing, StoreUnavailable } from '@harel/store-base'
import type { Connection } from './client.js'
import type { Settings } from './options.js'

/** The tables of a prefix; Python harel calls that of the processed marks otherwise than in SQL. */
export function tablesOf(prefix: string) {
  const { executions, outbox, spawns, timers, counters, trace, definitions } = Names(prefix)
  return { executions, outbox, spawns, timers, processed: `${prefix}_processed`, counters, trace, definitions }
}

export type Tables = ReturnType<typeof tablesOf>

/** Executions of one status, in the order of their ids. */
export const BY_STATUS = 'by_status'
/** All timers, in the order of their times, under the one value of `all`. */
export const BY_DUE = 'by_due'

/** What a listing shows; Python harel has the first two and drops the others when it writes. */
export const SUMMARY = [
  'definition_id',
  'version',
  'summary_version',
  'status',
  'outcome',
  'active_path',
  'parent_id',
  'finished_at',
] as const

/** How long is waited for a table or an index to be made, in milliseconds. */
const PATIENCE = 120_000

type Definition = CreateTableCommandInput & { TableName: string }
type Key = readonly [name: string, type: ScalarAttributeType]

const keySchema = (hash: Key, range?: Key) => [
  { AttributeName: hash[0], KeyType: 'HASH' as const },
  ...(range === undefined ? [] : [{ AttributeName: range[0], KeyType: 'RANGE' as const }]),
]

function table(TableName: string, ...keys: [hash: Key, range?: Key]): Definition {
  const AttributeDefinitions = keys.flatMap((key) => (key ? [{ AttributeName: key[0], AttributeType: key[1] }] : []))
  return { TableName, BillingMode: 'PAY_PER_REQUEST', KeySchema: keySchema(...keys), AttributeDefinitions }
}

/** The table with an index, which shows these attributes beside the keys. */
function indexed(definition: Definition, IndexName: string, hash: Key, range: Key, shown: string[] = []): Definition {
  const { AttributeDefinitions = [] } = definition
  const known = AttributeDefinitions.map(({ AttributeName }) => AttributeName)
  const added = [hash, range].filter(([name]) => !known.includes(name))
  const Projection =
    shown.length === 0
      ? { ProjectionType: 'KEYS_ONLY' as const }
      : { ProjectionType: 'INCLUDE' as const, NonKeyAttributes: shown }
  return {
    ...definition,
    AttributeDefinitions: [
      ...AttributeDefinitions,
      ...added.map(([AttributeName, AttributeType]) => ({ AttributeName, AttributeType })),
    ],
    GlobalSecondaryIndexes: [{ IndexName, KeySchema: keySchema(hash, range), Projection }],
  }
}

function definitionsOf(tables: Tables, gsi: boolean): Definition[] {
  const executions = table(tables.executions, ['id', 'S'])
  const timers = table(tables.timers, ['execution_id', 'S'], ['path', 'S'])
  const shown = SUMMARY.filter((attribute) => attribute !== 'status')
  return [
    gsi ? indexed(executions, BY_STATUS, ['status', 'S'], ['id', 'S'], shown) : executions,
    table(tables.outbox, ['seq', 'N']),
    table(tables.spawns, ['seq', 'N']),
    gsi ? indexed(timers, BY_DUE, ['all', 'S'], ['fire_at', 'N']) : timers,
    table(tables.processed, ['execution_id', 'S'], ['event_id', 'S']),
    table(tables.counters, ['id', 'S']),
    table(tables.trace, ['execution_id', 'S'], ['idx', 'N']),
    table(tables.definitions, ['id', 'S'], ['version', 'S']),
  ]
}

/**
 * The tables of a prefix as JSON, an array of what `aws dynamodb create-table --cli-input-json` takes.
 *
 * @throws InvalidPrefix
 */
export const printSchema = (prefix = 'harel', gsi = false): string =>
  `${JSON.stringify(definitionsOf(tablesOf(prefix), gsi), undefined, 2)}\n`

const describe = (connection: Connection, { TableName }: Definition): Promise<TableDescription | undefined> =>
  connection.ask((client) =>
    client.send(new DescribeTableCommand({ TableName })).then(
      ({ Table }) => Table,
      (error: unknown) => {
        if (!(error instanceof ResourceNotFoundException)) throw error
        return undefined
      },
    ),
  )

/** What a table has not, and how to make it; undefined when it lacks nothing. */
function missing(definition: Definition, found: TableDescription | undefined) {
  const { TableName, AttributeDefinitions, GlobalSecondaryIndexes: [index] = [] } = definition
  if (found === undefined) return { name: TableName, command: new CreateTableCommand(definition) }
  if (index === undefined || indexOf(found, index.IndexName) !== undefined) return undefined
  const GlobalSecondaryIndexUpdates = [{ Create: index }]
  return {
    name: `the index ${index.IndexName} of ${TableName}`,
    command: new UpdateTableCommand({ TableName, AttributeDefinitions, GlobalSecondaryIndexUpdates }),
  }
}

const indexOf = (found: TableDescription, name: string | undefined) =>
  found.GlobalSecondaryIndexes?.find(({ IndexName }) => IndexName === name)

function isReady({ GlobalSecondaryIndexes: [index] = [] }: Definition, found: TableDescription | undefined): boolean {
  // One that is being changed can be used.
  if (found?.TableStatus !== 'ACTIVE' && found?.TableStatus !== 'UPDATING') return false
  return index === undefined || indexOf(found, index.IndexName)?.IndexStatus === 'ACTIVE'
}

/** Makes the tables and indexes that are missing and waits until all can be used. @throws SchemaMissing, StoreUnavailable */
export async function prepareTables(connection: Connection, tables: Tables, settings: Settings): Promise<void> {
  const wanted = await Promise.all(
    definitionsOf(tables, settings.gsi).map(async (definition) => {
      const found = await describe(connection, definition)
      return { definition, lack: missing(definition, found), ready: isReady(definition, found) }
    }),
  )
  const lacks = wanted.flatMap(({ lack }) => lack ?? [])
  if (lacks.length > 0 && !settings.createSchema) throw new SchemaMissing(lacks.map(({ name }) => name))
  const deadline = performance.now() + PATIENCE
  await Promise.all(
    wanted.map(async ({ definition, lack, ready }) => {
      if (lack !== undefined) await make(connection, lack.command)
      if (!ready) await untilReady(connection, definition, deadline)
    }),
  )
}

const make = (connection: Connection, command: CreateTableCommand | UpdateTableCommand): Promise<void> =>
  connection.ask(async (client) => {
    try {
      await (command instanceof CreateTableCommand ? client.send(command) : client.send(command))
    } catch (error) {
      // Somebody else was first.
      if (!(error instanceof ResourceInUseException)) throw error
    }
  })

async function untilReady(connection: Connection, definition: Definition, deadline: number): Promise<void> {
  for (let wait = 20; !isReady(definition, await describe(connection, definition)); wait = Math.min(wait * 2, 2000)) {
    if (performance.now() > deadline) {
      throw new StoreUnavailable(`table ${definition.TableName} is not ready yet; open the store again later`)
    }
    await new Promise((resolve) => setTimeout(resolve, wait))
  }
}
