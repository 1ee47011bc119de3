import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { OutcomeUnknown, RedisStore, StoreUnavailable } from '@harel/store-redis'
import { startServer, type TestServer } from '@harel-tooling/test-servers'
import { withServer } from '@harel-tooling/test-servers/vitest'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { execution, parts } from './commits.js'
import { clientFor, freshPrefix, storeOn } from './database.js'
import { expectWhole } from './written.js'

interface Writer {
  readonly process: ChildProcessByStdio<null, Readable, null>
  /** The last version of each execution that was acknowledged. */
  readonly acknowledged: Map<string, number>
}

function startWriter(url: string, prefix: string, name: string, rounds: number): Writer {
  const args = [join(import.meta.dirname, 'programs/writer.ts'), url, prefix, name, String(rounds)]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  onTestFinished(() => {
    child.kill('SIGKILL')
  })
  const acknowledged = new Map<string, number>()
  createInterface(child.stdout).on('line', (line) => {
    const [id = '', version] = line.split(' ')
    acknowledged.set(id, Math.max(acknowledged.get(id) ?? 0, Number(version)))
  })
  return { process: child, acknowledged }
}

function expectKept(versions: Map<string, number>, writers: readonly Writer[]): void {
  for (const { acknowledged } of writers) {
    for (const [id, version] of acknowledged) expect(versions.get(id), id).toBeGreaterThanOrEqual(version)
  }
}

withServer('redis', ({ url }) => {
  describe('two processes', () => {
    test('on one database lose and repeat nothing', async () => {
      const prefix = freshPrefix()
      const rounds = 15
      const writers = ['p', 'q'].map((name) => startWriter(url, prefix, name, rounds))
      const codes = await Promise.all(writers.map(async (writer) => (await once(writer.process, 'exit'))[0]))
      expect(codes).toEqual([0, 0])
      const versions = await expectWhole(clientFor(url), prefix)
      expect(versions.size).toBe(17)
      expect(versions.get('shared')).toBe(2 * 8 * rounds)
    })

    test('of which one is killed leave nothing half done', async () => {
      const prefix = freshPrefix()
      const writers = ['p', 'q'].map((name) => startWriter(url, prefix, name, 0))
      const [victim, survivor] = writers as [Writer, Writer]
      while ((survivor.acknowledged.get('shared') ?? 0) < 50) await sleep(20)
      victim.process.kill('SIGKILL')
      await once(victim.process, 'exit')
      await sleep(100)
      survivor.process.kill('SIGKILL')
      await once(survivor.process, 'exit')
      expectKept(await expectWhole(clientFor(url), prefix), writers)
    })
  })

  describe('a server of its own', () => {
    let server: TestServer
    beforeAll(async () => {
      server = await startServer('redis', { own: true })
    })
    afterAll(() => server?.stop())

    test('that is killed in a stream of commits has kept every one that was acknowledged (weakness 52)', async () => {
      const prefix = freshPrefix()
      const writers = ['p', 'q'].map((name) => startWriter(server.url, prefix, name, 0))
      for (const count of [40, 80, 120]) {
        while ((writers[0]?.acknowledged.get('shared') ?? 0) < count) await sleep(10)
        await server.kill()
        await server.restart()
      }
      // They have gone on by themselves.
      while ((writers[0]?.acknowledged.get('shared') ?? 0) < 160) await sleep(10)
      for (const writer of writers) {
        writer.process.kill('SIGKILL')
        await once(writer.process, 'exit')
      }
      expectKept(await expectWhole(clientFor(server.url), prefix), writers)
    })

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
