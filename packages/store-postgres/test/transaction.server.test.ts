import { type ExecutionStore, StoreClosed, StoreConflict, StoreUnavailable } from '@harel/store-base'
import { PostgresStore } from '@harel/store-postgres'
import { withServer } from '@harel-tooling/test-servers/vitest'
import { expect, test } from 'vitest'
import { connect, everything, execution, newSchema, open, pass, rows, useDatabase } from './helpers.js'

const NOTHING = [0, 0, 0, 0, 0, 0]
const ONE_OF_EACH = [1, 1, 1, 1, 1, 1]

withServer('postgres', (server) => {
  const database = useDatabase(server)

  const setUp = async (options: { lockTimeout?: number; client?: { prepare?: boolean; max?: number } } = {}) => {
    const schema = newSchema()
    const store = await open(database.url, { schema, ...options })
    const sql = connect(database.url)
    await sql.unsafe(`CREATE TABLE ${schema}.orders (id text PRIMARY KEY)`)
    const orders = async () => (await sql.unsafe(`SELECT id FROM ${schema}.orders`)).map(({ id }) => id)
    return { schema, store, sql, orders, insert: `INSERT INTO ${schema}.orders VALUES ($1)` }
  }

  test.each([true, false])(
    'the row of the caller and the commit are stored together (prepare: %s)',
    async (prepare) => {
      const { schema, store, sql, orders, insert } = await setUp({ client: { prepare, max: 1 } })
      const held = execution('a')
      const result = await store.transaction(async (s, tx) => {
        await tx.unsafe(insert, ['o'])
        const [seq] = await s.commit(held, everything('a'))
        expect((await s.load('a'))?.version).toBe(1)
        expect(await orders()).toEqual([])
        expect(await rows(sql, schema)).toEqual(NOTHING)
        return seq
      })
      expect(result).toBe(1)
      expect(held.version).toBe(1)
      expect(await orders()).toEqual(['o'])
      expect(await rows(sql, schema)).toEqual(ONE_OF_EACH)
    },
  )

  test('neither is stored when the work rejects, and versions are what they were', async () => {
    const { schema, store, sql, orders, insert } = await setUp()
    const held = [execution('a'), execution('b')]
    await store.commit(execution('a'))
    const [first, second] = held
    if (first === undefined || second === undefined) throw new Error()
    first.version = 1
    const failure = new Error('no stock')
    await expect(
      store.transaction(async (s, tx) => {
        await s.commit(first, everything('a'))
        await s.commit(first)
        await s.commit(second)
        await tx.unsafe(insert, ['o'])
        throw failure
      }),
    ).rejects.toBe(failure)
    expect([first.version, second.version]).toEqual([1, 0])
    expect(await orders()).toEqual([])
    expect(await rows(sql, schema)).toEqual([1, 0, 0, 0, 0, 0])
  })

  test('a conflict can be caught, and the rest is stored', async () => {
    const { store, orders, insert } = await setUp()
    await store.commit(execution('a'))
    await store.transaction(async (s, tx) => {
      await tx.unsafe(insert, ['o'])
      await expect(s.commit(execution('a', { version: 7 }), everything('a'))).rejects.toMatchObject({ found: 1 })
      await expect(s.commit(execution('a'), everything('a'))).rejects.toBeInstanceOf(StoreConflict)
      await s.commit(execution('b'))
    })
    expect(await orders()).toEqual(['o'])
    expect(await store.idsWithPrefix('')).toEqual(['a', 'b'])
    expect(await store.pendingOutbox()).toEqual([])
  })

  test('an error of the server within it undoes the whole, also where it was swallowed', async () => {
    const { schema, store, sql, orders, insert } = await setUp()
    await sql.unsafe(`ALTER TABLE ${schema}.harel_executions ADD CHECK (id <> 'bad')`)
    const held = execution('a')
    const transaction = store.transaction(async (s, tx) => {
      await tx.unsafe(insert, ['o'])
      await s.commit(held)
      await expect(s.commit(execution('bad'))).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    })
    await expect(transaction).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE', cause: { code: '23514' } })
    expect(held.version).toBe(0)
    expect([await orders(), await store.idsWithPrefix('')]).toEqual([[], []])

    const ownMistake = store.transaction(async (s, tx) => {
      await s.commit(held)
      await tx.unsafe('SELECT nonsense').catch(() => {})
    })
    await expect(ownMistake).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE', cause: { code: '42703' } })
    expect(held.version).toBe(0)
    await store.commit(held)
  })

  test('an error in a savepoint undoes what is in it', async () => {
    const { store, orders, insert } = await setUp()
    const held = execution('a')
    await store.transaction(async (s, tx) => {
      await tx
        .savepoint((inner) => inner.unsafe(insert, ['x']).then(() => inner.unsafe('SELECT nonsense')))
        .catch(() => {})
      await tx.savepoint('kept', (inner) => inner.unsafe(insert, ['o']))
      await s.commit(held)
    })
    expect(await orders()).toEqual(['o'])
    expect(held.version).toBe(1)
  })

  test('its store is closed when it ends, whichever way, and touches nothing then', async () => {
    const { store } = await setUp({ client: { max: 1 } })
    const kept: ExecutionStore[] = []
    await store.transaction(async (s) => void kept.push(s))
    await store
      .transaction(async (s) => {
        kept.push(s)
        throw new Error('no')
      })
      .catch(() => {})
    for (const s of kept) {
      await expect(s.commit(execution('late'))).rejects.toBeInstanceOf(StoreClosed)
      await expect(s.load('late')).rejects.toBeInstanceOf(StoreClosed)
    }
    expect(await store.load('late')).toBeUndefined()
  })

  test('a commit that was not waited for belongs to it', async () => {
    const { store } = await setUp()
    const held = execution('a')
    let committed: Promise<unknown> | undefined
    await store.transaction(async (s) => {
      committed = s.commit(held)
    })
    await committed
    expect((await store.load('a'))?.version).toBe(1)
  })

  test('a commit within it waits for a lock as the transaction says, longer than lockTimeout', async () => {
    const { schema, store, sql } = await setUp({ lockTimeout: 1 })
    const held = execution('a')
    await store.commit(held)
    const stranger = sql.begin(async (tx) => {
      await tx.unsafe(`SELECT 1 FROM ${schema}.harel_executions FOR UPDATE`)
      await pass(200)
    })
    await pass(50)
    await store.transaction(async (s) => void (await s.commit(held)))
    expect(held.version).toBe(2)
    await stranger
    const impatient = sql.begin(async (tx) => {
      await tx.unsafe(`SELECT 1 FROM ${schema}.harel_executions FOR UPDATE`)
      await expect(
        store.transaction(async (s, own) => {
          await own.unsafe(`SET LOCAL lock_timeout = '20ms'`)
          await s.commit(held)
        }),
      ).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE', cause: { code: '55P03' } })
    })
    await impatient
    expect(held.version).toBe(2)
  })

  test('its rows are locked for others until it ends, who go on meanwhile', async () => {
    const { store } = await setUp()
    const held = [execution('a'), execution('b')] as const
    await store.commit(held[0])
    const other = execution('a', { version: 1 })
    let waiting: Promise<unknown> | undefined
    await store.transaction(async (s) => {
      await s.commit(held[0])
      waiting = expect(store.commit(other)).rejects.toMatchObject({ code: 'STORE_CONFLICT', expected: 1, found: 2 })
      await store.commit(held[1])
      await pass(50)
    })
    await waiting
    expect([held[0].version, held[1].version, other.version]).toEqual([2, 1, 1])
  })

  test('purges, queues, timers, traces and definitions are part of it', async () => {
    const { schema, store, sql } = await setUp()
    await store.commit(execution('a'), everything('a'))
    await store
      .transaction(async (s) => {
        expect(await s.purge('a', 1)).toBe(true)
        expect(await s.purge('a', 1)).toBe(false)
        await s.appendTrace('b', {})
        await s.publishDefinition({ id: 'd', version: '1', definition: {} })
        throw new Error('no')
      })
      .catch(() => {})
    expect(await rows(sql, schema)).toEqual(ONE_OF_EACH)
    expect(await store.loadDefinition('d', '1')).toBeUndefined()
    await store.transaction(async (s) => {
      for (const { seq } of await s.pendingOutbox()) await s.ackOutbox(seq)
      for (const { seq } of await s.pendingSpawns()) await s.ackSpawn(seq)
      await s.deleteTimer('a', 'P', 1)
      expect(await s.purge('a', 1)).toBe(true)
    })
    expect(await rows(sql, schema)).toEqual(NOTHING)
  })

  test('after close it is refused, and one that runs is not cut off', async () => {
    const { store } = await setUp()
    const held = execution('a')
    const running = store.transaction(async (s) => {
      await pass(1000)
      await s.commit(held)
    })
    await pass(20)
    await store.close()
    await running
    expect(held.version).toBe(1)
    await expect(store.transaction(async () => {})).rejects.toBeInstanceOf(StoreClosed)
  })

  test('one that cannot begin is unavailable', async () => {
    const sql = connect('postgres://postgres@127.0.0.1:1/none')
    const store = new PostgresStore(sql)
    await expect(store.transaction(async () => {})).rejects.toBeInstanceOf(StoreUnavailable)
  })
})
