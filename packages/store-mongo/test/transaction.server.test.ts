import { type ExecutionStore, StoreClosed, StoreConflict, StoreError } from '@harel/store-base'
import { withServer } from '@harel-tooling/test-servers/vitest'
import { MongoServerError } from 'mongodb'
import { expect, test } from 'vitest'
import { connect, everything, execution, newPrefix, storeOn, useDatabase } from './helpers.js'

withServer('mongo', (server) => {
  const database = useDatabase(server)

  const setUp = async () => {
    const prefix = newPrefix()
    const client = connect(database.url)
    const store = storeOn(client.db(), { prefix })
    await store.load('none')
    const orders = client.db().collection<{ _id: string }>(`${prefix}orders`)
    await orders.insertOne({ _id: 'first' })
    return { store, orders, ids: async () => (await orders.find().toArray()).map(({ _id }) => _id) }
  }

  test('the document of the caller and the commit are stored together', async () => {
    const { store, orders, ids } = await setUp()
    const held = execution('a')
    const result = await store.transaction(async (inside, session) => {
      await orders.insertOne({ _id: 'o' }, { session })
      const [seq] = await inside.commit(held, everything('a'))
      expect((await inside.load('a'))?.version).toBe(1)
      expect((await inside.listExecutions({ status: 'PENDING' })).items).toHaveLength(1)
      expect(await ids()).toEqual(['first'])
      expect(await store.load('a')).toBeUndefined()
      return seq
    })
    expect(result).toBe(1)
    expect(await ids()).toEqual(['first', 'o'])
    expect((await store.load('a'))?.version).toBe(1)
    expect(await store.pendingOutbox()).toMatchObject([{ seq: 1 }])
  })

  test('neither is stored when the work rejects, and versions are what they were', async () => {
    const { store, orders, ids } = await setUp()
    const [first, second] = [execution('a'), execution('b')]
    await store.save(first)
    const failure = new Error('Transaction numbers are only allowed on a replica set member or mongos')
    let runs = 0
    const failing = store.transaction(async (inside, session) => {
      runs++
      await orders.insertOne({ _id: 'o' }, { session })
      await inside.commit(first, everything('a'))
      await inside.commit(second)
      throw failure
    })
    await expect(failing).rejects.toBe(failure)
    expect(runs).toBe(1)
    expect([first.version, second.version]).toEqual([1, 0])
    expect([await ids(), await store.idsWithPrefix('')]).toEqual([['first'], ['a']])
    await store.commit(first)
  })

  test('a conflict can be caught, and the rest is stored', async () => {
    const { store, orders, ids } = await setUp()
    await store.save(execution('a'))
    await store.transaction(async (inside, session) => {
      await orders.insertOne({ _id: 'o' }, { session })
      await expect(inside.commit(execution('a', { version: 7 }))).rejects.toMatchObject({ found: 1 })
      await expect(inside.commit(execution('a'))).rejects.toBeInstanceOf(StoreConflict)
      await inside.save(execution('b'))
    })
    expect([await ids(), await store.idsWithPrefix('')]).toEqual([
      ['first', 'o'],
      ['a', 'b'],
    ])
  })

  test('calls at once in it are done one after the other', async () => {
    const { store } = await setUp()
    await store.transaction(async (inside) => {
      await Promise.all(Array.from({ length: 8 }, (_, n) => inside.commit(execution(`e${n}`), everything(`e${n}`))))
      await Promise.all([inside.readTrace('e1'), inside.pendingOutbox(), inside.dueTimers(1), inside.purge('e7', 1)])
    })
    expect(await store.idsWithPrefix('e')).toHaveLength(7)
    expect(await store.pendingOutbox()).toHaveLength(7)
  })

  test('its store is closed when it ends, whichever way, and touches nothing then', async () => {
    const { store } = await setUp()
    const kept: ExecutionStore[] = []
    await store.transaction(async (inside) => void kept.push(inside))
    const failing = store.transaction(async (inside) => {
      kept.push(inside)
      throw new Error('no')
    })
    await failing.catch(() => {})
    for (const inside of kept) await expect(inside.save(execution('late'))).rejects.toBeInstanceOf(StoreClosed)
    expect(await store.load('late')).toBeUndefined()
  })

  test('an execution that another one writes meanwhile undoes the whole, with an error that may pass (B67)', async () => {
    const { store, ids, orders } = await setUp()
    const held = execution('a')
    await store.save(held)
    const other = structuredClone(held)
    const error = await store
      .transaction(async (inside, session) => {
        await orders.insertOne({ _id: 'o' }, { session })
        expect((await inside.load('a'))?.version).toBe(1)
        await store.save(other)
        await inside.save(held)
      })
      .catch((reason: unknown) => reason)
    expect(error).toBeInstanceOf(StoreError)
    expect(['STORE_UNAVAILABLE', 'STORE_CONFLICT']).toContain((error as StoreError).code)
    expect([held.version, other.version, await ids()]).toEqual([1, 2, ['first']])
  })

  test('a server without transactions is told from an error that may pass, by its code (B66, B67)', async () => {
    const { store, orders } = await setUp()
    // What a server answers that is no member of a replica set; the substitute is one.
    const answer = new MongoServerError({
      errmsg: 'Transaction numbers are only allowed on a replica set member',
      code: 20,
    })
    const failing = store.transaction(async (_inside, session) => {
      await orders.insertOne({ _id: 'o' }, { session })
      throw answer
    })
    await expect(failing).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: false, cause: answer })
  })
})
