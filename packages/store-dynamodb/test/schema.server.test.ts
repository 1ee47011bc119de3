import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import {
  CreateTableCommand,
  DescribeTableCommand,
  type DynamoDBClient,
  ListTablesCommand,
  ResourceNotFoundException,
} from '@aws-sdk/client-dynamodb'
import { DynamoStore, InvalidArgument, InvalidPrefix, printSchema, SchemaMissing } from '@harel/store-dynamodb'
import { withServer } from '@harel-tooling/test-servers/vitest'
import { beforeEach, describe, expect, test } from 'vitest'
import { everything, execution } from './commits.js'
import { clientFor, configFor, freshPrefix, itemsOf, storeOn } from './database.js'
import { Intermediary, refusal } from './intermediary.js'

const TABLES = ['counters', 'definition_versions', 'executions', 'outbox', 'processed', 'spawns', 'timers', 'trace']

withServer('dynamodb', ({ url }) => {
  let way: Intermediary
  let client: DynamoDBClient
  let prefix: string

  beforeEach(async () => {
    way = await Intermediary.to(url)
    client = clientFor(way.url)
    prefix = freshPrefix()
  })

  const tables = async (): Promise<string[]> => {
    const names: string[] = []
    let from: string | undefined
    do {
      const page = await client.send(new ListTablesCommand({ ExclusiveStartTableName: from }))
      names.push(...(page.TableNames ?? []))
      from = page.LastEvaluatedTableName
    } while (from !== undefined)
    return names.filter((name) => name.startsWith(`${prefix}_`)).map((name) => name.slice(prefix.length + 1))
  }
  const describeTable = async (name: string) =>
    (await client.send(new DescribeTableCommand({ TableName: `${prefix}_${name}` }))).Table

  test('the first call makes the tables, on demand, and later stores ask for each once', async () => {
    const store = storeOn(client, { prefix })
    await store.save(execution('a'))
    expect((await tables()).sort()).toEqual(TABLES)
    for (const name of TABLES) {
      const table = await describeTable(name)
      expect(table).toMatchObject({ TableStatus: 'ACTIVE', BillingModeSummary: { BillingMode: 'PAY_PER_REQUEST' } })
      expect(table?.GlobalSecondaryIndexes ?? []).toEqual([])
    }
    const operations = await way.during(() => storeOn(client, { prefix }).load('a'))
    expect(operations).toEqual([...Array(8).fill('DescribeTable'), 'GetItem'])
  })

  test('printSchema gives the tables that are made', async () => {
    for (const definition of JSON.parse(printSchema(prefix, true)))
      await client.send(new CreateTableCommand(definition))
    expect((await tables()).sort()).toEqual(TABLES)
    const store = storeOn(client, { prefix, gsi: true, createSchema: false })
    await store.commit(execution('a'), everything('a'))
    expect(await store.dueTimers(9)).toHaveLength(1)
    expect(() => printSchema('no good')).toThrow(InvalidPrefix)
  })

  test('ten processes that open a database without tables at once all work (B42)', async () => {
    const program = join(import.meta.dirname, 'programs/open.ts')
    const codes = await Promise.all(
      Array.from({ length: 10 }, async (_, n) => {
        const child = spawn(process.execPath, [program, url, prefix, `e${n}`], { stdio: 'inherit' })
        return (await once(child, 'exit'))[0]
      }),
    )
    expect(codes).toEqual(Array(10).fill(0))
    expect(await itemsOf(client, `${prefix}_executions`)).toHaveLength(10)
  })

  describe('a table that is being made', () => {
    const being = (TableStatus: string) => ({ status: 200, body: { Table: { TableStatus } } })

    test('is waited for until it can be used (weakness 31)', async () => {
      await storeOn(client, { prefix }).load('a')
      way.fail('DescribeTable', being('CREATING'), 12)
      const operations = await way.during(() => storeOn(client, { prefix }).load('a'))
      expect(operations.filter((operation) => operation === 'DescribeTable').length).toBeGreaterThanOrEqual(20)
      expect(operations.at(-1)).toBe('GetItem')
    })

    test('is waited for where it does not show yet, and where somebody else was faster (B42)', async () => {
      await storeOn(client, { prefix }).load('a')
      way.fail('DescribeTable', refusal('ResourceNotFoundException'), 12)
      const operations = await way.during(() => storeOn(client, { prefix }).load('a'))
      // The service answers each of them that the table is in use.
      expect(operations.filter((operation) => operation === 'CreateTable')).toHaveLength(8)
      expect(operations.at(-1)).toBe('GetItem')
    })

    test('is made again where the account makes too many at once', async () => {
      way.fail('CreateTable', refusal('LimitExceededException'), 5)
      await storeOn(client, { prefix }).load('a')
      expect((await tables()).sort()).toEqual(TABLES)
    })
  })

  describe('with createSchema: false', () => {
    test('nothing is made, and what is missing is named (B43)', async () => {
      const connecting = DynamoStore.connect(configFor(way.url), { prefix, createSchema: false })
      const error = await connecting.catch((reason: unknown) => reason)
      expect(error).toBeInstanceOf(SchemaMissing)
      expect([...(error as SchemaMissing).missing].sort()).toEqual(TABLES.map((name) => `${prefix}_${name}`))
      expect(await tables()).toEqual([])
      await expect(storeOn(client, { prefix, createSchema: false }).save(execution('a'))).rejects.toThrow(SchemaMissing)
    })

    test('a store works on tables that are there, and asks for no more than they (B43)', async () => {
      await storeOn(client, { prefix }).load('a')
      const store = storeOn(client, { prefix, createSchema: false })
      const operations = await way.during(() => store.save(execution('a')))
      expect(operations.filter((operation) => operation.includes('Table') && operation !== 'DescribeTable')).toEqual([])
    })

    test('an index that is missing is named', async () => {
      await storeOn(client, { prefix }).load('a')
      const error = await storeOn(client, { prefix, gsi: true, createSchema: false })
        .load('a')
        .catch((reason: unknown) => reason)
      expect(error).toBeInstanceOf(SchemaMissing)
      expect((error as SchemaMissing).missing).toEqual([
        `the index by_status of ${prefix}_executions`,
        `the index by_due of ${prefix}_timers`,
      ])
    })
  })

  test('indexes are added to tables of ours that have none, and find what was written before', async () => {
    const before = storeOn(client, { prefix })
    await before.commit(execution('a'), everything('a'))
    const store = storeOn(client, { prefix, gsi: true })
    const operations = await way.during(() => store.commit(execution('b'), everything('b')))
    expect(operations.filter((operation) => operation === 'UpdateTable')).toHaveLength(2)
    expect((await store.listExecutions({ status: 'RUNNING' })).items.map(({ id }) => id)).toEqual(['a', 'b'])
    expect((await store.dueTimers(9)).map(({ executionId }) => executionId)).toEqual(['a', 'b'])
  })

  test('a failed opening is tried again by the next call (B44)', async () => {
    const store = storeOn(client, { prefix })
    way.fail('DescribeTable', refusal('AccessDeniedException'), 8)
    await expect(store.load('a')).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
      cause: { name: 'AccessDeniedException' },
    })
    way.heal()
    expect(await store.load('a')).toBeUndefined()
  })

  test('bad options are refused before anything is asked', async () => {
    const bad: [options: object, error: unknown][] = [
      [{ prefix: 'a-b' }, InvalidPrefix],
      [{ traceMax: -1 }, InvalidArgument],
      [{ createSchema: 'no' }, InvalidArgument],
      [{ gsi: 1 }, InvalidArgument],
      [{ prefx: 'a' }, InvalidArgument],
    ]
    for (const [options, error] of bad) {
      expect(() => new DynamoStore(client, options)).toThrow(error as typeof Error)
      await expect(DynamoStore.connect(configFor(way.url), options)).rejects.toThrow(error as typeof Error)
    }
    expect(way.requests).toEqual([])
    await expect(describeTable('executions')).rejects.toThrow(ResourceNotFoundException)
  })
})
