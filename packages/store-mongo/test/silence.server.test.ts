import { MongoStore, OutcomeUnknown, StoreUnavailable } from '@harel/store-mongo'
import { TcpProxy } from '@harel/store-testing/faults'
import { withServer } from '@harel-tooling/test-servers/vitest'
import { MongoClient, type MongoClientOptions } from 'mongodb'
import { expect, onTestFinished, test, vi } from 'vitest'
import { execution, newPrefix, open, useDatabase } from './helpers.js'

const TIMEOUT = 1000
const TIMES = { socketTimeoutMS: TIMEOUT, connectTimeoutMS: TIMEOUT, serverSelectionTimeoutMS: TIMEOUT }

/** What a call fails with, and after how many times the time-out. */
async function failure(call: Promise<unknown>): Promise<{ error: unknown; timeouts: number }> {
  const start = performance.now()
  const error = await call.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  return { error, timeouts: (performance.now() - start) / TIMEOUT }
}

function withParameters(url: string, parameters: Record<string, number>): string {
  const changed = new URL(url)
  for (const [name, value] of Object.entries(parameters)) changed.searchParams.set(name, String(value))
  return changed.href
}

withServer('mongo', (server) => {
  const database = useDatabase(server)

  const setUp = async () => {
    const proxy = await TcpProxy.to(database.url)
    onTestFinished(() => proxy[Symbol.asyncDispose]())
    const prefix = newPrefix()
    // To make the indexes may take longer.
    await (await MongoStore.connect(database.url, { prefix })).close()
    const store = await MongoStore.connect(proxy.url, { prefix, client: TIMES })
    const held = execution('a')
    await store.commit(held)
    return { proxy, store, held }
  }

  // The driver tries again before it gives up, each time as long; a heartbeat would end that after eleven time-outs.
  test('a server that says nothing ends calls, and keeps no store from closing', async () => {
    const { proxy, store, held } = await setUp()
    proxy.hold()
    const [commit, load, list] = await Promise.all([
      // The first one has a connection, and so is sent.
      failure(store.commit(held)),
      failure(store.load('a')),
      failure(store.listExecutions()),
    ])
    for (const { error, timeouts } of [load, list]) {
      expect(error).toBeInstanceOf(StoreUnavailable)
      expect(error).toMatchObject({ retryable: true })
      expect(timeouts).toBeLessThan(7)
    }
    expect(commit.error).toBeInstanceOf(OutcomeUnknown)
    expect(commit.timeouts).toBeLessThan(10)
    expect(held.version).toBe(1)
    const late = failure(store.load('a'))
    expect((await failure(store.close())).timeouts).toBeLessThan(10)
    expect((await late).error).toBeInstanceOf(StoreUnavailable)
  })

  test('a server that says nothing ends an attempt to open a store', async () => {
    const { proxy, store } = await setUp()
    await store.close()
    proxy.hold()
    const { error, timeouts } = await failure(MongoStore.connect(proxy.url, { client: TIMES }))
    expect(error).toBeInstanceOf(StoreUnavailable)
    expect(timeouts).toBeLessThan(4)
  })

  test.each<{ given: string; url?: Record<string, number>; client?: MongoClientOptions; expected: number }>([
    { given: 'nothing', expected: 30_000 },
    { given: 'other options', url: { maxPoolSize: 2 }, client: { maxIdleTimeMS: 1000 }, expected: 30_000 },
    { given: 'a time in the URL', url: { socketTimeoutMS: 2000 }, expected: 2000 },
    { given: 'a time in the options', client: { socketTimeoutMS: 3000 }, expected: 3000 },
    { given: 'a time in both', url: { socketTimeoutMS: 2000 }, client: { socketTimeoutMS: 3000 }, expected: 3000 },
  ])('given $given, a reply is waited for $expected ms', async ({ url = {}, client = {}, expected }) => {
    const connected = vi.spyOn(MongoClient.prototype, 'connect')
    onTestFinished(() => connected.mockRestore())
    await open(withParameters(database.url, url), { prefix: newPrefix(), client })
    expect(connected.mock.contexts).toMatchObject([{ options: { socketTimeoutMS: expected } }])
  })
})
