import { type ListQuery, STATUSES } from '@harel/store-base'
import { SqliteStore } from '@harel/store-sqlite'
import type { Database } from 'better-sqlite3'
import { describe, expect, test } from 'vitest'
import {
  beforeRuns,
  connect,
  everything,
  execution,
  expensiveSteps,
  freshFile,
  pythonFile,
  recordPrepared,
  twins,
} from './helpers.js'

/** A row as Python harel writes it: none of our columns, and the order of the payload's members its own. */
function insertAsPython(db: Database, id: string, fields: object = {}, payload?: string): void {
  const definition = 'definition_id' in fields ? fields.definition_id : 'd'
  const data = payload ?? JSON.stringify({ id, definition_id: definition, status: 'RUNNING', version: 1, ...fields })
  const insert = 'INSERT INTO harel_executions (id, definition_id, data, version) VALUES (?, ?, ?, 1)'
  db.prepare(insert).run(id, definition, data)
}

function updateAsPython(db: Database, id: string, fields: object): void {
  const row = db.prepare<[string], { data: string; version: number }>(
    'SELECT data, version FROM harel_executions WHERE id = ?',
  )
  const { data, version } = row.get(id) ?? expect.unreachable(id)
  const payload = JSON.stringify({ ...JSON.parse(data), ...fields, version: version + 1 })
  db.prepare('UPDATE harel_executions SET data = ?, version = ? WHERE id = ? AND version = ?').run(
    payload,
    version + 1,
    id,
    version,
  )
}

/** The tables as Python makes them, with so many executions: every third is done, every fifth has a parent. */
function pythonFileOf(count: number): string {
  const path = pythonFile('scenario')
  const db = connect(path)
  db.exec('DELETE FROM harel_executions')
  db.transaction(() => {
    for (let n = 0; n < count; n++) {
      const status = n % 3 === 0 ? 'DONE' : 'RUNNING'
      insertAsPython(db, `e${`${n}`.padStart(5, '0')}`, {
        status,
        parent_id: n % 5 === 0 ? 'p' : null,
        finished_at: n / 2,
      })
    }
  })()
  return path
}

const queries: ListQuery[] = [
  {},
  { status: 'DONE' },
  { rootsOnly: true },
  { definitionId: 'd', status: ['DONE', 'RUNNING'] },
  { status: [] },
]

describe.each(twins)('$name, beside a writer that knows nothing of its columns', ({ open, migrate }) => {
  test('lists a row right that was inserted, and updated, and updated by both', async () => {
    const path = freshFile()
    await using store = await open(path)
    const db = connect(path)
    insertAsPython(db, 'a', { outcome: 'ok', active_path: 'X.Y', parent_id: 'p', finished_at: 1.5 })
    const summary = {
      id: 'a',
      definitionId: 'd',
      status: 'RUNNING',
      outcome: 'ok',
      activePath: 'X.Y',
      version: 1,
      parentId: 'p',
      finishedAt: 1.5,
    }
    const listed = async (query?: ListQuery) => (await store.listExecutions(query)).items
    expect(await listed()).toEqual([summary])
    expect(await listed({ rootsOnly: true })).toEqual([])
    updateAsPython(db, 'a', { status: 'DONE', parent_id: null, outcome: null })
    expect(await listed({ status: 'RUNNING' })).toEqual([])
    const updated = { ...summary, status: 'DONE', parentId: null, outcome: null, version: 2 }
    expect(await listed({ status: 'DONE', rootsOnly: true })).toEqual([updated])
    const held = await store.load('a')
    if (held === undefined) return expect.unreachable()
    await store.commit(Object.assign(held, { status: 'FAILED', activePath: null }))
    expect(await listed({ status: 'FAILED' })).toEqual([{ ...updated, status: 'FAILED', activePath: null, version: 3 }])
    updateAsPython(db, 'a', { status: 'RUNNING', definition_id: 'd' })
    expect(await listed({ definitionId: 'd', status: 'RUNNING' })).toHaveLength(1)
    expect(await listed({ status: 'FAILED' })).toEqual([])
  })

  test('lists a row whose payload holds U+0000 (B08, weakness 10)', async () => {
    const path = freshFile()
    await using store = await open(path)
    insertAsPython(connect(path), 'a', { context: { text: 'a\0b' }, active_path: 'X' })
    expect((await store.listExecutions({ status: 'RUNNING' })).items).toMatchObject([{ id: 'a', activePath: 'X' }])
    expect((await store.load('a'))?.context).toEqual({ text: 'a\0b' })
  })

  test.each([true, false])('reports rows that cannot be read, and lists the others (columns: %s)', async (columns) => {
    const path = columns ? freshFile() : pythonFileOf(0)
    const warnings: string[] = []
    const onWarning = (text: string) => warnings.push(text)
    await using store = await open(path, { createSchema: columns, onWarning })
    const db = connect(path)
    for (const id of ['a', 'd']) insertAsPython(db, id)
    insertAsPython(db, 'b', {}, '{"status": "RUNNING"')
    insertAsPython(db, 'c', { status: 'LOST' })
    for (const query of [{}, { rootsOnly: true }, { definitionId: 'd' }, { definitionId: 'd', rootsOnly: true }]) {
      warnings.length = 0
      expect((await store.listExecutions(query)).items.map(({ id }) => id)).toEqual(['a', 'd'])
      expect(warnings).toEqual([expect.stringContaining('"b"'), expect.stringContaining('"c"')])
      expect((await store.listExecutions({ ...query, limit: 3 })).items.map(({ id }) => id)).toEqual(['a'])
    }
    warnings.length = 0
    expect((await store.listExecutions({ status: [...STATUSES] })).items.map(({ id }) => id)).toEqual(['a', 'd'])
    expect(warnings).toEqual([])
    expect(await store.idsWithPrefix('')).toEqual(['a', 'b', 'c', 'd'])
    expect([await store.purge('b', 1), await store.purge('c', 1)]).toEqual([true, true])
  })

  test('adds its columns to a small file of Python at start-up, and lists the rows that were there', async () => {
    const path = pythonFileOf(1000)
    await using store = await open(path, { onWarning: () => expect.unreachable() })
    const ids = async (query: ListQuery) => (await store.listExecutions({ ...query, limit: 1000 })).items.length
    expect([await ids({}), await ids({ status: 'DONE' }), await ids({ rootsOnly: true })]).toEqual([1000, 334, 800])
    expect((await store.listExecutions({ status: 'DONE', limit: 1 })).items[0]).toMatchObject({
      id: 'e00000',
      finishedAt: 0,
    })
  })

  test('works on a large file of Python as it is, with a warning, until migrate adds everything', async () => {
    const path = pythonFileOf(1500)
    const warnings: string[] = []
    await using store = await open(path, { onWarning: (text) => warnings.push(text) })
    const pages = async (of: typeof store) =>
      Promise.all(queries.map(async (query) => (await of.listExecutions({ ...query, limit: 700 })).items))
    const before = await pages(store)
    expect(before.map((items) => items.length)).toEqual([700, 500, 700, 700, 0])
    expect(warnings).toHaveLength(1)
    expect(warnings[0]).toMatch(/harel_executions\.status.*harel_executions_by_status.*migrate/)
    const columns = () => connect(path).prepare("SELECT name FROM pragma_table_info('harel_executions')").pluck().all()
    expect(columns()).toEqual(['id', 'definition_id', 'data', 'version'])
    const held = execution('late', { status: 'SUSPENDED' })
    await store.commit(held, everything('late'))

    await migrate(path)
    expect(columns()).toContain('meta_version')
    await using fresh = await open(path, { onWarning: () => expect.unreachable() })
    for (const each of [store, fresh]) {
      expect(await pages(each)).toEqual(before)
      const late = await each.listExecutions({ status: 'SUSPENDED' })
      expect(late.items).toMatchObject([{ id: 'late', version: 1 }])
    }
  })
})

test('after migrate a listing reads no more than its page', () => {
  const db = connect(pythonFileOf(1500))
  const store = new SqliteStore(db, { onWarning: () => {} })
  store.migrate()
  const texts = recordPrepared(db)
  store.listExecutions({ status: 'DONE' })
  store.purge('nobody', 1)
  store.dueTimers(1)
  expect(texts.size).toBeGreaterThan(5)
  expect(expensiveSteps(db, texts)).toEqual([])
})

test('a migration that breaks off leaves listings right, for this store and the next, and can be taken up again', () => {
  const path = pythonFileOf(2500)
  const breaking = connect(path)
  const store = new SqliteStore(breaking, { onWarning: () => {} })
  const exec = breaking.exec.bind(breaking)
  breaking.exec = (sql) => {
    // After the columns are there and filled.
    if (sql.startsWith('CREATE TRIGGER')) throw new Error('the process ends here')
    return exec(sql)
  }
  expect(() => store.migrate()).toThrow('the process ends here')
  const python = connect(path)
  insertAsPython(python, 'x', { status: 'FAILED' })
  updateAsPython(python, 'e00001', { status: 'FAILED' })
  const next = SqliteStore.open(path, { onWarning: () => {} })
  for (const each of [store, next]) {
    expect(each.listExecutions({ status: 'FAILED' }).items.map(({ id }) => id)).toEqual(['e00001', 'x'])
    expect(each.listExecutions({ status: 'DONE', limit: 1000 }).items).toHaveLength(834)
  }
  next.migrate()
  using last = SqliteStore.open(path, { onWarning: () => expect.unreachable() })
  for (const each of [next, last]) {
    expect(each.listExecutions({ status: 'FAILED' }).items.map(({ id }) => id)).toEqual(['e00001', 'x'])
    expect(each.listExecutions({ status: 'DONE', limit: 1000 }).items).toHaveLength(834)
  }
  next.close()
})

test('rows that somebody else writes while a migration goes on are listed like all others', () => {
  const path = pythonFileOf(2500)
  const db = connect(path)
  const python = connect(path)
  let written: string[] | undefined
  beforeRuns(db, 'BEGIN IMMEDIATE', () => {
    const id = `x${written?.length}`
    if (written !== undefined) insertAsPython(python, id, { status: 'FAILED' })
    written?.push(id)
  })
  const store = new SqliteStore(db, { onWarning: () => {} })
  written = []
  store.migrate()
  expect(written.length).toBeGreaterThan(5)
  expect(store.listExecutions({ status: 'FAILED' }).items.map(({ id }) => id)).toEqual(written.sort())
})
