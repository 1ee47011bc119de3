import { type CommitChanges, newEvent, StoreConflict } from '@harel/store-base'
import { withServer } from '@harel-tooling/test-servers/vitest'
import { describe, expect, test } from 'vitest'
import {
  connect,
  everything,
  execution,
  many,
  newSchema,
  open,
  proxyTo,
  rows,
  useDatabase,
  versions,
} from './helpers.js'

const shapes: Record<string, CommitChanges> = {
  'without changes': {},
  'with an event': { emits: [{ targetId: 'a', event: newEvent({ kind: 'Tick' }) }] },
  'with a hundred events': {
    emits: Array.from({ length: 100 }, () => ({ targetId: null, event: newEvent({ kind: 'Tick' }) })),
  },
  'with timers': {
    timers: [
      { action: 'schedule', path: 'P', fireAt: 1 },
      { action: 'cancel', path: 'Q' },
    ],
  },
  'with everything': everything('a'),
}

withServer('postgres', (server) => {
  const database = useDatabase(server)

  describe.each(Object.entries(shapes))('a commit %s (weakness 34)', (_shape, changes) => {
    test.each([
      { prepare: true, trips: 1 },
      { prepare: false, trips: 2 },
    ])('is $trips round trip(s) with prepare: $prepare, also the first and one that is refused (B51)', async (row) => {
      const proxy = await proxyTo(database.url)
      const store = await open(proxy.url, { schema: newSchema(), client: { prepare: row.prepare, max: 1 } })
      // A statement is described and prepared when a connection meets it first.
      await store.commit(execution('first'), changes)
      const tripsOf = async (work: Promise<unknown>) => {
        const before = proxy.roundTrips
        await work
        return proxy.roundTrips - before
      }
      const held = execution('a')
      expect(await tripsOf(store.commit(held, changes))).toBe(row.trips)
      expect(await tripsOf(store.commit(held, changes))).toBe(row.trips)
      const stale = execution('a')
      await expect(tripsOf(store.commit(stale, changes))).rejects.toBeInstanceOf(StoreConflict)
      expect(await tripsOf(store.commit(stale, changes).catch(() => {}))).toBe(row.trips)
    })
  })

  test('commits that arrive together are one round trip together (weakness 34)', async () => {
    const proxy = await proxyTo(database.url)
    const store = await open(proxy.url, { schema: newSchema(), client: { max: 1 } })
    await Promise.all(many(2, 'first').map((each) => store.commit(each)))
    const before = proxy.roundTrips
    await Promise.all(many(100).map((each) => store.commit(each, everything(each.id))))
    expect(proxy.roundTrips - before).toBe(1)
  })

  test('of two creators one succeeds and the other one has a conflict with what was created (weakness 12)', async () => {
    const schema = newSchema()
    const stores = [await open(database.url, { schema }), await open(database.url, { schema })]
    const outcomes = await Promise.all(
      many(200).map(async ({ id }) => {
        // In a random order, alone and in company.
        await new Promise((resolve) => setTimeout(resolve, Math.random() * 30))
        return Promise.allSettled(stores.map((store) => store.commit(execution(id), everything(id))))
      }),
    )
    for (const pair of outcomes) {
      const refused = pair.filter(({ status }) => status === 'rejected')
      expect(refused).toMatchObject([{ reason: { code: 'STORE_CONFLICT', expected: 0, found: 1 } }])
    }
    expect(await rows(connect(database.url), schema)).toEqual([200, 200, 200, 200, 200, 200])
  })

  describe('the version found is the stored one', () => {
    const conflict = (expected: number, found: number | null) => ({ code: 'STORE_CONFLICT', expected, found })

    test.each([true, false])('for commits alone and in company (groupCommit: %s)', async (groupCommit) => {
      const store = await open(database.url, { schema: newSchema(), groupCommit })
      const held = many(3)
      for (let version = 0; version < 3; version++) await Promise.all(held.map((each) => store.commit(each)))
      const [a, b, c] = ['e0000', 'e0001', 'e0002'] as const
      await expect(store.commit(execution(a, { version: 1 }))).rejects.toMatchObject(conflict(1, 3))
      await expect(store.commit(execution(a))).rejects.toMatchObject(conflict(0, 3))
      await expect(store.commit(execution('none', { version: 7 }))).rejects.toMatchObject(conflict(7, null))
      const company = [
        execution(a, { version: 2 }),
        execution(b),
        execution(c, { version: 3 }),
        execution('none', { version: 7 }),
        execution('new'),
        execution('huge', { version: 2 ** 40 }),
      ]
      expect(await Promise.allSettled(company.map((each) => store.commit(each)))).toMatchObject([
        { reason: conflict(2, 3) },
        { reason: conflict(0, 3) },
        { status: 'fulfilled' },
        { reason: conflict(7, null) },
        { status: 'fulfilled' },
        { reason: conflict(2 ** 40, null) },
      ])
      expect(versions(company)).toEqual([2, 0, 4, 7, 1, 2 ** 40])
    })

    test('for a commit that waited for somebody else', async () => {
      const schema = newSchema()
      const store = await open(database.url, { schema })
      const held = execution('a')
      await store.commit(held)
      const sql = connect(database.url)
      let refused: Promise<unknown> | undefined
      await sql.begin(async (tx) => {
        await tx.unsafe(
          `UPDATE ${schema}.harel_executions SET version = 9, data = replace(data, '"version":1', '"version":9')`,
        )
        refused = expect(store.commit(held, everything('a'))).rejects.toMatchObject(conflict(1, 9))
        await new Promise((resolve) => setTimeout(resolve, 100))
      })
      await refused
      expect(held.version).toBe(1)
      expect(await rows(sql, schema)).toEqual([1, 0, 0, 0, 0, 0])
    })
  })

  test('a version ends where the column that is shared with Python ends: the commit behind it is refused, and fails alone (B17)', async () => {
    const schema = newSchema()
    const store = await open(database.url, { schema })
    const last = 2 ** 31 - 1
    const held = execution('a')
    await store.commit(held)
    const sql = connect(database.url)
    await sql.unsafe(`UPDATE ${schema}.harel_executions SET version = ${last - 1}, meta_version = ${last - 1}`)
    held.version = last - 1
    await store.commit(held)
    expect(held.version).toBe(last)
    const other = execution('b')
    const [refused, done] = await Promise.allSettled([store.commit(held, everything('a')), store.commit(other)])
    expect(refused).toMatchObject({ reason: { code: 'STORE_UNAVAILABLE', retryable: false } })
    expect([done.status, held.version, other.version]).toEqual(['fulfilled', last, 1])
    expect((await store.load('a'))?.version).toBe(last)
    expect(await store.pendingOutbox()).toEqual([])
  })

  test('a refused commit takes no seq, and the seqs of one commit ascend', async () => {
    const store = await open(database.url, { schema: newSchema() })
    const emits = (count: number) => ({
      emits: Array.from({ length: count }, (_, n) => ({ targetId: String(n), event: newEvent({ kind: 'Tick' }) })),
    })
    const held = many(20)
    const seqs = await Promise.all(held.map((each, n) => store.commit(each, emits(n))))
    await Promise.allSettled(many(20).map((each) => store.commit(each, emits(5))))
    await store.commit(execution('e0000')).catch(() => {})
    const [next] = await store.commit(execution('next'), emits(1))
    expect(next).toBe(1 + (20 * 19) / 2)
    expect(seqs.map((each) => each.length)).toEqual(held.map((_, n) => n))
    const queued = new Map((await store.pendingOutbox()).map(({ seq, targetId }) => [seq, targetId]))
    for (const each of seqs) expect(each.map((seq) => queued.get(seq))).toEqual(each.map((_, n) => String(n)))
  })
})
