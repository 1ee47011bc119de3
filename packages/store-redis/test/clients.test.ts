import { inspect } from 'node:util'
import { InvalidArgument, newEvent, RedisStore, StoreClosed, StoreConflict } from '@harel/store-redis'
import { withServer } from '@harel-tooling/test-servers/vitest'
import { Cluster, type Redis } from 'ioredis'
import { describe, expect, onTestFinished, test } from 'vitest'
import { execution, parts } from './commits.js'
import { type ClientOptions, clientFor, dumpOf, freshPrefix, storeOn } from './database.js'

const listenersOf = (client: Redis) =>
  client
    .eventNames()
    .map((name) => [name, client.listenerCount(name as 'close')])
    .sort()

withServer('redis', ({ url }) => {
  describe("a caller's client", () => {
    test.each([{}, { autoResendUnfulfilledCommands: false }])(
      'is left as it was (%o) (B92, B93)',
      async (options: ClientOptions) => {
        const client = clientFor(url, options)
        await client.ping()
        const before = listenersOf(client)
        const stores = Array.from({ length: 5 }, () => new RedisStore(client, { prefix: freshPrefix() }))
        for (const store of stores) await store.save(execution('a'))
        for (const store of stores) await store.close()
        expect(listenersOf(client)).toEqual(before)
        expect(await client.ping()).toBe('PONG')
        await expect(stores[0]?.save(execution('b'))).rejects.toThrow(StoreClosed)
      },
    )

    test('carries twenty commits of one version at once, of which one wins (B56)', async () => {
      const store = storeOn(clientFor(url))
      const outcomes = await Promise.allSettled(
        Array.from({ length: 20 }, () => store.commit(execution('a'), parts('a'))),
      )
      const lost = outcomes.filter((outcome) => outcome.status === 'rejected')
      expect(lost).toHaveLength(19)
      for (const { reason } of lost) expect(reason).toBeInstanceOf(StoreConflict)
      expect(await store.pendingOutbox()).toHaveLength(2)
    })

    test('that connects when it is first used is connected by the first call', async () => {
      const client = clientFor(url, { lazyConnect: true })
      const store = storeOn(client)
      expect(client.status).toBe('wait')
      await store.save(execution('a'))
      expect((await store.load('a'))?.version).toBe(1)
    })

    test('that is never used is not connected by closing the store (B92)', async () => {
      const client = clientFor(url, { lazyConnect: true })
      await storeOn(client).close()
      expect(client.status).toBe('wait')
    })

    test('with a prefix puts it before every key (B36)', async () => {
      const keyPrefix = `${freshPrefix()}:`
      const client = clientFor(url, { keyPrefix })
      const store = storeOn(client, { prefix: 'p' })
      await store.commit(execution('a'), parts('a'))
      await store.publishDefinition({ id: 'D', version: '1', definition: 1 })
      await store.listExecutions()
      const stored = await dumpOf(clientFor(url), '')
      const here = Object.keys(stored).filter((key) => key.includes(':exe:a') && key.startsWith(keyPrefix))
      expect(here).toEqual([`${keyPrefix}p:exe:a`])
      expect(Object.keys(stored).filter((key) => key.startsWith('p:'))).toEqual([])
      expect(await store.purge('a', 1)).toBe(true)
    })
  })

  describe('nothing that is printed', () => {
    test('shows a payload: neither an error, nor its cause, nor the store (B102)', async () => {
      const client = clientFor(url)
      const prefix = freshPrefix()
      const store = storeOn(client, { prefix })
      await client.set(`${prefix}:processed:a`, 'x')
      await client.lpush(`${prefix}:definition_versions`, 'x')
      const secret = { text: 'CANARY-42' }
      const held = execution('a', { context: secret })
      const event = newEvent({ kind: 'k', data: secret })
      const calls = [
        () => store.commit(held, { processedEventId: 'e', emits: [{ targetId: null, event }] }),
        () => store.loadForEvent('a', 'CANARY-42'),
        () => store.publishDefinition({ id: 'D', version: '1', definition: secret }),
      ]
      for (const call of calls) {
        const error = await call().then(
          () => undefined,
          (reason: unknown) => reason,
        )
        expect(error).toBeInstanceOf(Error)
        expect(inspect(error, { depth: 9, showHidden: true })).not.toContain('CANARY-42')
      }
      expect(inspect(store, { depth: 9 })).not.toContain('CANARY-42')
    })
  })

  describe('a Cluster client', () => {
    const clusterFor = (options = {}) => {
      // Never connected: what is wrong with it is known before.
      const cluster = new Cluster([{ host: '127.0.0.1', port: 1 }], { lazyConnect: true, ...options })
      onTestFinished(() => cluster.disconnect())
      return cluster
    }

    test('without hashTag is refused by the first call, and by every other (B45)', async () => {
      const store = storeOn(clusterFor())
      for (const call of [() => store.load('a'), () => store.save(execution('a')), () => store.reindex()]) {
        const error = await call().then(
          () => undefined,
          (reason: unknown) => reason,
        )
        expect(error).toBeInstanceOf(InvalidArgument)
        expect(String(error)).toMatch(/hashTag.*Redis Cluster/)
      }
    })

    test('that reads from replicas is refused (B72, weakness 3)', async () => {
      const store = storeOn(clusterFor({ scaleReads: 'slave' }), { hashTag: true })
      await expect(store.load('a')).rejects.toThrow(/scaleReads/)
    })
  })
})
