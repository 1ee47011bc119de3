import { StoreUnavailable } from '@harel/store-base'
import { withServer } from '@harel-tooling/test-servers/vitest'
import { beforeEach, describe, expect, test } from 'vitest'
import { connect, execution, many, newSchema, open, proxyTo, rows, useDatabase, versions } from './helpers.js'

withServer('postgres', (server) => {
  const database = useDatabase(server)

  /** New sessions take writes or do not, as those of a primary and of the standby that it has become. */
  const readOnly = async (state: 'on' | 'off') => {
    const { pathname } = new URL(database.url)
    await connect(server.url).unsafe(`ALTER DATABASE ${pathname.slice(1)} SET default_transaction_read_only = ${state}`)
  }

  describe('a server that takes no writes any more', () => {
    let schema: string
    beforeEach(async () => {
      schema = newSchema()
      const store = await open(database.url, { schema })
      await store.commit(execution('a'))
      await readOnly('on')
      return () => readOnly('off')
    })

    test('refuses commits with nothing written, is read from, and is left when another one takes them (B47)', async () => {
      const store = await open(database.url, { schema })
      const held = execution('a', { version: 1 })
      await expect(store.commit(held)).rejects.toThrow(StoreUnavailable)
      await expect(store.commit(held)).rejects.toThrow('25006')
      expect(await store.load('a')).toMatchObject({ version: 1 })
      await readOnly('off')
      // The session that was read from is of before, and is left when it refuses.
      await store.commit(held).catch(() => store.commit(held))
      expect(await store.load('a')).toMatchObject({ version: 2 })
    })

    test('is left by a transaction too (B47)', async () => {
      const store = await open(database.url, { schema, client: { max: 1 } })
      const held = execution('a', { version: 1 })
      await expect(store.transaction((inner) => inner.commit(held))).rejects.toThrow(StoreUnavailable)
      await readOnly('off')
      await store.transaction((inner) => inner.commit(held))
      expect(held.version).toBe(2)
    })

    test('is asked once for many commits that arrive together', async () => {
      const proxy = await proxyTo(database.url)
      const store = await open(proxy.url, { schema, client: { max: 1 } })
      await store.commit(execution('first')).catch(() => {})
      const before = proxy.roundTrips
      const held = many(100)
      const outcomes = await Promise.allSettled(held.map((each) => store.commit(each)))
      for (const outcome of outcomes)
        expect(outcome).toMatchObject({ reason: { code: 'STORE_UNAVAILABLE', retryable: true } })
      expect(versions(held)).toEqual(held.map(() => 0))
      // To connect, to learn the statement, and to be refused.
      expect(proxy.roundTrips - before).toBeLessThan(10)
      expect((await rows(connect(database.url), schema))[0]).toBe(1)
    })
  })
})
