import { type ExecutionStore, InvalidArgument, StoreClosed, StoreConflict, StoreUnavailable } from '@harel/store-base'
import { AsyncSqliteStore, type AsyncTransactionHandle } from '@harel/store-sqlite'
import type { Database } from 'better-sqlite3'
import { describe, expect, test } from 'vitest'
import { connect, everything, execution, freshFile, poison, rows } from './helpers.js'

const TABLE = 'CREATE TABLE orders (id TEXT PRIMARY KEY, total INTEGER)'
const INSERT = 'INSERT INTO orders VALUES (?, ?)'
const orders = (db: Database) => db.prepare('SELECT id, total FROM orders ORDER BY id').all()

describe('AsyncSqliteStore.transaction', () => {
  const setUp = async () => {
    const path = freshFile()
    const db = connect(path)
    db.exec(TABLE)
    return { db, path, store: await AsyncSqliteStore.open(path) }
  }
  type Work = (inner: ExecutionStore, tx: AsyncTransactionHandle) => Promise<void>

  test("commits executions and the caller's rows together, and resolves with what the work returns", async () => {
    const { db, store } = await setUp()
    await using _closed = store
    const a = execution('a')
    const result = await store.transaction(async (inner, tx) => {
      const { changes } = await tx.run(INSERT, 'o', 3)
      const seqs = await inner.commit(a, everything('a'))
      expect(orders(db)).toEqual([])
      return {
        changes,
        seqs,
        one: await tx.get('SELECT total FROM orders WHERE id = ?', 'o'),
        all: await tx.all('SELECT id FROM orders'),
      }
    })
    expect(result).toEqual({ changes: 1, seqs: [1], one: { total: 3 }, all: [{ id: 'o' }] })
    expect(a.version).toBe(1)
    expect(orders(db)).toHaveLength(1)
    expect(rows(db)).toMatchObject({ executions: 1, outbox: 1 })
  })

  test('undoes everything when the work rejects, versions included, and rejects with the same', async () => {
    const { db, store } = await setUp()
    await using _closed = store
    const [a, b] = [execution('a'), execution('b')]
    await store.save(a)
    const failure = new Error('no')
    const work: Work = async (inner, tx) => {
      await tx.run(INSERT, 'o', 3)
      await inner.commit(a, everything('a'))
      await inner.save(b)
      expect([a.version, b.version]).toEqual([2, 1])
      throw failure
    }
    await expect(store.transaction(work)).rejects.toBe(failure)
    expect([a.version, b.version]).toEqual([1, 0])
    expect(orders(db)).toEqual([])
    expect(rows(db)).toMatchObject({ executions: 1, outbox: 0, spawns: 0, timers: 0, trace: 0, processed_events: 0 })
    await store.save(a)
  })

  test('undoes everything when the work throws before it returns a promise', async () => {
    const { store } = await setUp()
    await using _closed = store
    const work = (() => {
      throw new Error('at once')
    }) as Work
    await expect(store.transaction(work)).rejects.toThrow('at once')
    await store.save(execution('a'))
  })

  test('goes on after a conflict that the work has caught', async () => {
    const { db, store } = await setUp()
    await using _closed = store
    await store.save(execution('a'))
    await store.transaction(async (inner) => {
      await expect(inner.commit(execution('a'), everything('a'))).rejects.toThrow(StoreConflict)
      await inner.save(execution('b'))
    })
    expect(rows(db)).toMatchObject({ executions: 2, outbox: 0 })
  })

  test.each(['ABORT', 'ROLLBACK'] as const)(
    'is undone when a commit failed half-way, though the work swallowed it (%s)',
    async (kind) => {
      const { db, store } = await setUp()
      await using _closed = store
      poison(db, kind)
      const [a, b] = [execution('a'), execution('b')]
      const work: Work = async (inner, tx) => {
        await expect(inner.commit(a, everything('poison'))).rejects.toThrow(StoreUnavailable)
        if (kind === 'ROLLBACK') {
          await expect(inner.save(b)).rejects.toThrow(StoreUnavailable)
          await expect(tx.run(INSERT, 'o', 3)).rejects.toThrow(StoreUnavailable)
        }
      }
      await expect(store.transaction(work)).rejects.toThrow(
        expect.objectContaining({ cause: expect.objectContaining({ message: expect.stringContaining('poisoned') }) }),
      )
      expect([a.version, b.version]).toEqual([0, 0])
      expect(Object.values(rows(db))).toEqual([0, 0, 0, 0, 0, 0])
      expect(orders(db)).toEqual([])
      await store.save(b)
    },
  )

  test("an error of the caller's own statement has SQLite's code and is the caller's to handle", async () => {
    const { db, store } = await setUp()
    await using _closed = store
    await store.transaction(async (_inner, tx) => {
      await tx.run(INSERT, 'o', 1)
      await expect(tx.run(INSERT, 'o', 2)).rejects.toMatchObject({ code: 'SQLITE_CONSTRAINT_PRIMARYKEY' })
      await expect(tx.get('SELECT * FROM missing')).rejects.toThrow('no such table: missing')
    })
    expect(orders(db)).toEqual([{ id: 'o', total: 1 }])
  })

  test('what the work has not waited for is part of it, and what comes after its end is refused', async () => {
    const { db, store } = await setUp()
    await using _closed = store
    const a = execution('a')
    let unawaited: Promise<unknown> | undefined
    const [inner, tx] = await store.transaction(async (...given) => {
      unawaited = Promise.all([given[0].save(a), given[1].run(INSERT, 'o', 3)])
      return given
    })
    await unawaited
    expect([rows(db).executions, orders(db).length]).toEqual([1, 1])
    await expect(inner.save(a)).rejects.toThrow(StoreClosed)
    await expect(inner.load('a')).rejects.toThrow(StoreClosed)
    await expect(tx.run(INSERT, 'p', 3)).rejects.toThrow(StoreClosed)
    await store.transaction(async () => {
      await expect(tx.run(INSERT, 'q', 3)).rejects.toThrow(StoreClosed)
    })
    expect(orders(db)).toHaveLength(1)
  })

  test('refuses the outer store inside, which would wait for itself, in every method', async () => {
    const { store } = await setUp()
    await using _closed = store
    await store.transaction(async (inner) => {
      const calls = [
        () => store.save(execution('a')),
        () => store.load('a'),
        () => store.pendingOutbox(),
        () => store.transaction(async () => {}),
        () => store.migrate(),
        () => store.close(),
      ]
      for (const call of calls) await expect(call()).rejects.toThrow(InvalidArgument)
      await inner.save(execution('b'))
    })
    expect((await store.load('b'))?.version).toBe(1)
  })

  test('a value that no thread can be sent is refused, and what was written before it is undone', async () => {
    const { db, store } = await setUp()
    await using _closed = store
    const a = execution('a')
    const work: Work = async (inner, tx) => {
      await inner.save(a)
      await tx.run(INSERT, 'o', (() => 1) as unknown as number)
    }
    await expect(store.transaction(work)).rejects.toThrow('params must be values that SQLite can hold')
    expect([a.version, rows(db).executions]).toEqual([0, 0])
    await store.save(a)
  })

  test('a task that was started inside may use the outer store once the transaction has ended', async () => {
    const { store } = await setUp()
    await using _closed = store
    const { promise: ended, resolve: end } = Promise.withResolvers<void>()
    let task: Promise<void> | undefined
    await store.transaction(async (inner) => {
      task = ended.then(() => store.save(execution('later')))
      await inner.save(execution('a'))
    })
    end()
    await task
    expect((await store.load('later'))?.version).toBe(1)
  })

  test('other calls wait for its end: none sees it half done, none becomes part of it (weakness 19)', async () => {
    const { db, store } = await setUp()
    await using _closed = store
    const { promise: opened, resolve: open } = Promise.withResolvers<void>()
    const { promise: released, resolve: release } = Promise.withResolvers<void>()
    const undone = store.transaction(async (inner) => {
      await inner.commit(execution('undone'), everything('undone'))
      open()
      await released
      throw new Error('undo')
    })
    await opened
    let settled = 0
    const others = [store.load('undone'), store.save(execution('kept')), store.appendTrace('kept', { n: 1 })].map(
      (call) => call.finally(() => settled++),
    )
    const second = store.transaction((inner) => inner.save(execution('second')))
    await new Promise((resolve) => setTimeout(resolve, 50))
    expect(settled).toBe(0)
    release()
    await expect(undone).rejects.toThrow('undo')
    expect(await Promise.all(others)).toEqual([undefined, undefined, undefined])
    await second
    expect(rows(db)).toMatchObject({ executions: 2, outbox: 0, trace: 1 })
  })

  test('close waits for it', async () => {
    const { db, store } = await setUp()
    const { promise: opened, resolve: open } = Promise.withResolvers<void>()
    const a = execution('a')
    const transaction = store.transaction(async (inner) => {
      open()
      await new Promise((resolve) => setTimeout(resolve, 30))
      await inner.save(a)
    })
    await opened
    await store.close()
    await transaction
    expect([a.version, rows(db).executions]).toEqual([1, 1])
    await expect(store.transaction(async () => {})).rejects.toThrow(StoreClosed)
    await expect(store.migrate()).rejects.toThrow(StoreClosed)
  })

  test('holds against many at once: each is whole or not there', async () => {
    const { db, store } = await setUp()
    await using _closed = store
    const outcomes = await Promise.allSettled(
      Array.from({ length: 20 }, (_, n) =>
        store.transaction(async (inner, tx) => {
          await tx.run(INSERT, `o${n}`, n)
          const held = execution(`e${n}`)
          await inner.commit(held, everything(held.id))
          if (n % 3 === 0) throw new Error('undo')
        }),
      ),
    )
    const kept = outcomes.flatMap(({ status }, n) => (status === 'fulfilled' ? [n] : []))
    expect(kept).toEqual([...Array(20).keys()].filter((n) => n % 3 !== 0))
    const ids = (column: string, from: string) => db.prepare(`SELECT ${column} FROM ${from}`).pluck().all()
    expect(ids('id', 'orders').sort()).toEqual(kept.map((n) => `o${n}`).sort())
    expect(ids('id', 'harel_executions').sort()).toEqual(kept.map((n) => `e${n}`).sort())
    expect(ids('target_id', 'harel_outbox').sort()).toEqual(kept.map((n) => `e${n}`).sort())
  })
})
