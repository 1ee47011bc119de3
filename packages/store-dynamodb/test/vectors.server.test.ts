import type { DynamoDBClient } from '@aws-sdk/client-dynamodb'
import { DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb'
import { DynamoStore } from '@harel/store-dynamodb'
import { canonical } from '@harel-tooling/canonical'
import { withServer } from '@harel-tooling/test-servers/vitest'
import { describe, expect, test } from 'vitest'
import { everything, execution } from './commits.js'
import { clientFor, configFor, freshPrefix, type Item, itemsOf, storeOn } from './database.js'
import { readByPython, restore } from './python.js'

const TABLES = ['executions', 'outbox', 'spawns', 'timers', 'processed', 'counters', 'trace']

/** What the options of a caller's client could change. */
const clients: { name: string; wrap: (client: DynamoDBClient) => DynamoDBClient | DynamoDBDocumentClient }[] = [
  { name: 'client', wrap: (client) => client },
  { name: 'document client', wrap: (client) => DynamoDBDocumentClient.from(client) },
  {
    name: 'document client that converts whatever it can',
    wrap: (client) =>
      DynamoDBDocumentClient.from(client, {
        marshallOptions: {
          convertEmptyValues: true,
          removeUndefinedValues: true,
          convertClassInstanceToMap: true,
          convertTopLevelContainer: true,
          allowImpreciseNumbers: true,
        },
        unmarshallOptions: { wrapNumbers: true, convertWithoutMapWrapper: true },
      }),
  },
]

/** The attributes of an item come in any order. */
const nameOf = (item: Item) => JSON.stringify(Object.entries(item).sort())

const dump = async (client: DynamoDBClient, prefix: string): Promise<Record<string, Item[]>> => {
  const tables = TABLES.map(async (table) => {
    const items = await itemsOf(client, `${prefix}_${table}`)
    return [table, items.sort((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1))] as const
  })
  return Object.fromEntries(await Promise.all(tables))
}

withServer('dynamodb', ({ url }) => {
  describe.each([
    { name: 'scenario', ns: 'chk-' },
    { name: 'runner', ns: 'run-' },
  ] as const)('the tables that Python has written ($name)', ({ name, ns }) => {
    test.each(clients)(
      'are read exactly as Python reads them, by a $name, and are left as they are',
      async ({ wrap }) => {
        const client = clientFor(url)
        const prefix = freshPrefix()
        await restore(client, name, prefix)
        const before = await dump(client, prefix)
        const warnings: string[] = []
        const store = storeOn(wrap(client), { prefix, onWarning: (message) => warnings.push(message) })
        expect(await canonical(store, ns)).toEqual(readByPython(name))
        expect(warnings).toEqual([])
        expect(await dump(client, prefix)).toEqual(before)
      },
    )

    test('are read exactly by a store with a client of its own', async () => {
      const prefix = freshPrefix()
      await restore(clientFor(url), name, prefix)
      await using store = await DynamoStore.connect(configFor(url), { prefix })
      expect(await canonical(store, ns)).toEqual(readByPython(name))
    })
  })

  test.each(clients)(
    'what is written by a $name has the attributes that Python looks for, of its types',
    async ({ wrap }) => {
      const client = clientFor(url)
      const python = freshPrefix()
      await restore(client, 'scenario', python)
      const ours = freshPrefix()
      const store = storeOn(wrap(client), { prefix: ours })
      await store.commit(execution('a'), everything('a'))
      const [expected, written] = [await dump(client, python), await dump(client, ours)]
      for (const table of TABLES) {
        const [example = {}] = expected[table] ?? []
        const [item = {}] = written[table] ?? []
        for (const [attribute, value] of Object.entries(example)) {
          const types = attribute === 'target_id' ? ['S', 'NULL'] : Object.keys(value)
          expect(types, `${table}.${attribute}`).toContain(Object.keys(item[attribute] ?? {})[0])
        }
      }
    },
  )

  test.each(clients)(
    'empty texts, sets of nothing and large numbers are stored exactly by a $name (B22, B28)',
    async ({ wrap }) => {
      const client = clientFor(url)
      const store = storeOn(wrap(client))
      const context = {
        '': '',
        empty: [],
        nothing: {},
        null: null,
        numbers: [1.23e40, 1e-7, 5e-324, 2 ** 53, 1e308, 0],
      }
      const fields = { outcome: '', activePath: '', rootPath: '', context, finishedAt: 1e300, parentId: null }
      await store.commit(execution('a', fields), {
        ...everything('a'),
        timers: [1e300, 5e-324, -1e300, 0, 1700000000.0000002].map((fireAt) => ({
          action: 'schedule',
          path: `at ${fireAt}`,
          fireAt,
        })),
        trace: { '': '', context },
      })
      expect(await store.load('a')).toMatchObject(fields)
      expect((await store.listExecutions()).items).toMatchObject([{ outcome: '', activePath: '', finishedAt: 1e300 }])
      expect(await store.readTrace('a')).toEqual([{ '': '', context, index: 0 }])
      const times = (await store.dueTimers(Number.MAX_VALUE)).map(({ fireAt }) => fireAt)
      expect(times).toEqual([-1e300, 0, 5e-324, 1700000000.0000002, 1e300])
      for (const fireAt of times) await store.deleteTimer('a', `at ${fireAt}`, fireAt)
      expect(await store.dueTimers(Number.MAX_VALUE)).toEqual([])
      expect(await store.publishDefinition({ id: 'd', version: '1', definition: context, publishedAt: 1e300 })).toEqual(
        {
          id: 'd',
          version: '1',
          definition: context,
          publishedAt: 1e300,
        },
      )
    },
  )
})
