import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import { inspect } from 'node:util'
import { InvalidArgument, OutcomeUnknown, RedisStore, StoreUnavailable } from '@harel/store-redis'
import { type StartOptions, startServer, type TestServer } from '@harel-tooling/test-servers'
import { withServer } from '@harel-tooling/test-servers/vitest'
import { Redis } from 'ioredis'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { execution, parts } from './commits.js'
import { clientFor, dumpOf, freshPrefix, storeOn } from './database.js'
import { Way } from './way.js'

async function serverWith(config: StartOptions<'redis'>['config'] = {}): Promise<TestServer> {
  const server = await startServer('redis', { own: true, config })
  onTestFinished(() => server.stop())
  return server
}

const failure = (call: Promise<unknown>): Promise<unknown> =>
  call.then(
    () => undefined,
    (error: unknown) => error,
  )

withServer('redis', ({ url }) => {
  describe('a server', () => {
    test('that has become a replica is StoreUnavailable, and nothing is applied; reads go on (B47)', async () => {
      const [master, replica] = await Promise.all([serverWith({ 'repl-diskless-sync-delay': 0 }), serverWith()])
      const client = clientFor(replica.url)
      const store = storeOn(client, { prefix: 'harel' })
      const held = execution('a')
      await store.commit(held, parts('a'))
      await storeOn(clientFor(master.url), { prefix: 'harel' }).commit(execution('a'), parts('a'))
      const { hostname, port } = new URL(master.nodes[0]?.innerUrl ?? '')
      await client.replicaof(hostname, Number(port))
      while (!/master_link_status:up/.test(await client.info('replication'))) await sleep(20)
      const before = await dumpOf(client, 'harel:')
      const calls = {
        commit: () => store.commit(held, parts('a')),
        appendTrace: () => store.appendTrace('a', {}),
        purge: () => store.purge('a', 1),
        ackOutbox: () => store.ackOutbox(1),
        deleteTimer: () => store.deleteTimer('a', 'P', 1.5),
        publishDefinition: () => store.publishDefinition({ id: 'D', version: '1', definition: 1 }),
      }
      for (const [name, call] of Object.entries(calls)) {
        const error = await failure(call())
        expect(error, name).toBeInstanceOf(StoreUnavailable)
        expect(String(error), name).toContain('READONLY')
      }
      expect(held.version).toBe(1)
      expect(await dumpOf(client, 'harel:')).toEqual(before)
      expect(await store.dueTimers(9, { after: { executionId: 'a', path: 'A', fireAt: 1.5 } })).toHaveLength(1)
      expect(await store.pendingOutbox()).toHaveLength(2)
      await client.replicaof('NO', 'ONE')
      await store.commit(held, parts('a'))
      expect(held.version).toBe(2)
    })

    test('whose memory is full is StoreUnavailable, with nothing half written, and can be relieved (B46, weakness 6)', async () => {
      const server = await serverWith()
      const client = clientFor(server.url)
      const store = storeOn(client, { prefix: 'harel' })
      const held = execution('a', { context: { text: 'CANARY-42' } })
      await store.commit(held, parts('a'))
      const used = Number(/used_memory:(\d+)/.exec(await client.info('memory'))?.[1])
      await client.config('SET', 'maxmemory', used)
      const before = await dumpOf(client, 'harel:')
      for (const changes of [{}, parts('a')]) {
        const error = await failure(store.commit(held, changes))
        expect(error).toBeInstanceOf(StoreUnavailable)
        expect(String(error)).toContain('OOM')
        expect(inspect(error, { depth: 9, showHidden: true })).not.toContain('CANARY-42')
      }
      expect(await failure(store.appendTrace('a', {}))).toBeInstanceOf(StoreUnavailable)
      expect(held.version).toBe(1)
      expect(await dumpOf(client, 'harel:')).toEqual(before)
      await store.ackOutbox([1, 2])
      await store.deleteTimer('a', 'P', 1.5)
      expect(await store.purge('a', 1)).toBe(true)
    })

    test('that cannot write to its disk is StoreUnavailable, with nothing applied', async (context) => {
      const server = await serverWith({ appendonly: 'no', save: '3600 1' })
      if (server.folder === undefined) return context.skip('its disk is out of reach')
      const client = clientFor(server.url)
      const store = storeOn(client, { prefix: 'harel' })
      const held = execution('a')
      await store.commit(held)
      rmSync(server.folder, { recursive: true })
      await client.bgsave()
      while (!/rdb_last_bgsave_status:err/.test(await client.info('persistence'))) await sleep(20)
      const error = await failure(store.commit(held, parts('a')))
      expect(error).toBeInstanceOf(StoreUnavailable)
      expect(String(error)).toContain('MISCONF')
      expect(held.version).toBe(1)
      expect((await store.load('a'))?.version).toBe(1)
    })

    test('that is still loading its data is StoreUnavailable to a client that does not wait', async () => {
      const delays = { 'key-load-delay': 5000, 'loading-process-events-interval-bytes': 1024 }
      const server = await serverWith({ appendonly: 'no', ...delays })
      const client = clientFor(server.url, { enableReadyCheck: false, retryStrategy: () => 20 })
      const patient = clientFor(server.url)
      const store = storeOn(client, { prefix: 'harel' })
      for (let n = 0; n < 200; n++) void store.save(execution(`e${n}`))
      await store.save(execution('a'))
      await client.save()
      // What it sends before it has noticed may have arrived.
      const closed = once(client, 'close')
      await server.kill()
      await closed
      const restarted = server.restart()
      const error = await failure(store.save(execution('b')))
      expect(error).toBeInstanceOf(StoreUnavailable)
      expect(String(error)).toContain('LOADING')
      await storeOn(patient, { prefix: 'harel' }).save(execution('b'))
      await restarted
    })

    test('that evicts keys is reported as often as a store is opened, where its settings can be read (B46, weakness 52)', async () => {
      const server = await serverWith({ 'maxmemory-policy': 'allkeys-lru' })
      const warnings: string[] = []
      const onWarning = (message: string) => warnings.push(message)
      await using store = await RedisStore.connect(server.url, { onWarning })
      await store.save(execution('a'))
      expect(warnings).toEqual([expect.stringMatching(/maxmemory-policy allkeys-lru.*noeviction/)])
      await using quiet = await RedisStore.connect(url, { onWarning, prefix: freshPrefix() })
      await quiet.load('a')
      expect(warnings).toHaveLength(1)
    })

    test('that wants a password, or another one, is StoreUnavailable, and no message shows it (B102)', async () => {
      const server = await serverWith()
      await clientFor(server.url).config('SET', 'requirepass', 'SECRET-1')
      for (const user of ['', ':SECRET-2@', 'nobody:SECRET-2@']) {
        const address = server.url.replace('redis://', `redis://${user}`)
        const error = await failure(RedisStore.connect(address, { client: { maxRetriesPerRequest: 1 } }))
        expect(error).toBeInstanceOf(StoreUnavailable)
        expect(inspect(error, { depth: 9, showHidden: true })).not.toContain('SECRET')
      }
      await using store = await RedisStore.connect(server.url.replace('redis://', 'redis://:SECRET-1@'))
      await store.save(execution('a'))
      expect(inspect(store, { depth: 9 })).not.toContain('SECRET')
    })
  })

  describe('a server that cannot be reached', () => {
    const NOBODY = 'redis://127.0.0.1:1'

    test('is StoreUnavailable in the time that was given, for a store that connects (B93)', async () => {
      const begin = performance.now()
      const error = await failure(RedisStore.connect(NOBODY, { client: { maxRetriesPerRequest: 2 } }))
      expect(error).toBeInstanceOf(StoreUnavailable)
      expect(performance.now() - begin).toBeLessThan(5000)
    })

    test('is StoreUnavailable within ten seconds when nothing else was said', async () => {
      const begin = performance.now()
      expect(await failure(RedisStore.connect(NOBODY))).toBeInstanceOf(StoreUnavailable)
      expect(performance.now() - begin).toBeLessThan(20_000)
    })

    test("is StoreUnavailable to every method of a store on a caller's client, and the version stays (B93)", async () => {
      const client = clientFor(NOBODY, { maxRetriesPerRequest: 0, retryStrategy: () => 10 })
      const store = storeOn(client)
      const held = execution('a')
      for (const call of [() => store.commit(held), () => store.load('a'), () => store.purge('a', 1)]) {
        expect(await failure(call())).toBeInstanceOf(StoreUnavailable)
      }
      expect(held.version).toBe(0)
    })

    test('is StoreUnavailable, not unknown, to a commit that was never sent', async () => {
      const way = await Way.to(url)
      const store = storeOn(clientFor(way.url, { maxRetriesPerRequest: 1, retryStrategy: () => 20 }))
      const held = execution('a')
      await store.save(held)
      way.close()
      await sleep(50)
      for (let n = 0; n < 3; n++) expect(await failure(store.save(held))).toBeInstanceOf(StoreUnavailable)
      expect(held.version).toBe(1)
      await way.open()
      await expect.poll(async () => (await store.load('a'))?.version, { timeout: 30_000 }).toBe(1)
      await store.save(held)
      expect(held.version).toBe(2)
    })

    test('is StoreUnavailable where its client does not queue', async () => {
      const way = await Way.to(url)
      const client = clientFor(way.url, { enableOfflineQueue: false, lazyConnect: true })
      await client.connect()
      const store = storeOn(client)
      const held = execution('a')
      await store.save(held)
      way.close()
      await sleep(50)
      expect(await failure(store.save(held))).toBeInstanceOf(StoreUnavailable)
    })

    test('because its client was ended is StoreUnavailable', async () => {
      const client = clientFor(url)
      const store = storeOn(client)
      await store.save(execution('a'))
      client.disconnect()
      await once(client, 'end')
      for (const call of [() => store.save(execution('b')), () => store.load('a')]) {
        expect(await failure(call())).toBeInstanceOf(StoreUnavailable)
      }
    })

    test('and says nothing any more is given up in the time that was given', async () => {
      const way = await Way.to(url)
      const options = { commandTimeout: 2000, socketTimeout: 200, maxRetriesPerRequest: 1, retryStrategy: () => 20 }
      await using store = await RedisStore.connect(way.url, { prefix: freshPrefix(), client: options })
      const held = execution('a')
      await store.save(held)
      way.silence()
      const begin = performance.now()
      expect(await failure(store.save(held))).toBeInstanceOf(OutcomeUnknown)
      expect(await failure(store.load('a'))).toBeInstanceOf(StoreUnavailable)
      expect(performance.now() - begin).toBeLessThan(30_000)
      expect(held.version).toBe(1)
    })

    test('and says nothing any more is given up after a minute, when no other time was given', async () => {
      const way = await Way.to(url)
      vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
      onTestFinished(() => void vi.useRealTimers())
      await using store = await RedisStore.connect(way.url, { prefix: freshPrefix() })
      way.silence()
      let failed: unknown
      const loading = failure(store.load('a')).then((error) => {
        failed = error
      })
      let passed = 0
      for (; failed === undefined && passed < 90_000; passed += 1000) {
        await vi.advanceTimersByTimeAsync(1000)
        // Sockets, which have no part in this clock, are closed and made meanwhile.
        for (let turns = 0; turns < 50; turns++) await nextTurn()
      }
      await loading
      expect(failed).toBeInstanceOf(StoreUnavailable)
      expect(passed).toBe(60_000)
      way.close()
    })

    test('can be left: closing the store does not wait for it (B92)', async () => {
      const way = await Way.to(url)
      const store = await RedisStore.connect(way.url, { prefix: freshPrefix() })
      way.close()
      await sleep(50)
      const begin = performance.now()
      await store.close()
      expect(performance.now() - begin).toBeLessThan(1000)
    })
  })

  test.each([[null], [5], ['x'], [[]], [() => {}], [new Map([['prefix', 'a']])]])(
    'options that are no plain object are refused: %s',
    async (options) => {
      const refused = RedisStore.connect('redis://127.0.0.1:1', options as object)
      await expect(refused).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', argument: 'options' })
    },
  )

  test('what is no client and no URL of Redis is refused', async () => {
    for (const client of [undefined, null, {}, 'redis://localhost', { host: 'localhost' }]) {
      expect(() => new RedisStore(client as unknown as Redis)).toThrow(InvalidArgument)
    }
    for (const address of ['localhost', 'http://user:SECRET@localhost', '', 5, undefined]) {
      const error = await failure(RedisStore.connect(address as string))
      expect(error).toBeInstanceOf(InvalidArgument)
      expect(String(error)).not.toContain('SECRET')
    }
    const unused = new Redis(url, { lazyConnect: true })
    for (const options of [{ traceMax: -1 }, { traceMax: 1.5 }, { hashTag: 'yes' }]) {
      expect(() => new RedisStore(unused, options as object)).toThrow(InvalidArgument)
    }
  })
})
