import { setTimeout as sleep } from 'node:timers/promises'
import { type ExecutionStore, RqliteStore, StoreConflict, StoreError, StoreUnavailable } from '@harel/store-rqlite'
import { startServer, type TestNode, type TestServer } from '@harel-tooling/test-servers'
import { withServer } from '@harel-tooling/test-servers/vitest'
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { everything, execution, failure, open } from './helpers.js'
import { commitNext, expectAcknowledged, expectWhole } from './written.js'

/** How often nodes are killed within a stream of commits. */
const ROUNDS = process.env.HAREL_TEST_ALL ? 8 : 1

async function ownServer(nodes: 1 | 3): Promise<TestServer> {
  const server = await startServer('rqlite', { own: true, nodes })
  onTestFinished(() => server.stop())
  return server
}

/** The node that leads, as one that is alive tells it. */
async function leaderOf(server: TestServer, asked: TestNode): Promise<TestNode> {
  for (;;) {
    const reply = await fetch(`${asked.url}/nodes`)
    const nodes = (await reply.json()) as Record<string, { api_addr?: string; leader?: boolean }>
    const leading = Object.values(nodes).find(({ leader }) => leader)?.api_addr
    const node = server.nodes.find(({ url }) => url === leading)
    if (node !== undefined) return node
    await sleep(50)
  }
}

/** Writers that commit one version after the other, whatever becomes of the server, until they are told to end. */
function stream(store: ExecutionStore, count: number) {
  const acknowledged: string[] = []
  let going = true
  const write = async (id: string) => {
    while (going) {
      try {
        acknowledged.push(`${id} ${await commitNext(store, id)}`)
      } catch (error) {
        // Nobody else writes it: a conflict would be one with itself.
        if (!(error instanceof StoreError) || error instanceof StoreConflict) throw error
        await sleep(20)
      }
    }
  }
  const writers = Promise.all(Array.from({ length: count }, (_, n) => write(`w${n}`)))
  return {
    acknowledged,
    more: async (commits: number) => {
      const wanted = acknowledged.length + commits
      while (acknowledged.length < wanted) await Promise.race([sleep(5), writers])
    },
    end: async () => {
      going = false
      await writers
    },
  }
}

// These tests kill their servers, so they have some of their own; without any, they say so like the others.
withServer('rqlite', () => {
  const unhandled: unknown[] = []
  const note = (error: unknown) => unhandled.push(error)
  beforeEach(() => {
    process.on('unhandledRejection', note)
  })
  afterEach(() => {
    process.off('unhandledRejection', note)
    expect(unhandled.splice(0)).toEqual([])
  })

  describe('one node', { timeout: 60_000 * ROUNDS }, () => {
    test('may be restarted between two commits', async () => {
      const server = await ownServer(1)
      const store = await open(server.url, { failoverTimeout: 300 })
      const held = execution('a')
      await store.commit(held, everything('a'))
      await server.restart()
      await store.commit(held, everything('b'))
      await server.kill()
      await expect(store.commit(held, everything('c'))).rejects.toBeInstanceOf(StoreError)
      await expect(RqliteStore.connect(server.url, { failoverTimeout: 0 })).rejects.toBeInstanceOf(StoreUnavailable)
      expect(held.version).toBe(2)
      await server.restart()
      await store.commit(held, everything('d'))
      expect(await store.load('a')).toEqual(held)
      expect((await store.pendingOutbox()).map(({ targetId }) => targetId)).toEqual(['a', 'b', 'd'])
    })

    test.each(['kill', 'restart'] as const)(
      'loses and doubles nothing by a %s within a stream of commits',
      async (end) => {
        const server = await ownServer(1)
        const store = await open(server.url, { traceMax: 0 })
        const { acknowledged, more, end: stop } = stream(store, 8)
        for (let round = 0; round < ROUNDS; round++) {
          await more(100)
          await sleep(Math.random() * 20)
          if (end === 'kill') await server.kill()
          await server.restart()
        }
        await more(100)
        await stop()
        expectAcknowledged(await expectWhole(store, server.url), acknowledged)
      },
    )

    test('is waited for when it starts while a store is at work', async () => {
      const server = await ownServer(1)
      const store = await open(server.url)
      await server.kill()
      const committed = store.commit(execution('a'), everything('a'))
      await server.restart()
      await committed
      expect((await store.load('a'))?.version).toBe(1)
    })
  })

  describe('three nodes', { timeout: 120_000 * ROUNDS }, () => {
    test('are one store, whichever of them is asked, and followers forward what is written', async () => {
      const server = await ownServer(3)
      const stores = await Promise.all(server.nodes.map(({ url }) => open(url, { traceMax: 0 })))
      for (const [n, store] of [...stores, ...stores].entries()) {
        expect(await commitNext(store, 'a')).toBe(n + 1)
        for (const other of stores) expect((await other.load('a'))?.version).toBe(n + 1)
      }
      for (const { url } of server.nodes) await expectWhole(stores[0] ?? expect.unreachable(), url)
    })

    test('lose and double nothing when their leader is killed within a stream of commits (B78)', async () => {
      const server = await ownServer(3)
      const urls = server.nodes.map(({ url }) => url)
      const store = await open(urls, { traceMax: 0 })
      const { acknowledged, more, end } = stream(store, 8)
      let witness = server.nodes[2] ?? expect.unreachable()
      for (let round = 0; round < ROUNDS; round++) {
        await more(100)
        await sleep(Math.random() * 20)
        const leader = await leaderOf(server, witness)
        await leader.kill()
        await more(100)
        witness = server.nodes.find((node) => node !== leader) ?? expect.unreachable()
        await leader.restart()
      }
      await more(100)
      await end()
      const whole = await expectWhole(store, witness.url)
      expectAcknowledged(whole, acknowledged)
      expect(whole.size).toBe(8)
    })

    test('of which two are gone tell nothing and write nothing, until there is a majority again', async () => {
      const server = await ownServer(3)
      const [first, second, last] = server.nodes
      if (first === undefined || second === undefined || last === undefined) return expect.unreachable()
      const store = await open(last.url, { timeout: 2000, failoverTimeout: 500 })
      const held = execution('a')
      await store.commit(held, everything('a'))
      await Promise.all([first.kill(), second.kill()])
      expect(await failure(store.load('a'))).toBeInstanceOf(StoreUnavailable)
      expect(await failure(store.commit(held, everything('b')))).toBeInstanceOf(StoreError)
      expect(held.version).toBe(1)
      await first.restart()
      const again = await open([last.url, first.url])
      const found = (await again.load('a')) ?? expect.unreachable()
      await again.commit(found, everything('c'))
      expect((await again.pendingOutbox()).map(({ targetId }) => targetId).toSorted()).toEqual(
        found.version === 3 ? ['a', 'b', 'c'] : ['a', 'c'],
      )
    })
  })
})
