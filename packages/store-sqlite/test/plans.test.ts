import { type ListQuery, newExecution, STATUSES, type Status, type SyncExecutionStore } from '@harel/store-base'
import { SqliteStore } from '@harel/store-sqlite'
import type { Database } from 'better-sqlite3'
import { expect, test } from 'vitest'
import { connect, everything, execution, expensiveSteps, planSteps, pythonFile, recordPrepared } from './helpers.js'

/** Runs every method, on a path through each of its statements. */
function exercise(store: SyncExecutionStore): void {
  const root = execution('root')
  const child = execution('child', { parentId: 'root', status: 'DONE' })
  for (const held of [root, child]) store.commit(held, everything(held.id))
  store.commit(root, { timers: [{ action: 'cancel', path: 'P' }], trace: { n: 1 } })
  store.commit(root, { trace: { n: 2 } })
  store.commit(Object.assign(root, { status: 'RUNNING', definitionId: 'other' }))
  expect(() => store.commit(execution('root'))).toThrow('version 4 is stored')
  store.save(newExecution({ definitionId: 'd' }))
  store.load('root')
  store.loadForEvent('root', 'event')
  store.isProcessed('root', 'event')
  for (const page of [undefined, { limit: 2 }, { limit: 2, after: 1 }]) {
    store.pendingOutbox(page)
    store.pendingSpawns(page)
  }
  store.ackOutbox([1, 2])
  store.ackSpawn(1)
  store.dueTimers(5)
  store.dueTimers(5, { limit: 1, after: { executionId: 'child', path: 'A', fireAt: 1 } })
  store.deleteTimer('child', 'P', 1)
  store.appendTrace('root', { n: 3 })
  store.readTrace('root')
  for (const prefix of ['', 'ro', '\u{10ffff}']) store.idsWithPrefix(prefix)
  store.publishDefinition({ id: 'd', version: '1', definition: {} })
  store.loadDefinition('d', '1')
  store.purge('root', 1)
  store.purge('root', 4)
  store.purge('root', 4)
}

const statuses: readonly (Status | Status[] | undefined)[] = [
  undefined,
  [],
  ...STATUSES,
  ['RUNNING', 'DONE'],
  [...STATUSES],
]
const filters = statuses.flatMap((status) =>
  [undefined, 'd'].flatMap((definitionId) =>
    [false, true].map(
      (rootsOnly): ListQuery => ({
        rootsOnly,
        ...(status === undefined ? {} : { status }),
        ...(definitionId === undefined ? {} : { definitionId }),
      }),
    ),
  ),
)

/** Lists under every combination of filters, the first page and one that goes on behind another. */
function list(store: SyncExecutionStore, queries: readonly ListQuery[] = filters): void {
  for (const query of queries) {
    const { nextCursor } = store.listExecutions({ ...query, limit: 1 })
    if (nextCursor !== null) store.listExecutions({ ...query, limit: 1, cursor: nextCursor })
  }
}

const seed = (store: SyncExecutionStore): void => {
  for (const status of STATUSES) {
    for (const name of ['a', 'b', 'c']) store.save(execution(`${status}-${name}`, { status }))
  }
}

const seeded = (db: Database): SyncExecutionStore => {
  const store = new SqliteStore(db, { traceMax: 2, onWarning: () => {} })
  seed(store)
  return store
}

const filtered = filters.filter(({ status, definitionId, rootsOnly }) => status ?? definitionId ?? rootsOnly)

test('no method but an unfiltered listing reads a whole table or sorts', () => {
  const db = connect(':memory:')
  const store = seeded(db)
  const texts = recordPrepared(db)
  list(store, filtered)
  exercise(store)
  expect(texts.size).toBeGreaterThan(40)
  expect(expensiveSteps(db, texts)).toEqual([])
})

test('nor does one where ANALYZE has found that nearly all rows are alike', () => {
  const db = connect(':memory:')
  const store = seeded(db)
  for (let n = 0; n < 1000; n++) store.commit(execution(`many-${n}`, { status: 'DONE' }), everything('many'))
  db.exec('ANALYZE')
  const texts = recordPrepared(db)
  list(store, filtered)
  exercise(store)
  expect(expensiveSteps(db, texts)).toEqual([])
})

test('an unfiltered listing walks the ids in order', () => {
  const db = connect(':memory:')
  const store = seeded(db)
  const texts = recordPrepared(db)
  list(store, [{}])
  expect(texts.size).toBe(2)
  expect(expensiveSteps(db, texts).map(({ detail }) => detail)).toEqual([
    'SCAN harel_executions USING INDEX sqlite_autoindex_harel_executions_1',
  ])
})

test('where the indexes are missing these tests would find what is read as a whole', () => {
  const db = connect(pythonFile('scenario'))
  const store = new SqliteStore(db, { createSchema: false, onWarning: () => {} })
  const texts = recordPrepared(db)
  store.purge('nobody', 1)
  store.dueTimers(5)
  store.listExecutions({ status: 'DONE' })
  expect(expensiveSteps(db, texts).map(({ detail }) => detail)).toEqual([
    'SCAN harel_outbox',
    'SCAN harel_spawns',
    'SCAN harel_timers',
    'USE TEMP B-TREE FOR ORDER BY',
    expect.stringMatching(/^SCAN harel_executions/),
  ])
})

/** What a listing goes by: an index that begins with its filters, in which a range is in order by id. */
const expectedSearch = ({ definitionId, rootsOnly }: ListQuery): RegExp =>
  new RegExp(
    [
      `^SEARCH harel_executions USING INDEX harel_executions_${rootsOnly ? 'roots_' : ''}by_`,
      definitionId === undefined
        ? String.raw`status \(status=\?`
        : String.raw`definition \(definition_id=\? AND status=\?`,
      String.raw`( AND id>\?)?\)$`,
    ].join(''),
  )

const fills: Readonly<Record<string, (store: SyncExecutionStore) => void>> = {
  'nothing is known of the rows': seed,
  'nearly all rows are alike': (store) => {
    for (let n = 0; n < 1000; n++) store.save(execution(`many-${n}`, { status: 'DONE' }))
  },
  'columns tell of each other what a planner cannot know': (store) => {
    const id = (n: number) => `skewed-${String(n).padStart(4, '0')}`
    for (let n = 0; n < 1000; n++) store.save(execution(id(n), { definitionId: 'old', status: 'DONE' }))
    for (let n = 1000; n < 1980; n++) store.save(execution(id(n), { status: 'RUNNING', parentId: id(0) }))
    for (let n = 1980; n < 2000; n++) store.save(execution(id(n), { status: 'DONE' }))
  },
}

test.each(Object.keys(fills))('each range of a listing goes by all of its filters, where %s', (name) => {
  const db = connect(':memory:')
  const store = new SqliteStore(db)
  fills[name]?.(store)
  if (name !== 'nothing is known of the rows') db.exec('ANALYZE')
  for (const query of filtered) {
    const texts = recordPrepared(db)
    list(store, [query])
    const searches = planSteps(db, texts).filter(({ detail }) => /harel_executions/.test(detail))
    if (!Array.isArray(query.status) || query.status.length > 0) expect(searches.length).toBeGreaterThan(0)
    for (const { detail } of searches) expect.soft(detail, JSON.stringify(query)).toMatch(expectedSearch(query))
  }
})
