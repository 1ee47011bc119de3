import { spawn } from 'node:child_process'
import { on } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { LibsqlStore, StoreUnavailable } from '@harel/store-libsql'
import { TcpProxy } from '@harel/store-testing/faults'
import { withServer } from '@harel-tooling/test-servers/vitest'
import { describe, expect, onTestFinished, test } from 'vitest'
import { clientOf, everything, execution, freshFile, rows } from './helpers.js'

let prefixes = 0

const TIMEOUT = 1000

/** What a call has come to, and after how many times the time-out. */
async function outcome<T>(call: Promise<T>): Promise<{ value?: T; error?: unknown; timeouts: number }> {
  const start = performance.now()
  const settled = await call.then(
    (value) => ({ value }),
    (error: unknown) => ({ error }),
  )
  return { ...settled, timeouts: (performance.now() - start) / TIMEOUT }
}

/** A proxy in a process of its own, which goes with the test. */
async function proxyApart(target: string): Promise<{ url: string; hold: () => Promise<void> }> {
  const child = spawn(process.execPath, [join(import.meta.dirname, 'programs/proxy.ts'), target], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  onTestFinished(() => {
    child.kill('SIGKILL')
  })
  const lines = on(createInterface(child.stdout), 'line')
  const next = async () => String((await lines.next()).value)
  const url = await next()
  const hold = async () => {
    child.stdin.write('hold\n')
    await next()
  }
  return { url, hold }
}

withServer('libsql', (server) => {
  /** It may take longer than the time-out. */
  const makeTables = async (prefix: string) => {
    const store = await LibsqlStore.connect({ url: server.url }, { prefix })
    await store.close()
  }

  const ways = [
    { way: 'HTTP', config: (url: string) => ({ url }) },
    { way: 'a web socket', config: (url: string) => ({ url: url.replace(/^http/, 'ws') }) },
  ]

  describe.each(ways)('over $way, a server that says nothing', ({ config }) => {
    const setUp = async () => {
      const proxy = await TcpProxy.to(server.url)
      onTestFinished(() => proxy[Symbol.asyncDispose]())
      const prefix = `silence${process.pid}_${++prefixes}`
      await makeTables(prefix)
      const store = await LibsqlStore.connect(config(proxy.url), { prefix, timeout: TIMEOUT })
      const held = execution('a')
      await store.commit(held, everything('a'))
      return { proxy, prefix, store, held, counts: () => rows(clientOf({ url: server.url }), prefix) }
    }

    test('ends a read, which may be tried again', async () => {
      const { proxy, store } = await setUp()
      proxy.hold()
      const read = [store.load('a'), store.pendingOutbox(), store.listExecutions(), store.readTrace('a')]
      for (const { error, timeouts } of await Promise.all(read.map((call) => outcome<unknown>(call)))) {
        expect(error).toBeInstanceOf(StoreUnavailable)
        expect(error).toMatchObject({ retryable: true })
        expect(timeouts).toBeLessThan(5)
      }
      proxy.restore()
      expect(await store.load('a')).toMatchObject({ version: 1 })
      await store.close()
    })

    test('leaves a commit written once or not at all, and its outcome unknown', async () => {
      const { proxy, store, held, counts } = await setUp()
      proxy.hold()
      const { error, timeouts } = await outcome(store.commit(held, everything('b')))
      expect(error).toMatchObject({ code: 'OUTCOME_UNKNOWN' })
      expect(held.version).toBe(1)
      expect(timeouts).toBeLessThan(8)
      // What was held up still arrives.
      proxy.restore()
      const { version } = (await store.load('a')) ?? expect.unreachable()
      held.version = version
      await store.commit(held, everything('c'))
      expect(held.version).toBe(version + 1)
      expect((await counts())[1]).toBe(version + 1)
      await store.close()
    })

    test('is asked once more, so that a commit succeeds when it speaks again', async () => {
      const { proxy, store, held, counts } = await setUp()
      proxy.hold()
      const committed = outcome(store.commit(held, everything('b')))
      setTimeout(() => proxy.restore(), 1.5 * TIMEOUT)
      expect((await committed).value).toHaveLength(1)
      expect(held.version).toBe(2)
      expect((await counts())[1]).toBe(2)
      await store.close()
    })

    test('keeps no write waiting for the time-outs of all before it', async () => {
      const { proxy, store } = await setUp()
      proxy.hold()
      const writes = Array.from({ length: 30 }, (_, n) => outcome(store.ackOutbox(1000 + n)))
      for (const { error, timeouts } of await Promise.all(writes)) {
        expect((error as { code?: string }).code).toMatch(/^(OUTCOME_UNKNOWN|STORE_UNAVAILABLE)$/)
        expect(timeouts).toBeLessThan(5)
      }
      await store.close()
    })

    test('does not keep a store from closing, nor one from being opened', async () => {
      const { proxy, store, held } = await setUp()
      proxy.hold()
      const calls = [store.load('a'), store.commit(held, everything('b')), store.listExecutions()]
      const ended = Promise.all(calls.map((call) => outcome<unknown>(call)))
      const closed = await outcome(store.close())
      expect(closed.error).toBeUndefined()
      expect(closed.timeouts).toBeLessThan(6)
      for (const { error } of await ended)
        expect(error).toMatchObject({ name: expect.stringMatching(/^Store|^Outcome/) })
      const { error, timeouts } = await outcome(LibsqlStore.connect(config(proxy.url), { timeout: TIMEOUT }))
      expect(error).toBeInstanceOf(StoreUnavailable)
      expect(timeouts).toBeLessThan(5)
    })

    test("ends the calls on a caller's client", async () => {
      const { proxy, prefix, store, held } = await setUp()
      const own = new LibsqlStore(clientOf(config(proxy.url)), { prefix, timeout: TIMEOUT })
      await own.load('a')
      proxy.hold()
      for (const call of [own.load('a'), own.commit(held), own.close(), store.close()]) {
        expect((await outcome<unknown>(call)).timeouts).toBeLessThan(5)
      }
    })

    test('ends a transaction', async () => {
      const { proxy, store, held } = await setUp()
      const inside = store.transaction(async (inner) => {
        proxy.hold()
        await inner.commit(held, everything('b'))
      })
      const { error, timeouts } = await outcome(inside)
      expect(error).toBeInstanceOf(StoreUnavailable)
      expect(timeouts).toBeLessThan(5)
      expect(held.version).toBe(1)
      await store.close()
    })
  })

  test('a replica whose primary says nothing ends its calls, and leaves the process running', async () => {
    // Not in this process: the driver stops it while it brings the copy up to date.
    const { url: syncUrl, hold } = await proxyApart(server.url)
    const config = { url: freshFile(), syncUrl }
    const options = { prefix: `silence${process.pid}_${++prefixes}`, timeout: TIMEOUT }
    await makeTables(options.prefix)
    const store = await LibsqlStore.connect(config, options)
    await store.commit(execution('a'))
    expect((await store.listExecutions()).items).toHaveLength(1)
    await hold()
    for (const call of [store.listExecutions(), store.load('a'), store.commit(execution('b'))]) {
      const { error, timeouts } = await outcome<unknown>(call)
      expect((error as { code?: string }).code).toMatch(/^(OUTCOME_UNKNOWN|STORE_UNAVAILABLE)$/)
      expect(timeouts).toBeLessThan(5)
    }
    expect((await outcome(store.close())).timeouts).toBeLessThan(5)
    const { error } = await outcome(LibsqlStore.connect({ ...config, url: freshFile() }, options))
    expect(error).toBeInstanceOf(StoreUnavailable)
  })
})
