import { OutcomeUnknown, RedisStore, StoreUnavailable } from '@harel/store-redis'
import { startServer, type TestServer } from '@harel-tooling/test-servers'
import { withServer } from '@harel-tooling/test-servers/vitest'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { execution, parts } from './commits.js'
import { clientFor, freshPrefix, storeOn } from './database.js'

// This file kills its server, so it has one of its own; without any, it says so like the others.
withServer('redis', () => {
  describe('a server of its own', () => {
    let server: TestServer
    beforeAll(async () => {
      server = await startServer('redis', { own: true })
    })
    afterAll(() => server?.stop())

    test('that is restarted in the middle is waited for, and loses its scripts without harm (B59, B93)', async () => {
      await using store = await RedisStore.connect(server.url, { prefix: freshPrefix() })
      const held = Array.from({ length: 5 }, (_, n) => execution(`e${n}`))
      await Promise.all(held.map((each) => store.commit(each, parts(each.id))))
      const working = Promise.all(
        held.map(async (each) => {
          while (each.version < 200) await store.commit(each, parts(each.id))
        }),
      )
      await server.restart()
      await working
      expect(await store.pendingOutbox()).toHaveLength(5 * 2 * 200)
    })

    test('that is gone for a while is reported, and worked with again when it is back (B93)', async () => {
      const client = clientFor(server.url, { maxRetriesPerRequest: 1, retryStrategy: () => 20 })
      const store = storeOn(client)
      const held = execution('a')
      await store.save(held)
      await server.kill()
      for (let n = 0; n < 3; n++) {
        const error = await store.save(held).then(
          () => undefined,
          (reason: unknown) => reason,
        )
        expect([StoreUnavailable, OutcomeUnknown].some((type) => error instanceof type)).toBe(true)
        await expect(store.load('a')).rejects.toThrow(StoreUnavailable)
      }
      expect(held.version).toBe(1)
      await server.restart()
      await store.save(held)
      expect((await store.load('a'))?.version).toBe(2)
    })

    test('that has forgotten the scripts gets them again, from many commits at once too (B59)', async () => {
      const client = clientFor(server.url)
      const store = storeOn(client)
      const held = Array.from({ length: 10 }, (_, n) => execution(`e${n}`))
      for (let round = 1; round <= 3; round++) {
        await client.script('FLUSH')
        await Promise.all(held.map((each) => store.commit(each, parts(each.id))))
        await client.script('FLUSH')
        await store.appendTrace('e0', {})
        await client.script('FLUSH')
        await store.dueTimers(9)
      }
      expect(held.map(({ version }) => version)).toEqual(Array(10).fill(3))
      expect(await store.pendingOutbox()).toHaveLength(60)
      await client.script('FLUSH')
      expect(await store.purge('e0', 3)).toBe(true)
    })

    test('that has forgotten the scripts gets them again from a client that pipelines by itself (B59)', async () => {
      const client = clientFor(server.url, { enableAutoPipelining: true })
      const store = storeOn(client)
      await client.script('FLUSH')
      const held = Array.from({ length: 10 }, (_, n) => execution(`e${n}`))
      await Promise.all(held.map((each) => store.commit(each, parts(each.id))))
      expect(await store.pendingOutbox()).toHaveLength(20)
    })
  })
})
