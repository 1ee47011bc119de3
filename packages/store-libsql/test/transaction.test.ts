import { type ExecutionStore, StoreClosed, StoreConflict, StoreError } from '@harel/store-libsql'
import { withServer } from '@harel-tooling/test-servers/vitest'
import type { Config } from '@libsql/client'
import { describe, expect, test } from 'vitest'
import { clientOf, everything, execution, freshFile, open, rows } from './helpers.js'

let prefixes = 0

/** What holds wherever the database is; each test has tables of its own. */
function transactionsOn(configOf: () => Config): void {
  const setUp = async () => {
    const config = configOf()
    const prefix = `tx${process.pid}_${++prefixes}`
    const client = clientOf(config)
    await client.execute(`CREATE TABLE ${prefix}_orders (id TEXT PRIMARY KEY)`)
    const orders = async () =>
      (await client.execute(`SELECT id FROM ${prefix}_orders ORDER BY id`)).rows.map(({ id }) => id)
    const store = await open(config, { prefix })
    const counts = () => rows(client, prefix)
    const poison = (target: string) =>
      client.execute(`CREATE TRIGGER ${prefix}_poison BEFORE INSERT ON ${prefix}_outbox WHEN NEW.target_id = '${target}'
        BEGIN SELECT RAISE(ABORT, 'poisoned'); END`)
    return { store, orders, counts, poison, insert: `INSERT INTO ${prefix}_orders VALUES (?)` }
  }

  test('commits executions and rows of the caller together', async () => {
    const { store, orders, counts, insert } = await setUp()
    const [a, b] = [execution('a'), execution('b')]
    const seqs = await store.transaction(async (inner, tx) => {
      await tx.execute({ sql: insert, args: ['order-1'] })
      await inner.save(b)
      return inner.commit(a, everything('a'))
    })
    expect([a.version, b.version]).toEqual([1, 1])
    expect(await orders()).toEqual(['order-1'])
    expect(await counts()).toEqual([2, 1, 1, 1, 1, 1])
    expect((await store.pendingOutbox()).map(({ seq }) => seq)).toEqual(seqs)
  })

  test('writes nothing when the work fails, and gives executions their versions back', async () => {
    const { store, orders, counts, insert } = await setUp()
    const [a, b] = [execution('a'), execution('b')]
    await store.commit(a)
    const failure = new Error('out of stock')
    const work = store.transaction(async (inner, tx) => {
      await inner.commit(a, everything('a'))
      await inner.commit(a)
      await inner.save(b)
      await tx.execute({ sql: insert, args: ['order-1'] })
      throw failure
    })
    expect(await work.catch((error: unknown) => error)).toBe(failure)
    expect([a.version, b.version]).toEqual([1, 0])
    expect(await orders()).toEqual([])
    expect(await counts()).toEqual([1, 0, 0, 0, 0, 0])
    await store.commit(a)
    expect(a.version).toBe(2)
  })

  test('goes on after a conflict that the caller catches', async () => {
    const { store, orders, insert } = await setUp()
    await store.commit(execution('taken'))
    const a = execution('a')
    await store.transaction(async (inner, tx) => {
      await expect(inner.commit(execution('taken'), everything('taken'))).rejects.toBeInstanceOf(StoreConflict)
      await inner.commit(a)
      await tx.execute({ sql: insert, args: ['order-1'] })
    })
    expect(await orders()).toEqual(['order-1'])
    expect((await store.load('a'))?.version).toBe(1)
    expect(await store.pendingOutbox()).toEqual([])
  })

  test('that has swallowed a failed write is not committed', async () => {
    const { store, orders, counts, insert, poison } = await setUp()
    await poison('a')
    const a = execution('a')
    const work = store.transaction(async (inner, tx) => {
      await tx.execute({ sql: insert, args: ['order-1'] })
      await inner.commit(a, everything('a')).catch(() => {})
    })
    await expect(work).rejects.toBeInstanceOf(StoreError)
    expect(a.version).toBe(0)
    expect(await orders()).toEqual([])
    expect(await counts()).toEqual([0, 0, 0, 0, 0, 0])
  })

  test('sees what it has written itself, and ends with its store', async () => {
    const { store } = await setUp()
    const a = execution('a')
    const kept = await store.transaction(async (inner): Promise<ExecutionStore> => {
      await inner.commit(a, everything('a'))
      expect(await inner.load('a')).toEqual(a)
      expect(await inner.pendingOutbox()).toHaveLength(1)
      expect((await inner.listExecutions()).items).toHaveLength(1)
      return inner
    })
    await expect(kept.load('a')).rejects.toThrow(StoreClosed)
    await store.close()
    await expect(store.transaction(async () => {})).rejects.toThrow(StoreClosed)
  })
}

describe('a transaction on a file', () => transactionsOn(() => ({ url: freshFile() })))

withServer('libsql', ({ url }) => {
  describe('a transaction over HTTP', () => transactionsOn(() => ({ url })))
  describe('a transaction over a web socket', () => transactionsOn(() => ({ url: url.replace(/^http/, 'ws') })))
})
