import { type CommitChanges, newEvent, StoreConflict } from '@harel/store-rqlite'
import { withServer } from '@harel-tooling/test-servers/vitest'
import { describe, expect, test } from 'vitest'
import { everything, execution, many, newPrefix, open, request, rows, versions } from './helpers.js'
import { Intermediary } from './intermediary.js'

const list = <T>(count: number, of: (n: number) => T): T[] => Array.from({ length: count }, (_, n) => of(n))

const LARGE: CommitChanges = {
  emits: list(50, (n) => ({
    targetId: `t${n}`,
    event: newEvent({ kind: 'Tick', data: { text: 'x'.repeat(50_000) } }),
  })),
  processedEventId: 'large',
  timers: list(20, (n) => ({ action: n % 2 === 0 ? 'schedule' : 'cancel', path: `P${n}`, fireAt: n }) as const),
  spawns: list(20, (n) => ({ childId: `c${n}`, rootPath: 'P', context: { n } })),
  trace: { large: true },
}

withServer('rqlite', ({ url }) => {
  const setUp = async (options = {}) => {
    const between = await Intermediary.start(url)
    const prefix = newPrefix()
    const store = await open(between.url, { prefix, ...options })
    between.requests.length = 0
    return { between, prefix, store, counts: () => rows(url, prefix) }
  }
  const WRITE = '/db/request?transaction'

  describe('a commit', () => {
    test.each([true, false])(
      'of any shape is one transactional request (groupCommit: %s) (weakness 34)',
      async (groupCommit) => {
        const { between, store, counts } = await setUp({ groupCommit })
        const held = execution('a')
        for (const changes of [{}, everything('a'), LARGE, {}, { emits: LARGE.emits ?? [] }]) {
          between.requests.length = 0
          await store.commit(held, changes)
          expect(between.requests).toEqual([WRITE])
        }
        expect(await counts()).toEqual([1, 101, 2, 11, 21, 2])
      },
    )

    test.each([
      { held: 0, stored: 2 },
      { held: 1, stored: 2 },
      { held: 1, stored: 4 },
      { held: 3, stored: 0 },
    ])('at version $held is refused by version $stored in one request, and leaves no row', async ({ held, stored }) => {
      const { between, store, counts } = await setUp()
      const winner = execution('a')
      for (let n = 0; n < stored; n++) await store.commit(winner, { ...everything('a'), processedEventId: `e${n}` })
      const [before, data] = [await counts(), await store.load('a')]
      between.requests.length = 0
      const refused = execution('a', { version: held })
      const error = await store.commit(refused, LARGE).catch((thrown: unknown) => thrown)
      expect(between.requests).toEqual([WRITE])
      expect(error).toBeInstanceOf(StoreConflict)
      expect(error).toMatchObject({ expected: held, found: stored || null })
      expect(refused.version).toBe(held)
      expect(await counts()).toEqual(before)
      expect(await store.load('a')).toEqual(data)
    })

    test('shares a request with those that come while another is under way', async () => {
      const { between, store, counts } = await setUp()
      const held = many(100)
      const seqs = await Promise.all(held.map((each) => store.commit(each, everything(each.id))))
      expect(between.requests).toEqual([WRITE])
      const first = store.commit(execution('first'))
      await new Promise(setImmediate)
      await Promise.all([first, ...held.map((each) => store.commit(each, { emits: [] }))])
      expect(between.requests).toEqual([WRITE, WRITE, WRITE])
      expect(versions(held)).toEqual(Array(100).fill(2))
      expect(await counts()).toEqual([101, 100, 100, 100, 100, 100])
      const targets = new Map((await store.pendingOutbox()).map(({ seq, targetId }) => [seq, targetId]))
      expect(seqs.map(([seq]) => targets.get(seq ?? 0))).toEqual(held.map(({ id }) => id))
    })

    test('that is refused leaves no row beside those that share its request (weakness 8)', async () => {
      const { between, store, counts } = await setUp()
      const held = many(9)
      await Promise.all(held.map((each) => store.commit(each)))
      for (const n of [2, 5]) await store.commit(held[n] ?? expect.unreachable())
      between.requests.length = 0
      const outcomes = await Promise.allSettled(
        held.map(({ id }) => store.commit(execution(id, { version: 1 }), everything(id))),
      )
      expect(between.requests).toEqual([WRITE])
      expect(outcomes.flatMap(({ status }, n) => (status === 'rejected' ? [n] : []))).toEqual([2, 5])
      expect(await counts()).toEqual([9, 7, 7, 7, 7, 7])
    })

    test('that SQLite refuses fails alone', async () => {
      const { prefix, store, counts } = await setUp()
      await request(
        url,
        `CREATE TRIGGER ${prefix}_poison BEFORE INSERT ON ${prefix}_spawns
        WHEN NEW.parent_id = 'e1004' BEGIN SELECT RAISE(ABORT, 'poisoned'); END`,
      )
      const held = many(10)
      const outcomes = await Promise.allSettled(held.map((each) => store.commit(each, everything(each.id))))
      expect(outcomes[4]).toMatchObject({ reason: { code: 'STORE_UNAVAILABLE', cause: { message: 'poisoned' } } })
      expect(versions(held)).toEqual([1, 1, 1, 1, 0, 1, 1, 1, 1, 1])
      expect(await counts()).toEqual([9, 9, 9, 9, 9, 9])
    })
  })

  test('of two stores that create one execution, one succeeds and the other conflicts', async () => {
    const prefix = newPrefix()
    const stores = [await open(url, { prefix }), await open(url, { prefix })]
    for (let round = 0; round < 20; round++) {
      const outcomes = await Promise.allSettled(
        stores.map((store) => store.commit(execution(`e${round}`), everything(`e${round}`))),
      )
      const refused = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason] : []))
      expect(refused).toEqual([expect.any(StoreConflict)])
      expect(refused[0]).toMatchObject({ expected: 0, found: 1 })
    }
    expect(await rows(url, prefix)).toEqual(Array(6).fill(20))
  })

  test('overlapping batches of two stores apply each version once', async () => {
    const prefix = newPrefix()
    const stores = [await open(url, { prefix }), await open(url, { prefix })]
    for (let round = 0; round < 10; round++) {
      const outcomes = await Promise.allSettled(
        stores.flatMap((store, index) =>
          list(6, (n) => {
            const id = `e${index === 0 ? n : n + 3}`
            return store.commit(execution(id, { version: round }), { emits: everything(id).emits ?? [] })
          }),
        ),
      )
      // e3, e4 and e5 are wanted by both.
      expect(outcomes.filter(({ status }) => status === 'rejected')).toHaveLength(3)
    }
    expect((await rows(url, prefix)).slice(0, 2)).toEqual([9, 90])
  })

  test('timers come back to the last bit, alone and in numbers, and are deleted by what came back (B18)', async () => {
    const prefix = newPrefix()
    const store = await open(url, { prefix })
    const random = list(500, () => 1.7e9 + Math.random() * 1e8)
    const whole = [
      0,
      1,
      1749667779,
      1749667779000,
      1700000000001,
      2 ** 53 - 1,
      2 ** 53,
      2 ** 60,
      2 ** 63,
      2 ** 70,
      1e21,
      1e300,
    ]
    const fine = [0.1 + 0.2, 1749667779.1234567, 1e-7, 5e-324, Number.MAX_VALUE, -1.5, -0.1, 123456789012345680]
    const times = [...whole, ...fine, ...random]
    const timers = times.map((fireAt, n) => ({ action: 'schedule', path: `p${n}`, fireAt }) as const)
    await store.commit(execution('all'), { timers })
    for (const [n, timer] of timers.slice(0, 40).entries()) await store.commit(execution(`e${n}`), { timers: [timer] })
    const due = await store.dueTimers(Number.MAX_VALUE)
    expect(due).toHaveLength(times.length + 40)
    for (const { path, fireAt } of due) expect(fireAt).toBe(times[Number(path.slice(1))])
    const kinds = await request(url, `SELECT DISTINCT typeof(fire_at) FROM ${prefix}_timers`)
    expect(kinds).toEqual([['real']])
    for (const [index, after] of due.entries()) {
      if (after.executionId === 'all') continue
      expect((await store.dueTimers(after.fireAt)).at(-1)?.fireAt).toBe(after.fireAt)
      expect((await store.dueTimers(Number.MAX_VALUE, { after, limit: 1 }))[0]).toEqual(due[index + 1])
    }
    for (const { executionId, path, fireAt } of due) {
      if (executionId !== 'all') await store.deleteTimer(executionId, path, fireAt)
    }
    expect(await store.dueTimers(Number.MAX_VALUE)).toHaveLength(times.length)
  })

  test('close waits for all that was begun', async () => {
    const store = await open(url, { prefix: newPrefix() })
    const calls = [store.load('a'), store.appendTrace('a', {}), store.pendingOutbox()]
    let done = 0
    for (const call of calls) void call.then(() => done++)
    await store.close()
    await new Promise(setImmediate)
    expect(done).toBe(calls.length)
  })

  test('versions and seqs are exact as far as numbers go (B18)', async () => {
    const prefix = newPrefix()
    const store = await open(url, { prefix })
    const insert = `INSERT INTO ${prefix}_outbox (seq, target_id, event) VALUES (9007199254740000, 't', '{"id":"e","kind":"k"}')`
    await request(url, insert)
    const held = execution('a', { version: Number.MAX_SAFE_INTEGER - 2 })
    await request(
      url,
      `INSERT INTO ${prefix}_executions (id, definition_id, data, version) VALUES ('a', 'd', '{}', 9007199254740989)`,
    )
    expect(await store.commit(held, everything('a'))).toEqual([9007199254740001])
    expect(await store.load('a')).toMatchObject({ version: Number.MAX_SAFE_INTEGER - 1 })
    await store.ackOutbox(9007199254740000)
    expect((await store.pendingOutbox()).map(({ seq }) => seq)).toEqual([9007199254740001])
  })

  test('texts that look like something else to a server are texts (B19)', async () => {
    const prefix = newPrefix()
    const store = await open(url, { prefix })
    const texts = [
      'aGVsbG8=',
      'AAAA',
      'deadbeef',
      "x'00'",
      '1e5',
      '007',
      ':a',
      '?1',
      '$1',
      'random()',
      "datetime('now')",
    ]
    for (const text of texts) {
      const held = execution(text, { context: { text, nul: 'a\0b', [text]: 1 }, outcome: text })
      await store.commit(held, { ...everything(text), processedEventId: text })
      for (let times = 0; times < 3; times++) {
        const loaded = (await store.load(text)) ?? expect.unreachable()
        expect(loaded).toEqual({ ...held, version: times + 1 })
        await store.commit(loaded)
      }
      expect(await store.isProcessed(text, text)).toBe(true)
    }
    expect((await store.listExecutions()).items.map(({ outcome }) => outcome).sort()).toEqual(texts.toSorted())
  })
})
