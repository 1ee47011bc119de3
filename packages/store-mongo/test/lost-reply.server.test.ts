import { newEvent, OutcomeUnknown, StoreConflict, StoreUnavailable } from '@harel/store-base'
import { MongoStore } from '@harel/store-mongo'
import { CUTS, TcpProxy } from '@harel/store-testing/faults'
import { withServer } from '@harel-tooling/test-servers/vitest'
import type { MongoClientOptions } from 'mongodb'
import { describe, expect, onTestFinished, test } from 'vitest'
import { connect, documentsOf, everything, execution, newPrefix, storeOn, useDatabase } from './helpers.js'

withServer('mongo', (server) => {
  const database = useDatabase(server)

  /** A store whose connections can be cut, which has done its first call. */
  const setUp = async (options: MongoClientOptions = {}) => {
    const prefix = newPrefix()
    const proxy = await TcpProxy.to(database.url)
    onTestFinished(() => proxy[Symbol.asyncDispose]())
    // One connection, so that none is left that knows nothing of the cut.
    const client = connect(proxy.url, { maxPoolSize: 1, serverSelectionTimeoutMS: 5000, ...options })
    const store = storeOn(client.db(), { prefix })
    await store.save(execution('first'))
    return { prefix, proxy, client, store, direct: storeOn(database.db(), { prefix }) }
  }

  describe.each([true, false])('with a client that sends again by itself: %s', (retryWrites) => {
    test.each(CUTS)('a commit whose connection is cut %s is done once, and succeeds with its seqs', async (cut) => {
      const { prefix, proxy, store } = await setUp({ retryWrites })
      const held = execution('a')
      for (let version = 1; version < 4; version++) {
        const lost = proxy.cutNext(cut, `${prefix}_executions`)
        const changes = { ...everything('a'), processedEventId: `event-${version}` }
        const [seq] = await store.commit(held, changes)
        await lost
        expect(held.version).toBe(version)
        expect((await store.pendingOutbox()).at(-1)?.seq).toBe(seq)
      }
      const { executions } = await documentsOf(database.db(), prefix)
      expect(executions?.find(({ _id }) => _id === 'a')).toMatchObject({ version: 3, processed: { length: 3 } })
      expect(await store.pendingOutbox()).toHaveLength(3)
      expect(await store.pendingSpawns()).toHaveLength(3)
      expect(await store.readTrace('a')).toHaveLength(3)
    })

    test('an allocation whose reply is lost leaves a gap, no more', async () => {
      const { prefix, proxy, store } = await setUp({ retryWrites })
      const held = execution('a')
      const lost = proxy.cutNext('after the request', `${prefix}_counters`)
      const outcome = await store.commit(held, everything('a')).catch((error: unknown) => error)
      await lost
      if (!Array.isArray(outcome)) {
        expect(outcome).toBeInstanceOf(StoreUnavailable)
        expect(held.version).toBe(0)
        await store.commit(held, everything('a'))
      }
      expect(await store.pendingOutbox()).toHaveLength(1)
    })
  })

  test('a commit that loses its server for good has an unknown outcome, and none that was never sent (B93)', async () => {
    const { prefix, proxy, store, direct } = await setUp({ serverSelectionTimeoutMS: 300 })
    const held = execution('a')
    const lost = proxy.cutNext('after the request', `${prefix}_executions`).then(() => proxy.refuse())
    await expect(store.commit(held)).rejects.toBeInstanceOf(OutcomeUnknown)
    await lost
    expect(held.version).toBe(0)
    expect((await direct.load('a'))?.version).toBe(1)
    await expect(store.commit(execution('b'))).rejects.toBeInstanceOf(StoreUnavailable)
    proxy.restore()
    // On a busy machine the driver may need longer to find it again than it waits for a server.
    await expect.poll(async () => (await store.load('a'))?.version, { timeout: 10_000 }).toBe(1)
  })

  describe('a server that answers nothing but heartbeats', () => {
    const silent = async () => {
      // The next heartbeat is far away.
      const calm = { serverMonitoringMode: 'poll', heartbeatFrequencyMS: 600_000 } as const
      const { proxy, store } = await setUp({ ...calm, socketTimeoutMS: 1000, retryReads: false, retryWrites: false })
      proxy.hold()
      return { proxy, store }
    }

    test('ends a read', async () => {
      const { store } = await silent()
      await expect(store.load('first')).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: true })
    })

    test('leaves a commit done once, which succeeds when it speaks again', async () => {
      const { proxy, store } = await silent()
      setTimeout(() => proxy.restore(), 1500)
      const held = execution('a')
      await store.commit(held, { processedEventId: 'e' })
      expect(held.version).toBe(1)
      expect(await store.loadForEvent('a', 'e')).toEqual({ execution: held, processed: true })
    })
  })

  test('a commit that another worker has forestalled is a conflict, also after a cut', async () => {
    const { prefix, proxy, store, direct } = await setUp()
    await direct.commit(execution('a'), { processedEventId: 'theirs' })
    const lost = proxy.cutNext('after the request', `${prefix}_executions`)
    await expect(store.commit(execution('a'), { processedEventId: 'mine' })).rejects.toBeInstanceOf(StoreConflict)
    await lost
  })

  describe('a commit that is sent again after another worker has gone on', () => {
    const goOn = async (changes: Parameters<MongoStore['commit']>[1]) => {
      const { prefix, proxy, store, direct } = await setUp({ retryWrites: false })
      const held = execution('a')
      const lost = proxy.cutNext('after the request', `${prefix}_executions`).then(async () => {
        proxy.hold()
        const next = await direct.load('a')
        if (next !== undefined) await direct.save(next)
        proxy.restore()
      })
      const committed = store.commit(held, changes)
      return { held, committed, lost }
    }

    test('is known by its event', async () => {
      const { held, committed, lost } = await goOn({
        processedEventId: 'e',
        emits: [{ targetId: null, event: newEvent({ kind: 'k' }) }],
      })
      expect(await committed).toEqual([1])
      await lost
      expect(held.version).toBe(1)
    })

    test('is not taken for a conflict, which would say that nothing was written', async () => {
      const { held, committed, lost } = await goOn({})
      await expect(committed).rejects.toBeInstanceOf(OutcomeUnknown)
      await lost
      expect(held.version).toBe(0)
    })
  })

  test('reads and acknowledgements whose replies are lost are asked again', async () => {
    const { prefix, proxy, store } = await setUp()
    const [seq = 0] = await store.commit(execution('a'), everything('a'))
    for (const call of [
      () => store.load('a'),
      () => store.isProcessed('a', 'x'),
      () => store.deleteTimer('a', 'P', 1),
    ]) {
      const lost = proxy.cutNext('after the request', `${prefix}_executions`)
      await call()
      await lost
    }
    const lost = proxy.cutNext('after the request', `${prefix}_executions`)
    const outcome = await store.ackOutbox(seq).catch((error: unknown) => error)
    await lost
    if (outcome !== undefined) expect(outcome).toBeInstanceOf(StoreUnavailable)
    await store.ackOutbox(seq)
    expect(await store.pendingOutbox()).toEqual([])
  })

  test('nobody is there: a typed error, which may pass (B93)', async () => {
    const client = { serverSelectionTimeoutMS: 200 }
    const opening = MongoStore.connect('mongodb://127.0.0.1:1/x', { client })
    await expect(opening).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: true })
    const store = storeOn(connect('mongodb://127.0.0.1:1/x', client).db())
    await expect(store.commit(execution('a'))).rejects.toBeInstanceOf(StoreUnavailable)
  })
})
