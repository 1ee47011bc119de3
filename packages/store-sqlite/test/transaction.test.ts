import {
  InvalidArgument,
  OutcomeUnknown,
  StoreClosed,
  StoreConflict,
  StoreUnavailable,
  type SyncExecutionStore,
} from '@harel/store-base'
import { SqliteStore } from '@harel/store-sqlite'
import BetterSqlite3, { type Database } from 'better-sqlite3'
import { describe, expect, test } from 'vitest'
import { connect, everything, execution, failNext, freshFile, poison, rows } from './helpers.js'

const TABLE = 'CREATE TABLE orders (id TEXT PRIMARY KEY, total INTEGER)'
const INSERT = 'INSERT INTO orders VALUES (?, ?)'
const orders = (db: Database) => db.prepare('SELECT id, total FROM orders ORDER BY id').all()

describe('SqliteStore.transaction', () => {
  const setUp = () => {
    const db = connect(freshFile())
    db.exec(TABLE)
    return { db, store: new SqliteStore(db) }
  }

  test("commits executions and the caller's rows together, and returns what the work returns", () => {
    const { db, store } = setUp()
    const [a, b] = [execution('a'), execution('b')]
    const result = store.transaction((inner, handle) => {
      handle.prepare(INSERT).run('o', 3)
      return [...inner.commit(a, everything('a')), ...inner.commit(b, everything('b'))]
    })
    expect(result).toEqual([1, 2])
    expect([a.version, b.version]).toEqual([1, 1])
    expect(orders(db)).toEqual([{ id: 'o', total: 3 }])
    expect(rows(db)).toMatchObject({ executions: 2, outbox: 2, trace: 2 })
  })

  test('undoes everything when the work throws, versions included, and throws the same', () => {
    const { db, store } = setUp()
    const [a, b] = [execution('a'), execution('b')]
    store.save(a)
    const failure = new Error('no')
    const work = (inner: SyncExecutionStore, handle: Database) => {
      handle.prepare(INSERT).run('o', 3)
      inner.commit(a, everything('a'))
      inner.save(a)
      inner.commit(b, everything('b'))
      expect([a.version, b.version]).toEqual([3, 1])
      throw failure
    }
    expect(() => store.transaction(work)).toThrow(failure)
    expect([a.version, b.version]).toEqual([1, 0])
    expect(orders(db)).toEqual([])
    expect(rows(db)).toMatchObject({ executions: 1, outbox: 0, spawns: 0, timers: 0, trace: 0, processed_events: 0 })
    store.save(a)
    expect(a.version).toBe(2)
  })

  test('reads what it has written', () => {
    const { store } = setUp()
    store.transaction((inner) => {
      inner.commit(execution('a'), everything('a'))
      expect(inner.load('a')?.version).toBe(1)
      expect(inner.listExecutions().items).toHaveLength(1)
      expect(inner.isProcessed('a', 'a-event')).toBe(true)
    })
  })

  test('goes on after a conflict that the work has caught', () => {
    const { db, store } = setUp()
    store.save(execution('a'))
    store.transaction((inner, handle) => {
      expect(() => inner.commit(execution('a'), everything('a'))).toThrow(StoreConflict)
      handle.prepare(INSERT).run('o', 1)
      inner.save(execution('b'))
    })
    expect(orders(db)).toHaveLength(1)
    expect(rows(db)).toMatchObject({ executions: 2, outbox: 0 })
  })

  test.each(['ABORT', 'ROLLBACK'] as const)(
    'is undone when a commit failed half-way, though the work swallowed it (%s)',
    (kind) => {
      const { db, store } = setUp()
      poison(db, kind)
      const [a, b] = [execution('a'), execution('b')]
      const work = (inner: SyncExecutionStore) => {
        expect(() => inner.commit(a, everything('poison'))).toThrow(StoreUnavailable)
        // After ROLLBACK, this would be committed at once.
        if (kind === 'ROLLBACK') expect(() => inner.save(b)).toThrow(StoreUnavailable)
      }
      expect(() => store.transaction(work)).toThrow(
        expect.objectContaining({ cause: expect.objectContaining({ message: expect.stringContaining('poisoned') }) }),
      )
      expect([a.version, b.version]).toEqual([0, 0])
      expect(Object.values(rows(db))).toEqual([0, 0, 0, 0, 0, 0])
      store.save(b)
    },
  )

  test("an error of the caller's own statement is the caller's to handle", () => {
    const { db, store } = setUp()
    store.transaction((inner, handle) => {
      handle.prepare(INSERT).run('o', 1)
      expect(() => handle.prepare(INSERT).run('o', 2)).toThrow('UNIQUE')
      inner.save(execution('a'))
    })
    expect(orders(db)).toEqual([{ id: 'o', total: 1 }])
    expect(rows(db).executions).toBe(1)
  })

  test.each(['ROLLBACK', 'COMMIT'])(
    'fails when the work has ended it by a %s of its own, and writes nothing after that',
    (end) => {
      const { db, store } = setUp()
      const a = execution('a')
      const work = (inner: SyncExecutionStore, handle: Database) => {
        handle.exec(end)
        expect(() => inner.save(a)).toThrow(StoreUnavailable)
      }
      expect(() => store.transaction(work)).toThrow(OutcomeUnknown)
      expect(() => store.transaction((_inner, handle) => handle.exec(end))).toThrow(OutcomeUnknown)
      expect([a.version, rows(db).executions]).toEqual([0, 0])
      store.save(a)
    },
  )

  test('refuses asynchronous work: nothing of it is written, then or later', async () => {
    const { db, store } = setUp()
    const [a, b] = [execution('a'), execution('b')]
    let later: unknown
    const work = async (inner: SyncExecutionStore) => {
      inner.save(a)
      await null
      try {
        inner.save(b)
      } catch (error) {
        later = error
        throw error
      }
    }
    const unhandled: unknown[] = []
    const note = (reason: unknown) => unhandled.push(reason)
    process.on('unhandledRejection', note)
    expect(() => store.transaction(work)).toThrow(InvalidArgument)
    await new Promise((resolve) => setTimeout(resolve, 20))
    process.off('unhandledRejection', note)
    expect(unhandled).toEqual([])
    expect(later).toBeInstanceOf(StoreClosed)
    expect([a.version, b.version, rows(db).executions]).toEqual([0, 0, 0])
  })

  test('the store that it gave is closed afterwards', () => {
    const { store } = setUp()
    const kept = store.transaction((inner) => inner)
    expect(() => kept.save(execution('a'))).toThrow(StoreClosed)
    expect(() => kept.load('a')).toThrow(StoreClosed)
  })

  test('refuses writes through the outer store, and another transaction, while it is open', () => {
    const { db, store } = setUp()
    store.transaction((inner) => {
      expect(() => store.save(execution('a'))).toThrow(InvalidArgument)
      expect(() => store.transaction(() => {})).toThrow(InvalidArgument)
      inner.save(execution('b'))
    })
    expect(db.prepare('SELECT id FROM harel_executions').pluck().all()).toEqual(['b'])
  })

  test('restores versions when the commit itself fails', () => {
    const { db } = setUp()
    failNext(db, 'COMMIT', new BetterSqlite3.SqliteError('disk I/O error', 'SQLITE_IOERR_FSYNC'))
    const store = new SqliteStore(db)
    const a = execution('a')
    expect(() => store.transaction((inner) => inner.save(a))).toThrow(OutcomeUnknown)
    expect(a.version).toBe(0)
    store.save(a)
  })
})
