import { newEvent, OutcomeUnknown, type RedisStore, StoreConflict, StoreUnavailable } from '@harel/store-redis'
import { withServer } from '@harel-tooling/test-servers/vitest'
import type { Redis } from 'ioredis'
import { beforeEach, describe, expect, test } from 'vitest'
import { execution, parts } from './commits.js'
import { type ClientOptions, clientFor, dumpOf, freshPrefix, storeOn } from './database.js'
import { Way } from './way.js'

/** Reconnects at once. */
const quick: ClientOptions = { retryStrategy: () => 20 }

const clients: { name: string; options: ClientOptions }[] = [
  { name: 'as it is', options: quick },
  { name: 'that pipelines by itself', options: { ...quick, enableAutoPipelining: true } },
  { name: 'that gives up at the first break', options: { ...quick, maxRetriesPerRequest: 0 } },
  { name: 'that sends nothing again', options: { ...quick, autoResendUnfulfilledCommands: false } },
]

withServer('redis', ({ url }) => {
  let direct: Redis
  let prefix: string
  let way: Way

  beforeEach(async () => {
    direct = clientFor(url)
    prefix = freshPrefix()
    way = await Way.to(url)
  })

  /** A store behind it that has done its first call. */
  async function openStore(options: ClientOptions): Promise<RedisStore> {
    const store = storeOn(clientFor(way.url, options), { prefix })
    await store.save(execution('first'))
    return store
  }

  /** A client that gives up after some tries may do so once more before it notices that its server is back. */
  const expectOneCommit = (store: RedisStore) =>
    expect.poll(async () => (await store.load('a'))?.version, { timeout: 30_000 }).toBe(1)

  describe.each(clients)('a client $name', ({ options }) => {
    test('whose reply to a commit is lost has committed it, once, with the right seqs (B58)', async () => {
      const store = await openStore(options)
      const held = execution('a')
      await store.commit(held, parts('a'))
      const lost = way.lose('reply')
      expect(await store.commit(held, parts('a'))).toEqual([3, 4])
      await lost
      expect(held.version).toBe(2)
      expect((await store.load('a'))?.version).toBe(2)
      const left = await dumpOf(direct, `${prefix}:`)
      expect(left).toMatchObject({ [`${prefix}:outbox:seq`]: '4', [`${prefix}:spawns:seq`]: '2' })
      expect(await store.pendingOutbox()).toHaveLength(4)
      expect(await store.readTrace('a')).toHaveLength(2)
      expect(await store.commit(held, parts('a'))).toEqual([5, 6])
    })

    test.each(['reply', 'half the reply'] as const)(
      'whose first commit loses the %s has committed it',
      async (loss) => {
        const store = await openStore(options)
        const held = execution('a')
        const lost = way.lose(loss)
        expect(await store.commit(held, parts('a'))).toEqual([1, 2])
        await lost
        expect([held.version, (await store.load('a'))?.version]).toEqual([1, 1])
      },
    )

    test('whose request is lost on its way has committed it once, or not at all', async () => {
      const store = await openStore(options)
      const held = execution('a')
      const lost = way.lose('request')
      const outcome = await store.commit(held, parts('a')).catch((error: unknown) => error)
      await lost
      if (!Array.isArray(outcome)) {
        expect(outcome).toBeInstanceOf(StoreUnavailable)
        expect(held.version).toBe(0)
        await store.commit(held, parts('a'))
      }
      expect([held.version, (await store.load('a'))?.version]).toEqual([1, 1])
      expect(await store.pendingOutbox()).toHaveLength(2)
    })

    test('whose request arrives long after its connection was cut has committed it once', async () => {
      const store = await openStore(options)
      const held = execution('a')
      const delayed = way.delay()
      const committed = store.commit(held, parts('a'))
      const arrive = await delayed
      expect(await committed).toEqual([1, 2])
      await arrive()
      expect([held.version, (await store.load('a'))?.version]).toEqual([1, 1])
      expect(await store.pendingOutbox()).toHaveLength(2)
      expect(await store.commit(held, parts('a'))).toEqual([3, 4])
    })

    test('whose request is still on its way when the server is gone does not say that nothing was written', async () => {
      const store = await openStore({ ...options, maxRetriesPerRequest: 2 })
      const held = execution('a')
      const delayed = way.delay()
      const committed = store.commit(held, parts('a'))
      const arrive = await delayed
      way.refuse()
      await expect(committed).rejects.toThrow(OutcomeUnknown)
      expect(held.version).toBe(0)
      await arrive()
      await way.open()
      await expectOneCommit(store)
    })

    test('loses none of many commits and does none twice, whatever is cut (B58)', async () => {
      const store = await openStore(options)
      let done = 0
      let cuts = 0
      const cutNext = async () => {
        await way.lose(cuts % 2 ? 'reply' : 'request')
        cuts += 1
      }
      const work = async (id: string) => {
        const held = execution(id)
        while (held.version < 60) {
          const event = newEvent({ kind: 'k', id: `${id}:${held.version}` })
          try {
            await store.commit(held, { emits: [{ targetId: id, event }], processedEventId: event.id })
            if (++done % 20 === 0) void cutNext()
          } catch (error) {
            if (error instanceof OutcomeUnknown) held.version = (await stored(id)) ?? 0
            else if (!(error instanceof StoreUnavailable)) throw error
          }
        }
      }
      const stored = async (id: string) => (await storeOn(direct, { prefix }).load(id))?.version
      await Promise.all(Array.from({ length: 8 }, (_, n) => work(`e${n}`)))
      expect(cuts).toBeGreaterThan(10)
      const events = (await store.pendingOutbox()).map(({ event }) => event.id)
      expect(new Set(events).size).toBe(8 * 60)
      expect(events).toHaveLength(8 * 60)
    })

    test('that loses its server in the middle of a commit does not know, and says so (B58)', async () => {
      const store = await openStore({ ...options, maxRetriesPerRequest: 2 })
      const held = execution('a')
      const lost = way.lose('reply').then(() => way.close())
      await expect(store.commit(held)).rejects.toThrow(OutcomeUnknown)
      await lost
      expect(held.version).toBe(0)
      await way.open()
      await expectOneCommit(store)
    })

    test('whose connections break as soon as they are made gives up in its time', async () => {
      const store = await openStore({ ...options, commandTimeout: 2000 })
      const held = execution('a')
      const lost = way.lose('reply').then(() => way.slam())
      const begin = performance.now()
      await expect(store.commit(held)).rejects.toThrow(OutcomeUnknown)
      await lost
      await expect(store.commit(execution('b'))).rejects.toThrow(StoreUnavailable)
      expect(performance.now() - begin).toBeLessThan(30_000)
      await way.open()
      await expectOneCommit(store)
    })
  })

  describe('a commit that is sent again after another worker has gone on', () => {
    const goOn = async (store: RedisStore, changes: Parameters<RedisStore['commit']>[1]) => {
      const held = execution('a')
      const other = storeOn(direct, { prefix })
      const lost = way.lose('reply').then(async () => {
        const next = await other.load('a')
        if (next !== undefined) await other.save(next)
        await way.open()
      })
      const committed = store.commit(held, changes)
      await lost
      return { held, committed }
    }

    test('is known by its event, and succeeds with its seqs', async () => {
      const store = await openStore({ retryStrategy: () => 300 })
      const { held, committed } = await goOn(store, parts('a'))
      expect(await committed).toEqual([1, 2])
      expect(held.version).toBe(1)
    })

    test('is not taken for a conflict, which would say that nothing was written', async () => {
      const store = await openStore({ retryStrategy: () => 300 })
      const { held, committed } = await goOn(store, {})
      await expect(committed).rejects.toThrow(OutcomeUnknown)
      expect(held.version).toBe(0)
    })
  })

  test('a commit that a server has put off and carries out at last was not said to have failed, and is done once', async () => {
    const store = await openStore({ ...quick, commandTimeout: 2000 })
    const held = execution('a')
    await direct.call('CLIENT', 'PAUSE', 60_000, 'WRITE')
    try {
      await expect(store.commit(held, parts('a'))).rejects.toThrow(OutcomeUnknown)
    } finally {
      await direct.call('CLIENT', 'UNPAUSE')
    }
    expect(held.version).toBe(0)
    expect((await store.load('a'))?.version).toBe(1)
    expect(await store.pendingOutbox()).toHaveLength(2)
  })

  test('a commit that is refused when it is sent again may have been done at first, and is not said to have failed', async () => {
    await direct.call('ACL', 'SETUSER', prefix, 'on', '>password', '~*', '+@all')
    const store = await openStore({ retryStrategy: () => 300, username: prefix, password: 'password' })
    const held = execution('a')
    const lost = way.lose('reply').then(() => direct.call('ACL', 'SETUSER', prefix, '-evalsha'))
    await expect(store.commit(held)).rejects.toThrow(OutcomeUnknown)
    await lost
    expect([held.version, (await store.load('a'))?.version]).toEqual([0, 1])
  })

  test('a commit that another worker has forestalled is a conflict, also after a break', async () => {
    const store = await openStore(quick)
    await storeOn(direct, { prefix }).commit(execution('a'), { processedEventId: 'theirs' })
    const lost = way.lose('reply')
    await expect(store.commit(execution('a'), { processedEventId: 'mine' })).rejects.toThrow(StoreConflict)
    await lost
  })

  test('a step of a trace whose reply is lost is appended once', async () => {
    const store = await openStore(quick)
    await store.appendTrace('a', { n: 0 })
    const lost = way.lose('reply')
    await store.appendTrace('a', { n: 1 })
    await lost
    expect(await store.readTrace('a')).toEqual([
      { n: 0, index: 0 },
      { n: 1, index: 1 },
    ])
  })

  test('a purge whose reply is lost has purged', async () => {
    const store = await openStore(quick)
    await store.commit(execution('a'), parts('a'))
    const lost = way.lose('reply', `${prefix}:result`)
    expect(await store.purge('a', 1)).toBe(true)
    await lost
    expect(await store.load('a')).toBeUndefined()
  })

  test.each(['reply', 'half the reply'] as const)(
    'reads and acknowledgements are asked again (lost: %s)',
    async (loss) => {
      const store = await openStore(quick)
      const [first = 0, second = 0] = await store.commit(execution('a'), parts('a'))
      const calls: [command: string, call: () => Promise<unknown>][] = [
        ['get', () => store.load('a')],
        ['sismember', () => store.isProcessed('a', 'a-event')],
        ['hmget', () => store.pendingOutbox()],
        ['hdel', () => store.ackOutbox(first)],
        ['evalsha', () => store.deleteTimer('a', 'P', 1.5)],
        ['evalsha', () => store.dueTimers(9)],
        ['zrangebylex', () => store.listExecutions()],
        ['hsetnx', () => store.publishDefinition({ id: 'D', version: '1', definition: {} })],
      ]
      for (const [command, call] of calls) {
        const lost = way.lose(loss, command)
        await call()
        await lost
      }
      expect((await store.pendingOutbox()).map(({ seq }) => seq)).toEqual([second])
    },
  )
})
