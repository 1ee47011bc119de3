import { OutcomeUnknown, PostgresStore, StoreUnavailable } from '@harel/store-postgres'
import { withServer } from '@harel-tooling/test-servers/vitest'
import { expect, test } from 'vitest'
import { connect, execution, newSchema, proxyTo, useDatabase } from './helpers.js'

const TIMEOUT = 1000

/** What a call fails with, and after how many times the time-out. */
async function failure(call: Promise<unknown>): Promise<{ error: unknown; timeouts: number }> {
  const start = performance.now()
  const error = await call.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  return { error, timeouts: (performance.now() - start) / TIMEOUT }
}

withServer('postgres', (server) => {
  const database = useDatabase(server)

  const setUp = async (openOn: (url: string, schema: string) => PostgresStore | Promise<PostgresStore>) => {
    const proxy = await proxyTo(database.url)
    const schema = newSchema()
    // To make the tables may take longer.
    await (await PostgresStore.connect(database.url, { schema })).close()
    const store = await openOn(proxy.url, schema)
    const held = execution('a')
    await store.commit(held)
    return { proxy, schema, store, held }
  }

  const ways = [
    {
      way: 'a pool of its own',
      open: (url: string, schema: string) => PostgresStore.connect(url, { schema, timeout: TIMEOUT }),
    },
    {
      way: "a caller's pool",
      open: (url: string, schema: string) => new PostgresStore(connect(url), { schema, timeout: TIMEOUT }),
    },
  ]

  test.each(ways)('a server that says nothing ends calls, and keeps no store from closing ($way)', async ({ open }) => {
    const { proxy, store, held } = await setUp(open)
    proxy.hold()
    const calls = { load: store.load('a'), list: store.listExecutions(), commit: store.commit(held) }
    for (const call of [calls.load, calls.list]) {
      const { error, timeouts } = await failure(call)
      expect(error).toBeInstanceOf(StoreUnavailable)
      expect(error).toMatchObject({ retryable: true })
      expect(timeouts).toBeLessThan(4)
    }
    const { error } = await failure(calls.commit)
    expect(error).toBeInstanceOf(OutcomeUnknown)
    expect(held.version).toBe(1)
    const late = failure(store.load('a'))
    expect((await failure(store.close())).timeouts).toBeLessThan(5)
    expect((await late).error).toBeInstanceOf(StoreUnavailable)
  })

  test.each(ways)('a commit succeeds when the server speaks again ($way)', async ({ open }) => {
    const { proxy, store, held } = await setUp(open)
    proxy.hold()
    setTimeout(() => proxy.restore(), 1.5 * TIMEOUT)
    await store.commit(held, { processedEventId: 'e' })
    expect(held.version).toBe(2)
    expect(await store.loadForEvent('a', 'e')).toEqual({ execution: held, processed: true })
    await store.close()
  })

  test('a server that says nothing ends an attempt to open a store', async () => {
    const { proxy, schema, store } = await setUp((url, schema) => PostgresStore.connect(url, { schema }))
    await store.close()
    proxy.hold()
    const { error, timeouts } = await failure(PostgresStore.connect(proxy.url, { schema, timeout: TIMEOUT }))
    expect(error).toBeInstanceOf(StoreUnavailable)
    expect(timeouts).toBeLessThan(4)
  })
})
