import { setTimeout as sleep } from 'node:timers/promises'
import { type ExecutionStore, newEvent, newExecution, StoreConflict, StoreError } from '@harel/store-libsql'
import { startServer, type TestServer } from '@harel-tooling/test-servers'
import { describe, expect, onTestFinished, test } from 'vitest'
import { everything, execution, open } from './helpers.js'
import { expectAcknowledged, expectWhole } from './written.js'

const ways = [
  { way: 'HTTP', over: (url: string) => url },
  { way: 'a web socket', over: (url: string) => url.replace(/^http/, 'ws') },
]

async function ownServer(): Promise<TestServer> {
  const server = await startServer('libsql', { own: true })
  onTestFinished(() => server.stop())
  return server
}

/** Commits one version after the other, whatever becomes of the server, until it is told to end. */
async function writeOn(store: ExecutionStore, id: string, acknowledged: string[], going: () => boolean): Promise<void> {
  while (going()) {
    try {
      const held = (await store.load(id)) ?? newExecution({ id, definitionId: 'd' })
      const n = held.version + 1
      await store.commit(held, {
        emits: [{ targetId: id, event: newEvent({ kind: 'e', id: `${id}:${n}` }) }],
        processedEventId: `${id}:${n}`,
        trace: { n },
      })
      acknowledged.push(`${id} ${n}`)
    } catch (error) {
      if (!(error instanceof StoreError) || error instanceof StoreConflict) throw error
      await sleep(20)
    }
  }
}

describe.each(ways)('over $way', { timeout: 60_000 }, ({ over }) => {
  test('a store outlives a restart of its server between two commits', async () => {
    const server = await ownServer()
    const store = await open({ url: over(server.url) })
    const held = execution('a')
    await store.commit(held, everything('a'))
    await server.restart()
    await store.commit(held, everything('b'))
    await server.kill()
    await expect(store.commit(held, everything('c'))).rejects.toBeInstanceOf(StoreError)
    expect(held.version).toBe(2)
    await server.restart()
    await store.commit(held, everything('d'))
    expect(await store.load('a')).toEqual(held)
    expect((await store.pendingOutbox()).map(({ targetId }) => targetId)).toEqual(['a', 'b', 'd'])
  })

  test('of a stream of commits nothing is lost or doubled when the server is killed', async () => {
    const server = await ownServer()
    const store = await open({ url: over(server.url) })
    const acknowledged: string[] = []
    let going = true
    const writers = Promise.all(Array.from({ length: 8 }, (_, n) => writeOn(store, `w${n}`, acknowledged, () => going)))
    for (let round = 0; round < 3; round++) {
      const before = acknowledged.length
      while (acknowledged.length < before + 100) await sleep(5)
      await sleep(Math.random() * 20)
      await server.kill()
      await server.restart()
    }
    const before = acknowledged.length
    while (acknowledged.length < before + 50) await sleep(5)
    going = false
    await writers
    expectAcknowledged(await expectWhole(store), `${acknowledged.join('\n')}\n`)
  })
})
