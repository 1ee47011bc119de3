import type { Worker } from 'node:worker_threads'
import { type Execution, type PreparedCommit, StoreConflict, StoreUnavailable } from '@harel/store-base'
import { AsyncSqliteStore, SqliteStore } from '@harel/store-sqlite'
import type { Database } from 'better-sqlite3'
import { describe, expect, test } from 'vitest'
import { connect, everything, execution, freshFile, openWithWorker, poison, rows } from './helpers.js'

const many = (count: number, prefix = 'e') => Array.from({ length: count }, (_, n) => execution(`${prefix}${n}`))

/** The ids of each batch that is sent to the worker from now on. */
function recordBatches(worker: Worker): string[][] {
  const batches: string[][] = []
  const post = worker.postMessage.bind(worker)
  worker.postMessage = (call, ...rest) => {
    const { method, args } = call as { method: string; args: [PreparedCommit[]] }
    if (method === 'commitAll') batches.push(args[0].map(({ id }) => id))
    post(call, ...rest)
  }
  return batches
}

const setUp = async () => {
  const path = freshFile()
  const { store, worker } = await openWithWorker(path)
  return { db: connect(path), store, worker, batches: recordBatches(worker) }
}

const versions = (executions: readonly Execution[]) => executions.map(({ version }) => version)

describe('commits that arrive together', () => {
  test('are written in few transactions, each with its own result', async () => {
    const { db, store, batches } = await setUp()
    await using _closed = store
    const held = many(100)
    const seqs = await Promise.all(held.map((each) => store.commit(each, everything(each.id))))
    expect(batches.length).toBeLessThan(5)
    expect(versions(held)).toEqual(Array(100).fill(1))
    const targets = db.prepare('SELECT target_id FROM harel_outbox WHERE seq = ?').pluck()
    expect(seqs.map(([seq]) => targets.get(seq))).toEqual(held.map(({ id }) => id))
    expect(Object.values(rows(db))).toEqual([100, 100, 100, 100, 100, 100])
  })

  test('conflict one by one: the others are stored, and a loser has written nothing', async () => {
    const { db, store } = await setUp()
    await using _closed = store
    const held = many(30)
    await Promise.all(held.map((each) => store.save(each)))
    const stale = held.filter((_, n) => n % 3 === 0).map((each) => structuredClone(each))
    await Promise.all(stale.map((each) => store.save(structuredClone(each))))
    const fresh = held.filter((_, n) => n % 3 !== 0)
    const outcomes = await Promise.allSettled(
      [...stale, ...fresh].map((each) => store.commit(each, everything(each.id))),
    )
    for (const [n, outcome] of outcomes.entries()) {
      if (n >= stale.length) expect(outcome.status).toBe('fulfilled')
      else
        expect(outcome).toMatchObject({ status: 'rejected', reason: { code: 'STORE_CONFLICT', expected: 1, found: 2 } })
    }
    expect(versions(stale)).toEqual(Array(10).fill(1))
    expect(versions(fresh)).toEqual(Array(20).fill(2))
    expect(db.prepare('SELECT target_id FROM harel_outbox ORDER BY seq').pluck().all().sort()).toEqual(
      fresh.map(({ id }) => id).sort(),
    )
  })

  test('are stored for everybody when they are acknowledged, and so is what a conflict lost to', async () => {
    const { db, store } = await setUp()
    await using _closed = store
    const version = db.prepare('SELECT version FROM harel_executions WHERE id = ?').pluck()
    const held = many(60)
    const rivals = held.map((each) => structuredClone(each))
    await Promise.all([
      ...held.map((each) =>
        store.commit(each).then(() => {
          expect(version.get(each.id)).toBe(1)
        }),
      ),
      ...rivals.map((each) =>
        store.commit(each).then(
          () => expect.unreachable(),
          (error) => {
            expect(error).toBeInstanceOf(StoreConflict)
            expect(version.get(each.id)).toBe(error.found)
          },
        ),
      ),
    ])
  })

  test('of one execution never share a transaction, and keep their order', async () => {
    const { store, batches } = await setUp()
    await using _closed = store
    const copies = Array.from({ length: 5 }, (_, version) => execution('a', { version, context: { version } }))
    await Promise.all([...copies, ...many(20)].map((each) => store.commit(each)))
    expect(versions(copies)).toEqual([1, 2, 3, 4, 5])
    expect((await store.load('a'))?.context).toEqual({ version: 4 })
    expect(batches.filter((batch) => batch.includes('a'))).toHaveLength(5)
    for (const batch of batches) expect(new Set(batch).size).toBe(batch.length)
  })

  test('are what their objects were when commit was called', async () => {
    const { store } = await setUp()
    await using _closed = store
    const held = many(10)
    const commits = held.map((each, n) => {
      each.context = { n }
      const commit = store.commit(each)
      each.context = { n: 'later' }
      return commit
    })
    await Promise.all(commits)
    const loaded = await Promise.all(held.map(({ id }) => store.load(id)))
    expect(loaded.map((each) => each?.context)).toEqual(held.map((_, n) => ({ n })))
  })
})

describe('a commit that the database refuses', () => {
  test.each(['ABORT', 'ROLLBACK'] as const)(
    'fails alone: the others of its transaction are stored (%s)',
    async (kind) => {
      const { db, store, batches } = await setUp()
      await using _closed = store
      poison(db, kind)
      const held = many(40)
      const bad = held[17]
      const outcomes = await Promise.allSettled(
        held.map((each) => store.commit(each, everything(each === bad ? 'poison' : each.id))),
      )
      expect(batches[0]?.length).toBe(40)
      expect(outcomes.flatMap(({ status }, n) => (status === 'rejected' ? [n] : []))).toEqual([17])
      expect(outcomes[17]).toMatchObject({
        reason: { code: 'STORE_UNAVAILABLE', cause: { code: 'SQLITE_CONSTRAINT_TRIGGER', message: 'poisoned' } },
      })
      expect(versions(held)).toEqual(held.map((each) => (each === bad ? 0 : 1)))
      expect(Object.values(rows(db))).toEqual([39, 39, 39, 39, 39, 39])
      db.exec('DROP TRIGGER poison')
      if (bad !== undefined) await store.commit(bad)
    },
  )

  test('fails alone when the disk is full, and the store goes on', async () => {
    const { store } = await setUp()
    await using _closed = store
    await store.transaction((_inner, tx) => tx.get('PRAGMA max_page_count = 200'))
    const held = many(20)
    const large = execution('large', { context: { text: 'x'.repeat(2_000_000) } })
    const outcomes = await Promise.allSettled(
      [...held.slice(0, 10), large, ...held.slice(10)].map((e) => store.commit(e)),
    )
    expect(outcomes.flatMap(({ status }, n) => (status === 'rejected' ? [n] : []))).toEqual([10])
    expect(outcomes[10]).toMatchObject({ reason: { code: 'STORE_UNAVAILABLE', cause: { code: 'SQLITE_FULL' } } })
    expect(large.version).toBe(0)
    expect(await store.load('large')).toBeUndefined()
    expect(versions(held)).toEqual(Array(20).fill(1))
    await Promise.all(held.map((each) => store.commit(each)))
    await store.transaction((_inner, tx) => tx.get('PRAGMA max_page_count = 100000'))
    await store.commit(large)
    expect(large.version).toBe(1)
  })

  test('leaves a SqliteStore usable too when the disk is full', () => {
    const db: Database = connect(freshFile())
    const store = new SqliteStore(db)
    db.pragma('max_page_count = 100')
    const large = execution('large', { context: { text: 'x'.repeat(2_000_000) } })
    expect(() => store.commit(large, everything('large'))).toThrow(StoreUnavailable)
    expect([large.version, db.inTransaction]).toEqual([0, false])
    expect(Object.values(rows(db))).toEqual([0, 0, 0, 0, 0, 0])
    store.commit(execution('small'), everything('small'))
    expect(Object.values(rows(db))).toEqual([1, 1, 1, 1, 1, 1])
  })
})

test('commits that wait for a lock together give up together, and can be made again', async () => {
  const path = freshFile()
  await using store = await AsyncSqliteStore.open(path, { lockTimeout: 150 })
  const other = connect(path)
  other.exec('BEGIN IMMEDIATE')
  const held = many(16)
  const begin = performance.now()
  const outcomes = await Promise.allSettled(held.map((each) => store.commit(each)))
  // One by one they would have waited for seconds.
  expect(performance.now() - begin).toBeLessThan(1000)
  for (const outcome of outcomes)
    expect(outcome).toMatchObject({ reason: { code: 'STORE_UNAVAILABLE', retryable: true } })
  other.exec('ROLLBACK')
  await Promise.all(held.map((each) => store.commit(each)))
  expect(versions(held)).toEqual(Array(16).fill(1))
})

test('close writes what was committed before it', async () => {
  const { db, store } = await setUp()
  const held = many(50)
  const commits = Promise.all(held.map((each) => store.commit(each)))
  await store.close()
  await commits
  expect(rows(db).executions).toBe(50)
})

test('a commit alone is sent at once', async () => {
  const { store, batches } = await setUp()
  await using _closed: AsyncSqliteStore = store
  const commit = store.commit(execution('a'))
  await Promise.resolve()
  expect(batches).toEqual([['a']])
  await commit
})
