import { describe, expect, test } from 'vitest'
import { InvalidArgument, SchemaMissing, StoreUnavailable } from '../src/errors.js'
import { migrateRemoteSchema, prepareRemoteSchema } from '../src/sql/remote-schema.js'
import { storeSchema } from '../src/sql/schema.js'
import { PYTHON_TABLES, rowsOf, SqliteExecutor } from './sqlite-executor.js'

const prepare = async (executor: SqliteExecutor, options: { prefix?: string; createSchema?: boolean } = {}) => {
  const warnings: string[] = []
  const given = { prefix: 'harel', createSchema: true, ...options }
  const { summary } = await prepareRemoteSchema(executor, given, (warning) => warnings.push(warning))
  return { summary, warnings }
}

const names = ({ db }: SqliteExecutor): unknown[] =>
  db
    .prepare("SELECT name FROM sqlite_master WHERE name NOT LIKE 'sqlite_%' ORDER BY name")
    .all()
    .map(({ name }) => name)

const columns = ({ db }: SqliteExecutor): unknown[] =>
  db
    .prepare("SELECT name FROM pragma_table_info('harel_executions')")
    .all()
    .map(({ name }) => name)

const wanted = (prefix?: string): string[] =>
  storeSchema('sqlite', prefix)
    .flatMap(({ kind, name }) => (kind === 'column' ? [] : [name]))
    .sort()

/** The tables of Python with so many executions, every third done. */
function pythonDatabase(count: number): SqliteExecutor {
  const executor = new SqliteExecutor()
  executor.db.exec(PYTHON_TABLES)
  const insert = executor.db.prepare("INSERT INTO harel_executions VALUES (?, 'd', ?, 1)")
  executor.db.exec('BEGIN')
  for (let n = 0; n < count; n++) {
    insert.run(`e${n}`, JSON.stringify({ status: n % 3 === 0 ? 'DONE' : 'RUNNING', finished_at: n / 2 }))
  }
  executor.db.exec('COMMIT')
  return executor
}

const done = (executor: SqliteExecutor): number =>
  rowsOf(executor, 'executions').filter(({ status, meta_version }) => status === 'DONE' && meta_version === 1).length

test('an empty database gets everything in one transaction', async () => {
  const executor = new SqliteExecutor()
  expect(await prepare(executor)).toEqual({ summary: true, warnings: [] })
  expect(names(executor)).toEqual(wanted())
  expect(executor.writes).toHaveLength(1)
})

test('the second start writes nothing and asks once (B41, weakness 44)', async () => {
  const executor = new SqliteExecutor()
  await prepare(executor)
  executor.writes.length = 0
  executor.reads.length = 0
  expect(await prepare(executor)).toEqual({ summary: true, warnings: [] })
  expect(executor.writes).toEqual([])
  expect(executor.reads).toHaveLength(1)
})

describe('with createSchema: false', () => {
  test('missing tables are an error that names them, and nothing is made', async () => {
    const executor = new SqliteExecutor()
    const error = await prepare(executor, { createSchema: false }).catch((thrown) => thrown)
    expect(error).toBeInstanceOf(SchemaMissing)
    expect(error.missing).toContain('harel_outbox')
    expect(names(executor)).toEqual([])
  })

  test('the tables of Python are enough, with a warning that names what is missing', async () => {
    const executor = pythonDatabase(3)
    const { summary, warnings } = await prepare(executor, { createSchema: false })
    expect(summary).toBe(false)
    expect(warnings).toEqual([expect.stringMatching(/harel_executions\.status.*harel_timers_by_due.*migrate\(\)/)])
    expect(executor.writes).toEqual([])
  })
})

test('small tables of Python get the missing columns, with the values of the rows that are there', async () => {
  const executor = pythonDatabase(1000)
  expect(await prepare(executor)).toEqual({ summary: true, warnings: [] })
  expect(names(executor)).toEqual(wanted())
  expect(done(executor)).toBe(334)
})

test('large tables of Python stay as they are, with a warning, until they are migrated', async () => {
  const executor = pythonDatabase(2500)
  const before = columns(executor)
  const { summary, warnings } = await prepare(executor)
  expect(summary).toBe(false)
  expect(warnings).toHaveLength(1)
  expect(columns(executor)).toEqual(before)
  // The other tables are small.
  expect(names(executor)).toContain('harel_timers_by_due')
  executor.writes.length = 0
  await migrateRemoteSchema(executor, 'harel')
  expect(names(executor)).toEqual(wanted())
  expect(done(executor)).toBe(834)
  expect(await prepare(executor)).toEqual({ summary: true, warnings: [] })
  // Others can write between its steps.
  expect(executor.writes.length).toBeGreaterThan(10)
})

test('a migration that breaks off is taken up again, and until then nobody relies on it', async () => {
  const executor = pythonDatabase(2500)
  const { write } = executor
  executor.write = async (statements) => {
    if (statements.some(({ sql }) => sql.startsWith('CREATE TRIGGER')))
      throw new StoreUnavailable('the connection broke')
    return write.call(executor, statements)
  }
  await expect(migrateRemoteSchema(executor, 'harel')).rejects.toThrow('the connection broke')
  executor.write = write
  expect(await prepare(executor)).toMatchObject({ summary: false, warnings: [expect.anything()] })
  executor.db.exec('UPDATE harel_executions SET data = \'{"status":"DONE"}\', version = 2 WHERE id = \'e1\'')
  await migrateRemoteSchema(executor, 'harel')
  expect(rowsOf(executor, 'executions')[1]).toMatchObject({ status: 'DONE', meta_version: 2 })
  expect(await prepare(executor)).toEqual({ summary: true, warnings: [] })
})

test('a row that is written while a migration goes on is listed right after it', async () => {
  const executor = pythonDatabase(2500)
  const { write } = executor
  executor.write = async (statements) => {
    if (statements.some(({ sql }) => sql.startsWith('CREATE TRIGGER'))) {
      executor.db.exec(`UPDATE harel_executions SET data = '{"status":"DONE"}', version = 2 WHERE id = 'e1'`)
    }
    return write.call(executor, statements)
  }
  await migrateRemoteSchema(executor, 'harel')
  expect(rowsOf(executor, 'executions')[1]).toMatchObject({ status: 'DONE', meta_version: 2 })
})

test.each([0, 300])('ten that start at once on tables of Python with %i rows all succeed (B42)', async (count) => {
  const executor = pythonDatabase(count)
  const starts = await Promise.all(Array.from({ length: 10 }, () => prepare(executor)))
  expect(starts).toEqual(Array(10).fill({ summary: true, warnings: [] }))
  expect(names(executor)).toEqual(wanted())
  expect(done(executor)).toBe(count / 3)
})

test('what cannot be made is an error, not a loop', async () => {
  const executor = new SqliteExecutor()
  executor.db.exec('CREATE VIEW harel_outbox AS SELECT 1 AS seq')
  await expect(prepare(executor)).rejects.toThrow(StoreUnavailable)
  expect(names(executor)).toEqual(['harel_outbox'])
})

test('a prefix that differs from that of existing tables by case only is refused (weakness 46)', async () => {
  const executor = new SqliteExecutor()
  await prepare(executor, { prefix: 'App' })
  await expect(prepare(executor, { prefix: 'app' })).rejects.toThrow(InvalidArgument)
  expect(names(executor)).toEqual(wanted('App'))
})
