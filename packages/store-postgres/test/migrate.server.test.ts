import type { ListQuery } from '@harel/store-base'
import type { PostgresStore } from '@harel/store-postgres'
import { withServer } from '@harel-tooling/test-servers/vitest'
import type { Sql } from 'postgres'
import { describe, expect, test } from 'vitest'
import { connect, execution, newSchema, open, pass, useDatabase } from './helpers.js'
import { pythonDatabase, pythonExecutions } from './python.js'

const INDEXES = ['by_definition', 'by_id', 'by_status', 'roots_by_definition', 'roots_by_status']
const queries: ListQuery[] = [
  {},
  { status: 'DONE' },
  { status: ['DONE', 'RUNNING'], rootsOnly: true },
  { definitionId: 'd' },
  { definitionId: 'none' },
  { status: 'FAILED', definitionId: 'd' },
]

/** How many executions each query finds on its first page, and the first and the last of them. */
const found = (store: PostgresStore) =>
  Promise.all(
    queries.map(async (query) => {
      const { items, nextCursor } = await store.listExecutions({ ...query, limit: 1000 })
      return [items.length, items[0]?.id, items.at(-1)?.id, nextCursor !== null]
    }),
  )

/** The valid and the invalid indexes of the executions. */
async function indexes(sql: Sql, schema: string, valid = true): Promise<string[]> {
  const rows = await sql.unsafe(`SELECT c.relname::text AS name FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
    WHERE i.indrelid = '${schema}.harel_executions'::regclass AND i.indisvalid = ${valid} AND NOT i.indisprimary ORDER BY 1`)
  return rows.map(({ name }) => name.replace('harel_executions_', ''))
}

withServer('postgres', (server) => {
  const database = useDatabase(server)

  /** Tables of Python with so many executions. */
  const setUp = async (count: number) => {
    const schema = newSchema()
    const admin = connect(database.url)
    await admin.unsafe(`CREATE SCHEMA ${schema}`)
    const sql = connect(database.url, { connection: { search_path: schema } })
    await pythonDatabase(sql)
    await pythonExecutions(sql, count)
    const warnings: string[] = []
    const openStore = (options = {}) =>
      open(database.url, { schema, onWarning: (text) => warnings.push(text), ...options })
    return { schema, sql, warnings, openStore }
  }

  test('small tables of Python get everything when they are opened', async () => {
    const { schema, sql, warnings, openStore } = await setUp(1000)
    const store = await openStore()
    expect(warnings).toEqual([])
    expect(await indexes(sql, schema)).toEqual(INDEXES)
    const [storage] = await sql`SELECT reloptions FROM pg_class WHERE oid = 'harel_executions'::regclass`
    expect(storage?.reloptions).toEqual(['fillfactor=70'])
    expect(await found(store)).toEqual([
      [1000, 'p00001', 'p01000', false],
      [500, 'p00002', 'p01000', false],
      [1000, 'p00001', 'p01000', false],
      [1000, 'p00001', 'p01000', false],
      [0, undefined, undefined, false],
      [0, undefined, undefined, false],
    ])
    await pythonExecutions(sql, 0)
    const held = await store.load('p00001')
    if (held !== undefined) await store.commit({ ...held, status: 'FAILED' })
    expect((await store.listExecutions({ status: 'FAILED' })).items).toMatchObject([{ id: 'p00001', version: 2 }])
    await openStore({ createSchema: false })
  })

  describe('large tables of Python', () => {
    test('are listed without indexes, with a warning, until migrate adds them', async () => {
      const { schema, sql, warnings, openStore } = await setUp(1500)
      const store = await openStore()
      expect(warnings).toEqual([expect.stringMatching(/harel_executions_by_id.*migrate\(\)/)])
      expect(await indexes(sql, schema)).toEqual([])
      const before = await found(store)
      expect(before[1]).toEqual([750, 'p00002', 'p01500', false])
      await store.commit(execution('own', { status: 'DONE' }))
      expect((await found(store))[1]).toEqual([751, 'own', 'p01500', false])
      expect(await store.purge('own', 1)).toBe(true)

      await store.migrate()
      expect(await indexes(sql, schema)).toEqual(INDEXES)
      expect(await found(store)).toEqual(before)
      await sql.unsafe('ANALYZE harel_executions')
      await store.transaction(async (s, tx) => {
        const scanned = async () => {
          const [row] = await tx.unsafe(`SELECT seq_tup_read::int AS scanned FROM pg_stat_xact_user_tables
            WHERE schemaname = '${schema}' AND relname = 'harel_executions'`)
          return row?.scanned
        }
        const sofar = await scanned()
        await s.listExecutions({ status: 'DONE', limit: 10 })
        expect(await scanned()).toBe(sofar)
      })
      warnings.length = 0
      await openStore()
      expect(warnings).toEqual([])
    })

    test('are migrated while writers go on, also where they hold a row, and no row is left out', async () => {
      const { sql, openStore } = await setUp(3000)
      const texts: string[] = []
      const store = await openStore({ client: { debug: (_connection: number, text: string) => texts.push(text) } })
      let written = 0
      let stop = false
      const write = async (n: number) => {
        while (!stop) {
          await sql.unsafe(`UPDATE harel_executions SET data = replace(data, '"RUNNING"', '"FAILED"'), version = version + 1
            WHERE id = 'p0123${n}'`)
          written++
          await pass(5)
        }
      }
      const writers = [1, 3].map(write)
      const holder = await sql.reserve()
      await holder.unsafe(`BEGIN; SELECT 1 FROM harel_executions WHERE id = 'p01234' FOR UPDATE`)
      texts.length = 0
      const migrating = store.migrate()
      await pass(500)
      // A writer that waited for the migration would wait for the holder.
      for (const wanted = written + 20; written < wanted; ) await pass(10)
      await holder.unsafe('ROLLBACK')
      holder.release()
      await migrating
      stop = true
      await Promise.all(writers)
      const made = texts.filter((text) => text.startsWith('CREATE INDEX'))
      expect(made.length).toBeGreaterThan(4)
      expect(made.filter((text) => !text.startsWith('CREATE INDEX CONCURRENTLY'))).toEqual([])
      const [row] =
        await sql`SELECT count(*)::int AS unfilled FROM harel_executions WHERE meta_version IS DISTINCT FROM version`
      expect(row?.unfilled).toBe(0)
      expect((await store.listExecutions({ status: 'FAILED' })).items.map(({ id }) => id)).toEqual(['p01231', 'p01233'])
    })

    test('are migrated once by several that try at the same time', async () => {
      const { schema, sql, openStore } = await setUp(2000)
      const stores = await Promise.all([1, 2, 3].map(() => openStore()))
      await Promise.all(stores.map((store) => store.migrate()))
      expect(await indexes(sql, schema)).toEqual(INDEXES)
      expect(await indexes(sql, schema, false)).toEqual([])
      for (const store of stores) expect((await found(store))[1]).toEqual([1000, 'p00002', 'p02000', false])
    })
  })

  test.each([
    { size: 'small', count: 100 },
    { size: 'large', count: 1500 },
  ])('an index of a $size table that could not be finished is made anew', async ({ count }) => {
    const { schema, sql, warnings, openStore } = await setUp(count)
    const first = await openStore()
    await first.migrate()
    await sql.unsafe(`UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'harel_executions_by_status'::regclass`)
    warnings.length = 0
    const store = await openStore()
    expect(warnings).toHaveLength(count > 1000 ? 1 : 0)
    expect((await found(store))[1]?.[0]).toBe(count / 2)
    await store.migrate()
    expect(await indexes(sql, schema)).toEqual(INDEXES)
    expect(await indexes(sql, schema, false)).toEqual([])
    expect((await found(store))[1]?.[0]).toBe(count / 2)
  })
})
