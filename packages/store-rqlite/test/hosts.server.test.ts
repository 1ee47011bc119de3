import { readFileSync } from 'node:fs'
import { type AddressInfo, connect } from 'node:net'
import { join } from 'node:path'
import { createServer } from 'node:tls'
import { RqliteStore, StoreClosed, StoreUnavailable } from '@harel/store-rqlite'
import { withServer } from '@harel-tooling/test-servers/vitest'
import { describe, expect, onTestFinished, test } from 'vitest'
import { everything, execution, failure, newPrefix, open, rows, run } from './helpers.js'
import { Intermediary, reply } from './intermediary.js'

const NOBODY = 'http://127.0.0.1:1'

withServer('rqlite', ({ url }) => {
  describe('several nodes', () => {
    test('are asked in turn until one takes the request, and it is asked from then on (B78)', async () => {
      const prefix = newPrefix()
      const between = [await Intermediary.start(url), await Intermediary.start(url)] as const
      between[0].fates.push(reply(503, 'leader not found\n'))
      const store = await open([NOBODY, ...between.map((each) => each.url)], { prefix, failoverTimeout: 0 })
      const held = execution('a')
      await store.commit(held, everything('a'))
      expect(between[0].requests).toHaveLength(1)
      expect(between[1].requests.length).toBeGreaterThan(2)
      between[1].fates.push(reply(503, 'not leader\n'))
      await expect(store.commit(held)).resolves.toEqual([])
      expect(between[0].requests).toHaveLength(2)
      expect(await rows(url, prefix)).toEqual(Array(6).fill(1))
    })

    test.each(['held', 'never answered', 'answered to nobody', 'answered by half'] as const)(
      'are asked in turn when one is silent (%s)',
      async (fate) => {
        const prefix = newPrefix()
        const silent = await Intermediary.start(url)
        const store = await open([silent.url, url], { prefix, timeout: 2000, failoverTimeout: 0 })
        for (const read of [true, false]) {
          silent.fates.push(...Array(10).fill(fate))
          if (read) expect(await store.load('a')).toBeUndefined()
          else await store.commit(execution('a'), everything('a'))
        }
        expect(silent.fates).toHaveLength(19)
        expect(await rows(url, prefix)).toEqual(Array(6).fill(1))
      },
    )

    test('of which none is there are StoreUnavailable, with the reason as its cause', async () => {
      const store = new RqliteStore([NOBODY, 'http://nowhere.invalid:4001'], { failoverTimeout: 300 })
      for (const call of [store.load('a'), store.commit(execution('a')), store.ackOutbox(1)]) {
        const error = await failure(call)
        expect(error).toBeInstanceOf(StoreUnavailable)
        const code = expect.stringMatching(/ECONNREFUSED|ENOTFOUND|EAI_AGAIN/)
        expect(error).toMatchObject({ retryable: true, cause: { code } })
      }
      await store.close()
      await expect(store.load('a')).rejects.toBeInstanceOf(StoreClosed)
    })

    test('may send to each other: a redirection is not followed, and the next node is asked (B78, weakness 56)', async () => {
      const prefix = newPrefix()
      const trap = await Intermediary.start(url)
      const redirecting = await Intermediary.start(url)
      const store = await open([redirecting.url, url], { prefix, failoverTimeout: 0 })
      redirecting.fates.push(reply(301, 'moved', `location: ${trap.url}/db/request?transaction`))
      await store.commit(execution('a'), everything('a'))
      redirecting.fates.push(reply(307, 'moved', `location: ${trap.url}/db/query?level=strong`))
      expect(await store.load('a')).toBeDefined()
      expect(trap.requests).toEqual([])
      expect(await rows(url, prefix)).toEqual(Array(6).fill(1))
    })
  })

  describe('reads', () => {
    test('are strong when nothing else is said, whichever method reads (B72, B78, weakness 56)', async () => {
      const between = await Intermediary.start(url)
      const store = await open(between.url, { prefix: newPrefix() })
      await Promise.all([
        store.load('a'),
        store.loadForEvent('a', 'e'),
        store.isProcessed('a', 'e'),
        store.pendingOutbox(),
        store.pendingSpawns(),
        store.dueTimers(1),
        store.readTrace('a'),
        store.listExecutions(),
        store.idsWithPrefix('a'),
        store.loadDefinition('d', '1'),
      ])
      const reads = between.requests.filter((path) => path.startsWith('/db/query'))
      expect(reads.length).toBeGreaterThan(10)
      expect([...new Set(reads)]).toEqual(['/db/query?level=strong'])
    })

    test('at a level that the node does not know are refused, for it would show what was a while ago (B78)', async () => {
      const refused = RqliteStore.connect(url, { prefix: newPrefix(), level: 'linearizable' })
      await expect(refused).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: false })
      await expect(refused).rejects.toThrow("level 'strong'")
    })

    test.each([
      { version: 'v8.36.5', known: true },
      { version: 'v10.0.0', known: true },
      { version: 'v9.1', known: true },
      { version: 'v8.33.0', known: true },
      { version: 'v8.32.9', known: false },
      { version: 'unknown', known: false },
      { version: '', known: false },
    ])(
      'are linearizable on request where the node knows how (version $version: $known)',
      async ({ version, known }) => {
        const between = await Intermediary.start(url)
        between.edit = (text) => text.replace(/(x-rqlite-version: )[^\r]*/i, `$1${version}`)
        const opening = open(between.url, { prefix: newPrefix(), level: 'linearizable' })
        if (!known) return expect(opening).rejects.toMatchObject({ retryable: false })
        const store = await opening
        between.requests.length = 0
        await store.load('a')
        expect(between.requests).toEqual(['/db/query?level=linearizable'])
      },
    )
  })

  describe('over TLS', () => {
    // Of localhost, signed by itself, good for a hundred years; nobody trusts it who is not told to.
    const certificate = join(import.meta.dirname, 'tls', 'cert.pem')
    const key = join(import.meta.dirname, 'tls', 'key.pem')

    /** The way to the server that ends TLS. */
    async function secure(): Promise<string> {
      const { hostname, port } = new URL(url)
      const files = { key: readFileSync(key), cert: readFileSync(certificate) }
      const listener = createServer(files, (near) => {
        const far = connect(Number(port), hostname)
        near.pipe(far).pipe(near)
        near.on('error', () => far.destroy())
        far.on('error', () => near.destroy())
      })
      await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve))
      onTestFinished(() => void listener.close())
      return `https://127.0.0.1:${(listener.address() as AddressInfo).port}`
    }

    test('a store works when Node knows the authority', async () => {
      const prefix = newPrefix()
      process.env.NODE_EXTRA_CA_CERTS = certificate
      onTestFinished(() => {
        delete process.env.NODE_EXTRA_CA_CERTS
      })
      await run('open.ts', await secure(), prefix, 'a')
      expect(await rows(url, prefix)).toEqual([1, 0, 0, 0, 0, 0])
    })

    test('a certificate that nobody vouches for is StoreUnavailable, with the reason as its cause', async () => {
      const error = await failure(RqliteStore.connect(await secure(), { failoverTimeout: 0 }))
      expect(error).toBeInstanceOf(StoreUnavailable)
      expect(error).toMatchObject({ cause: { code: 'DEPTH_ZERO_SELF_SIGNED_CERT' } })
    })
  })
})
