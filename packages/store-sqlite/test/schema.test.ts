import { InvalidArgument, SchemaMissing } from '@harel/store-base'
import { storeSchema } from '@harel/store-base/sql'
import { printSchema, SqliteStore } from '@harel/store-sqlite'
import { describe, expect, test } from 'vitest'
import { connect, everything, execution, freshFile, recordPrepared, rows, twins } from './helpers.js'

const TABLES = ['executions', 'outbox', 'processed_events', 'timers', 'spawns', 'trace'].map((name) => `harel_${name}`)

const objects = (path: string) => {
  const sql = "SELECT type, name FROM sqlite_master WHERE name NOT LIKE 'sqlite_%' ORDER BY type, name"
  return connect(path).prepare(sql).all()
}

describe.each(twins)('$name', ({ open }) => {
  test('makes all tables, indexes and triggers in an empty file', async () => {
    const path = freshFile()
    await (await open(path)).close()
    const expected = storeSchema('sqlite')
      .filter(({ kind }) => kind !== 'column')
      .map(({ kind, name }) => ({ type: kind, name }))
    expect(objects(path)).toHaveLength(expected.length)
    expect(objects(path)).toEqual(expect.arrayContaining(expected))
  })

  test('makes nothing with createSchema: false, and says which tables are missing', async () => {
    const path = freshFile()
    const error = await open(path, { createSchema: false }).catch((thrown) => thrown)
    expect(error).toBeInstanceOf(SchemaMissing)
    expect([...error.missing].sort()).toEqual([...TABLES].sort())
    for (const table of TABLES) expect(error.message).toContain(table)
    expect(objects(path)).toEqual([])
  })

  test('says which single table is missing', async () => {
    const path = freshFile()
    await (await open(path)).close()
    connect(path).exec('DROP TABLE harel_timers')
    await expect(open(path, { createSchema: false })).rejects.toMatchObject({ missing: ['harel_timers'] })
    await (await open(path)).close()
    await (await open(path, { createSchema: false })).close()
  })

  test('opens what printSchema shows with createSchema: false, and lacks nothing', async () => {
    const path = freshFile()
    connect(path).exec(printSchema('app'))
    const warnings: string[] = []
    const options = { prefix: 'app', createSchema: false, onWarning: (text: string) => warnings.push(text) }
    await using store = await open(path, options)
    await store.commit(execution('a'), everything('a'))
    expect((await store.listExecutions({ rootsOnly: true })).items).toHaveLength(1)
    expect(warnings).toEqual([])
  })

  test('refuses a prefix that differs from an existing one by case only (weakness 46)', async () => {
    const path = freshFile()
    await (await open(path, { prefix: 'App' })).close()
    for (const createSchema of [true, false]) {
      await expect(open(path, { prefix: 'app', createSchema })).rejects.toThrow(InvalidArgument)
    }
    await (await open(path, { prefix: 'App' })).close()
  })

  test('keeps two prefixes of one file apart', async () => {
    const path = freshFile()
    await using one = await open(path, { prefix: 'one' })
    await using two = await open(path, { prefix: 'two' })
    await one.commit(execution('a', { context: { of: 'one' } }), everything('a'))
    expect(await two.load('a')).toBeUndefined()
    expect(await two.pendingOutbox()).toEqual([])
    await two.commit(execution('a', { context: { of: 'two' } }), everything('a'))
    await two.purge('a', 1)
    expect((await one.load('a'))?.context).toEqual({ of: 'one' })
    const db = connect(path)
    expect(Object.values(rows(db, 'one'))).toEqual([1, 1, 1, 1, 1, 1])
    expect(Object.values(rows(db, 'two'))).toEqual([0, 0, 0, 0, 0, 0])
  })

  test('says so when the tables go away under it', async () => {
    const path = freshFile()
    await using store = await open(path)
    connect(path).exec('DROP TABLE harel_outbox')
    await expect(store.pendingOutbox()).rejects.toMatchObject({ code: 'SCHEMA_MISSING', missing: ['harel_outbox'] })
  })

  test('says so when another thing has the name of a table', async () => {
    const path = freshFile()
    connect(path).exec('CREATE VIEW harel_outbox AS SELECT 1 AS seq')
    await expect(open(path)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
  })
})

test('the second start runs no DDL and takes no lock (B41, weakness 44)', () => {
  const db = connect(freshFile())
  new SqliteStore(db)
  const texts = recordPrepared(db)
  const executed: string[] = []
  const exec = db.exec.bind(db)
  db.exec = (sql) => {
    executed.push(sql)
    return exec(sql)
  }
  new SqliteStore(db)
  expect([...texts].filter((sql) => !/^(SELECT|PRAGMA)/i.test(sql))).toEqual([])
  expect(executed).toEqual(['PRAGMA synchronous = FULL'])
})

test('a schema that breaks off half-way is finished by the next start', () => {
  const db = connect(freshFile())
  const all = storeSchema('sqlite').filter(({ kind }) => kind !== 'column')
  for (const { sql } of all.slice(0, 9)) db.exec(sql)
  const store = new SqliteStore(db, { onWarning: () => expect.unreachable() })
  store.commit(execution('a'), everything('a'))
  expect(store.listExecutions({ status: 'PENDING' }).items).toHaveLength(1)
  const names = db.prepare('SELECT name FROM sqlite_master').pluck().all()
  for (const { name } of all) expect(names).toContain(name)
})
