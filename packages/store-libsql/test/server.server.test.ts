import { inspect } from 'node:util'
import { CommitTooLarge, LibsqlStore, OutcomeUnknown, StoreConflict, StoreUnavailable } from '@harel/store-libsql'
import { TcpProxy } from '@harel/store-testing/faults'
import { withServer } from '@harel-tooling/test-servers/vitest'
import { describe, expect, test } from 'vitest'
import { clientOf, everything, execution, open, rows } from './helpers.js'
import { type Loss, proxyTo } from './proxy.js'

let prefixes = 0
const newPrefix = () => `server${process.pid}_${++prefixes}`

withServer('libsql', (server) => {
  const ways = [
    { way: 'HTTP', over: (url: string) => url },
    { way: 'a web socket', over: (url: string) => url.replace(/^http/, 'ws') },
  ]

  describe.each(ways)('over $way', ({ over }) => {
    const url = over(server.url)

    describe('a commit whose connection breaks', () => {
      const setUp = async () => {
        const proxy = await proxyTo(server.url)
        const prefix = newPrefix()
        const store = await open({ url: over(proxy.url) }, { prefix })
        return { proxy, store, counts: () => rows(clientOf({ url: server.url }), prefix) }
      }

      test.each<Loss>(['request', 'reply'])(
        'is written once, and succeeds with its seqs (lost: the %s)',
        async (loss) => {
          const { proxy, store, counts } = await setUp()
          const held = execution('a')
          for (let version = 1; version <= 4; version++) {
            proxy.lose(loss)
            const [seq] = await store.commit(held, { ...everything('a'), processedEventId: `e${version}` })
            expect(held.version).toBe(version)
            expect((await store.pendingOutbox()).at(-1)?.seq).toBe(seq)
          }
          expect(await counts()).toEqual([1, 4, 4, 1, 4, 4])
        },
      )

      test.each<Loss>(['request', 'reply'])('is written once together with others (lost: the %s)', async (loss) => {
        const { proxy, store, counts } = await setUp()
        const held = Array.from({ length: 30 }, (_, n) => execution(`e${n}`))
        proxy.lose(loss)
        const seqs = await Promise.all(held.map((each) => store.commit(each, everything(each.id))))
        expect(held.map(({ version }) => version)).toEqual(Array(30).fill(1))
        expect(await counts()).toEqual(Array(6).fill(30))
        const targets = new Map((await store.pendingOutbox()).map(({ seq, targetId }) => [seq, targetId]))
        expect(seqs.map(([seq]) => targets.get(seq ?? 0))).toEqual(held.map(({ id }) => id))
      })

      test('twice is known where it was written, and else is not, for it may still arrive', async () => {
        const { proxy, store, counts } = await setUp()
        const held = execution('a')
        proxy.lose('request', 'request')
        await expect(store.commit(held, everything('a'))).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' })
        expect([held.version, ...(await counts())]).toEqual(Array(7).fill(0))
        proxy.lose('reply', 'request')
        await store.commit(held, everything('a'))
        expect([held.version, ...(await counts())]).toEqual(Array(7).fill(1))
      })

      test('is not the end of the store: what reads is sent again', async () => {
        const { proxy, store } = await setUp()
        await store.commit(execution('a'), everything('a'))
        for (const loss of ['request', 'reply'] as const) {
          proxy.lose(loss)
          expect((await store.load('a'))?.version).toBe(1)
          proxy.lose(loss)
          expect(await store.pendingOutbox()).toHaveLength(1)
        }
        proxy.lose('reply')
        await expect(store.ackOutbox(1)).rejects.toBeInstanceOf(OutcomeUnknown)
        expect(await store.pendingOutbox()).toEqual([])
      })
    })

    test('a commit is one round trip, alone or together with others, and so is what reads (weakness 34)', async () => {
      await using proxy = await TcpProxy.to(server.url)
      await using store = await LibsqlStore.connect({ url: over(proxy.url) }, { prefix: newPrefix() })
      const roundTrips = async (work: () => Promise<unknown>) => {
        const before = proxy.roundTrips
        await work()
        return proxy.roundTrips - before
      }
      const held = execution('a')
      const many = Array.from({ length: 20 }, (_, n) => execution(`e${n}`))
      expect(await roundTrips(() => store.commit(held, everything('a')))).toBe(1)
      expect(await roundTrips(() => store.commit(held, everything('b')))).toBe(1)
      expect(await roundTrips(() => Promise.all(many.map((each) => store.commit(each, everything(each.id)))))).toBe(1)
      expect(await roundTrips(() => store.commit(execution('a')).catch(() => {}))).toBe(1)
      expect(await roundTrips(() => store.loadForEvent('a', 'a-event'))).toBe(1)
      expect(await roundTrips(() => store.pendingOutbox({ limit: 10 }))).toBe(1)
      expect(await roundTrips(() => store.ackOutbox([1, 2, 3]))).toBe(1)
    })

    test('one that the server refuses fails alone', async () => {
      const prefix = newPrefix()
      const store = await open({ url }, { prefix })
      await clientOf({ url }).execute(`CREATE TRIGGER ${prefix}_poison BEFORE INSERT ON ${prefix}_outbox
        WHEN NEW.target_id = 'e4' BEGIN SELECT RAISE(ABORT, 'poisoned'); END`)
      const outcomes = await Promise.allSettled(
        Array.from({ length: 10 }, (_, n) => store.commit(execution(`e${n}`), everything(`e${n}`))),
      )
      expect(outcomes.map(({ status }, n) => (status === 'rejected' ? n : -1)).filter((n) => n >= 0)).toEqual([4])
      expect(outcomes[4]).toMatchObject({ reason: { code: 'STORE_UNAVAILABLE' } })
      expect(await store.load('e4')).toBeUndefined()
      expect(await store.pendingOutbox()).toHaveLength(9)
    })

    test('of two clients that create one execution, one succeeds and the other conflicts', async () => {
      const prefix = newPrefix()
      const stores = [await open({ url }, { prefix }), await open({ url: server.url }, { prefix })]
      for (let round = 0; round < 5; round++) {
        const outcomes = await Promise.allSettled(
          stores.map((store) => store.commit(execution(`e${round}`), everything(`e${round}`))),
        )
        const refused = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason] : []))
        expect(refused).toEqual([expect.any(StoreConflict)])
        expect(refused[0]).toMatchObject({ found: 1 })
      }
      expect(await stores[0]?.pendingOutbox()).toHaveLength(5)
    })

    test('overlapping batches of two clients apply each version once', async () => {
      const prefix = newPrefix()
      const stores = [await open({ url }, { prefix }), await open({ url: server.url }, { prefix })]
      for (let round = 0; round < 6; round++) {
        const outcomes = await Promise.allSettled(
          stores.flatMap((store, index) =>
            [0, 1, 2, 3, 4, 5].map((n) => {
              const id = `e${index === 0 ? n : n + 3}`
              return store.commit(execution(id, { version: round }), { emits: everything(id).emits ?? [] })
            }),
          ),
        )
        // e3, e4 and e5 are wanted by both.
        expect(outcomes.filter(({ status }) => status === 'rejected')).toHaveLength(3)
      }
      expect(await stores[0]?.pendingOutbox()).toHaveLength(9 * 6)
    })

    test('ten that open it at once without tables all succeed (B42)', async () => {
      const prefix = newPrefix()
      const stores = await Promise.all(Array.from({ length: 10 }, () => open({ url }, { prefix })))
      await Promise.all(stores.map((store, n) => store.save(execution(`e${n}`))))
      expect(await stores[0]?.idsWithPrefix('')).toHaveLength(10)
    })

    test('a queue, a trace and a listing of more than the server sends at once are read whole', async () => {
      const store = await open({ url }, { prefix: newPrefix() })
      const text = 'x'.repeat(1_500_000)
      for (let n = 0; n < 9; n++) {
        const held = execution(`e${n}`, { outcome: text, status: 'DONE' })
        const event = { id: `ev${n}`, kind: 'k', createdTime: null, receivedTime: null, data: { text } }
        await store.commit(held, { emits: [{ targetId: null, event }] })
        await store.appendTrace('e0', { n, text })
      }
      expect((await store.pendingOutbox()).map(({ event }) => event.id)).toEqual(
        [0, 1, 2, 3, 4, 5, 6, 7, 8].map((n) => `ev${n}`),
      )
      expect((await store.pendingOutbox({ limit: 8, after: 0 })).length).toBe(8)
      expect((await store.readTrace('e0')).map(({ n }) => n)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8])
      const page = await store.listExecutions({ status: 'DONE' })
      expect(page.items.map(({ outcome }) => outcome?.length)).toEqual(Array(9).fill(text.length))
    })

    test('an execution of as much as is promised is stored, and more is refused before it is sent', async () => {
      const store = await open({ url }, { prefix: newPrefix() })
      const held = execution('a', { context: { text: '"'.repeat(2_494_000) } })
      await store.commit(held)
      expect(await store.load('a')).toEqual(held)
      held.context = { text: 'x'.repeat(4_990_000) }
      await expect(store.commit(held)).rejects.toBeInstanceOf(CommitTooLarge)
      expect(held.version).toBe(1)
    })

    test('a commit of many megabytes is stored whole, or refused before it is sent', async () => {
      const store = await open({ url }, { prefix: newPrefix() })
      const held = execution('a')
      const event = (n: number) => ({
        id: `ev${n}`,
        kind: 'k',
        createdTime: null,
        receivedTime: null,
        data: { text: 'x'.repeat(2e6) },
      })
      const emits = Array.from({ length: 9 }, (_, n) => ({ targetId: null, event: event(n) }))
      const committed = store.commit(held, { emits })
      if (url.startsWith('ws')) {
        await expect(committed).rejects.toBeInstanceOf(CommitTooLarge)
        expect(await store.pendingOutbox()).toEqual([])
        await store.commit(held, { emits: emits.slice(0, 7) })
      } else {
        expect(await committed).toHaveLength(9)
      }
      expect(held.version).toBe(1)
    })

    test('a server that cannot be reached is StoreUnavailable, and no token or address is shown (B102)', async () => {
      const secret = 'TOKEN-42'
      const config = { url: over('http://unreachable.invalid:1'), authToken: secret }
      const errors = [await LibsqlStore.connect(config).catch((thrown: unknown) => thrown)]
      const store = new LibsqlStore(clientOf(config))
      errors.push(
        await store.load('a').catch((thrown: unknown) => thrown),
        await store.commit(execution('a')).catch((thrown: unknown) => thrown),
      )
      for (const error of errors) {
        expect(error).toBeInstanceOf(StoreUnavailable)
        expect((error as Error).message).not.toContain('unreachable')
        expect(inspect(error, { depth: 9 })).not.toContain(secret)
      }
      expect(inspect(store, { depth: 9, showHidden: true })).not.toMatch(/TOKEN-42|unreachable/)
    })
  })
})
