import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { DynamoStore, OutcomeUnknown, StoreUnavailable } from '@harel/store-dynamodb'
import { startServer, type TestServer } from '@harel-tooling/test-servers'
import { withServer } from '@harel-tooling/test-servers/vitest'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { emitsOf, execution } from './commits.js'
import { clientFor, configFor, freshPrefix, storeOn } from './database.js'
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

async function end({ process: child }: Writer): Promise<void> {
  child.kill('SIGKILL')
  await once(child, 'exit')
}

function expectKept(versions: Map<string, number>, writers: readonly Writer[]): void {
  for (const { acknowledged } of writers) {
    for (const [id, version] of acknowledged) expect(versions.get(id), id).toBeGreaterThanOrEqual(version)
  }
}

const sharedVersion = ({ acknowledged }: Writer) => acknowledged.get('shared') ?? 0

withServer('dynamodb', ({ url }) => {
  describe('two processes', () => {
    test('on one database lose and repeat nothing', async () => {
      const prefix = freshPrefix()
      const rounds = 4
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
      while (sharedVersion(survivor) < 20) await sleep(20)
      await end(victim)
      await sleep(100)
      await end(survivor)
      // The last request of one that was killed may be under way.
      await sleep(200)
      expectKept(await expectWhole(clientFor(url), prefix), writers)
    })
  })

  describe('a server of its own', () => {
    let server: TestServer
    beforeAll(async () => {
      server = await startServer('dynamodb', { own: true, flavour: 'dynoxide' })
    })
    afterAll(() => server?.stop())

    test('that is killed in a stream of commits has kept every one that was acknowledged', async () => {
      const prefix = freshPrefix()
      const writers = ['p', 'q'].map((name) => startWriter(server.url, prefix, name, 0))
      const [first] = writers as [Writer, Writer]
      for (const count of [10, 20]) {
        while (sharedVersion(first) < count) await sleep(10)
        await server.kill()
        await server.restart()
      }
      // They have gone on by themselves.
      while (sharedVersion(first) < 40) await sleep(10)
      await Promise.all(writers.map(end))
      await sleep(200)
      expectKept(await expectWhole(clientFor(server.url), prefix), writers)
    })

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
