import { InvalidArgument, newExecution } from '@harel/store-base'
import { PostgresStore } from '@harel/store-postgres'
import { withServer } from '@harel-tooling/test-servers/vitest'
import { describe, expect, test } from 'vitest'
import { type ClientOptions, connect, many, newSchema, open, useDatabase, versions } from './helpers.js'

// The driver sends statements before earlier ones are answered, up to a limit for each connection. A BEGIN that comes at
// that limit does not get the connection for itself: what others send follows it, and is never committed.
withServer('postgres', (server) => {
  const database = useDatabase(server)

  const pools = {
    'a pool of its own': (schema: string, client: ClientOptions) => open(database.url, { schema, client }),
    "a pool of the caller's": async (schema: string, client: ClientOptions) =>
      new PostgresStore(connect(database.url, client), { schema }),
  }

  describe.each(Object.entries(pools))('a store on %s', (_name, openStore) => {
    test.each([{ max: 1, max_pipeline: 1 }, { max: 2, max_pipeline: 3 }, { max: 1 }])(
      'loses nothing when transactions begin among more statements than its connections take: %o (B49, B52, B53)',
      async (client) => {
        const schema = newSchema()
        const store = await openStore(schema, client)
        await store.save(newExecution({ id: 'first', definitionId: 'd' }))
        const repeat = async (times: number, act: () => Promise<unknown>) => {
          for (let n = 0; n < times; n++) await act()
        }
        const held = many(20)
        await Promise.all([
          ...Array.from({ length: 40 }, () => repeat(30, () => store.load('first'))),
          ...held.slice(0, 10).map((each) => repeat(10, () => store.transaction((inner) => inner.commit(each)))),
          ...held.slice(10).map((each) => repeat(10, () => store.commit(each))),
        ])
        expect(versions(held)).toEqual(held.map(() => 10))
        const sql = connect(database.url)
        const [stored] = await sql.unsafe(`SELECT sum(version)::int AS sum FROM ${schema}.harel_executions`)
        expect(stored?.sum).toBe(201)
        const [left] = await sql`SELECT count(*)::int AS count FROM pg_stat_activity
        WHERE datname = current_database() AND state LIKE 'idle in transaction%'`
        expect(left?.count).toBe(0)
      },
    )
  })

  test('a client whose driver cannot keep transactions apart is refused, unless the pool is our own (B53)', async () => {
    const client = { max_pipeline: 0, max: 2 }
    expect(() => new PostgresStore(connect(database.url, client))).toThrow(InvalidArgument)
    const store = await open(database.url, { schema: newSchema(), client })
    const held = many(20)
    await Promise.all([...held.map((each) => store.transaction((inner) => inner.commit(each))), store.load('a')])
    expect(versions(held)).toEqual(held.map(() => 1))
  })
})
