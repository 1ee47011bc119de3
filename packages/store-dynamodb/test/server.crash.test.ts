import { setTimeout as sleep } from 'node:timers/promises'
import { DynamoStore, OutcomeUnknown, StoreUnavailable } from '@harel/store-dynamodb'
import { startServer, type TestServer } from '@harel-tooling/test-servers'
import { withServer } from '@harel-tooling/test-servers/vitest'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { emitsOf, execution } from './commits.js'
import { clientFor, configFor, freshPrefix, storeOn } from './database.js'

// This file kills its server, so it has one of its own; without any, it says so like the others.
withServer('dynamodb', () => {
  describe('a server of its own', () => {
    let server: TestServer
    beforeAll(async () => {
      server = await startServer('dynamodb', { own: true, flavour: 'dynoxide' })
    })
    afterAll(() => server?.stop())

    test('that is restarted in the middle is waited for', async () => {
      await using store = await DynamoStore.connect(configFor(server.url), { prefix: freshPrefix() })
      const held = Array.from({ length: 5 }, (_, n) => execution(`e${n}`))
      const working = Promise.all(
        held.map(async (each) => {
          while (each.version < 30) await store.commit(each, { emits: emitsOf('x', 1) })
        }),
      )
      await sleep(50)
      await server.restart()
      await working
      expect(await store.pendingOutbox()).toHaveLength(5 * 30)
    })

    test('that is gone for a while is reported, and worked with again when it is back (B93)', async () => {
      const store = storeOn(clientFor(server.url))
      const held = execution('a')
      await store.save(held)
      await server.kill()
      const error = await store.save(held).catch((reason: unknown) => reason)
      expect([StoreUnavailable, OutcomeUnknown].some((type) => error instanceof type)).toBe(true)
      await expect(store.load('a')).rejects.toThrow(StoreUnavailable)
      expect(held.version).toBe(1)
      await server.restart()
      await store.save(held)
      expect(await store.load('a')).toMatchObject({ version: 2 })
    })
  })
})
