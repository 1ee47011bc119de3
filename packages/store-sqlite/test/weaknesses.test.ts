/** What other stores on these tables do badly, by the numbers of the list that is kept of it. */
import { asyncStore, executions, type ListQuery, STATUSES, type SyncExecutionStore } from '@harel/store-base'
import { SqliteStore } from '@harel/store-sqlite'
import type { Database } from 'better-sqlite3'
import { describe, expect, test } from 'vitest'
import { connect, everything, execution, expensiveSteps, recordPrepared, rows } from './helpers.js'

/** A store with some rows, and the statements that it prepares from now on. */
function setUp(): { db: Database; store: SyncExecutionStore; texts: ReadonlySet<string> } {
  const db = connect(':memory:')
  const store = new SqliteStore(db)
  for (const [n, status] of STATUSES.entries()) {
    const parentId = n % 2 === 0 ? null : 'e0'
    store.commit(execution(`e${n}`, { status, parentId, definitionId: `d${n % 3}` }), everything(`e${n}`))
  }
  return { db, store, texts: recordPrepared(db) }
}

/** All ids, page by page; `between` runs after each page. */
function walk(store: SyncExecutionStore, query: ListQuery, between: (ids: string[]) => void = () => {}): string[] {
  const ids: string[] = []
  let cursor: string | null = null
  do {
    const page = store.listExecutions({ ...query, cursor })
    ids.push(...page.items.map(({ id }) => id))
    cursor = page.nextCursor
    between(ids)
  } while (cursor !== null)
  return ids
}

describe('a SqliteStore', () => {
  test('purges an execution by indexes, whatever else is queued (weakness 32)', () => {
    const { db, store, texts } = setUp()
    expect(store.purge('e0', 1)).toBe(true)
    expect([...texts].filter((sql) => sql.startsWith('DELETE'))).toHaveLength(6)
    expect(expensiveSteps(db, texts)).toEqual([])
    expect(Object.values(rows(db))).toEqual([6, 6, 6, 6, 6, 6])
  })

  test('finds due timers, roots, statuses and definitions by indexes (weakness 37)', () => {
    const { db, store, texts } = setUp()
    store.dueTimers(1)
    for (const query of [{ status: 'DONE' }, { definitionId: 'd1' }, { rootsOnly: true }] as const) {
      expect(store.listExecutions(query).items.length).toBeGreaterThan(0)
    }
    expect(expensiveSteps(db, texts)).toEqual([])
  })

  test('lists without looking into payloads, and reads no row that it does not return (weakness 38)', () => {
    const { db, store, texts } = setUp()
    db.exec("UPDATE harel_executions SET data = 'no JSON', version = version WHERE id <> 'e0'")
    expect(store.listExecutions().items).toHaveLength(STATUSES.length)
    expect(store.listExecutions({ definitionId: 'd1', status: [...STATUSES] }).items.length).toBeGreaterThan(1)
    for (const sql of texts) expect(sql).not.toMatch(/json|OFFSET|\bdata\b/)
    expect(
      expensiveSteps(
        db,
        [...texts].filter((sql) => sql.includes('WHERE')),
      ),
    ).toEqual([])
  })

  test.each([{}, { definitionId: 'd' }, { status: [...STATUSES] }])(
    'skips and repeats nothing while executions come and go between pages (weakness 39, %j)',
    (filter) => {
      const store = new SqliteStore(connect(':memory:'))
      const name = (n: number) => `e${`${n}`.padStart(2, '0')}`
      for (let n = 0; n < 30; n++) store.save(execution(name(n)))
      const walked = walk(store, { ...filter, limit: 5 }, (ids) => {
        const last = Number(ids.at(-1)?.slice(1))
        // Behind the page, and in front of it.
        for (const n of [last - 1, last + 2]) store.purge(name(n), 1)
        store.save(execution(`${name(last)}-`))
      })
      expect(walked).toEqual([...new Set(walked)].sort())
      for (let n = 0; n < 30; n++) if (store.load(name(n)) !== undefined) expect(walked).toContain(name(n))
    },
  )

  test('finds ids by their prefix in the index, and only those (weakness 42)', () => {
    const { db, store, texts } = setUp()
    for (const id of ['E1', 'e1:a', 'e1_b', 'e2%c']) store.save(execution(id))
    expect(store.idsWithPrefix('e1')).toEqual(['e1', 'e1:a', 'e1_b'])
    expect(store.idsWithPrefix('e2%')).toEqual(['e2%c'])
    const searches = [...texts].filter((sql) => sql.startsWith('SELECT id'))
    expect(searches.length).toBeGreaterThan(0)
    expect(expensiveSteps(db, searches)).toEqual([])
  })

  test('lists an execution whose definition has changed under the new one (weakness 45)', () => {
    const { db, store } = setUp()
    const held = store.load('e1')
    if (held === undefined) return expect.unreachable()
    held.definitionId = 'migrated'
    store.commit(held)
    expect(store.listExecutions({ definitionId: 'migrated' }).items.map(({ id }) => id)).toEqual(['e1'])
    expect(walk(store, { definitionId: 'd1' })).not.toContain('e1')
    expect(db.prepare("SELECT definition_id FROM harel_executions WHERE id = 'e1'").pluck().get()).toBe('migrated')
  })

  test('lists, pages and purges for asynchronous callers like any other store (weakness 49)', async () => {
    const store = asyncStore(setUp().store)
    const ids: string[] = []
    for await (const { id } of executions(store, { limit: 2, status: [...STATUSES] })) ids.push(id)
    expect(ids).toEqual(STATUSES.map((_, n) => `e${n}`))
    for (const id of ids) expect(await store.purge(id, 1)).toBe(true)
    expect((await store.listExecutions()).items).toEqual([])
  })
})
