import type { DynamoDBClient } from '@aws-sdk/client-dynamodb'
import { type CommitChanges, CommitTooLarge, type DynamoStore, StoreConflict } from '@harel/store-dynamodb'
import { withServer } from '@harel-tooling/test-servers/vitest'
import { beforeEach, describe, expect, test } from 'vitest'
import { emitsOf, everything, execution } from './commits.js'
import { clientFor, freshPrefix, itemsOf, storeOn } from './database.js'
import { Intermediary } from './intermediary.js'
import { putItem, pythonItem } from './python.js'

const KB = 1024
const spawnsOf = (count: number) =>
  Array.from({ length: count }, (_, n) => ({ childId: `c${n}`, rootPath: '', context: {} }))

withServer('dynamodb', ({ url }) => {
  let way: Intermediary
  let client: DynamoDBClient
  let prefix: string
  let store: DynamoStore

  beforeEach(async () => {
    way = await Intermediary.to(url)
    client = clientFor(way.url)
    prefix = freshPrefix()
    store = storeOn(client, { prefix })
    await store.load('none')
  })

  const tokens = () => way.requests.flatMap(({ body }) => JSON.parse(body).ClientRequestToken ?? [])

  describe('a commit', () => {
    const trace = { n: 1 }
    const shapes: { what: string; changes: CommitChanges; requests: number }[] = [
      { what: 'of the state alone', changes: {}, requests: 1 },
      {
        what: 'with a mark and timers',
        changes: { processedEventId: 'e', timers: everything('a').timers },
        requests: 1,
      },
      { what: 'with events', changes: { emits: emitsOf('x', 5) }, requests: 2 },
      { what: 'with spawns', changes: { spawns: spawnsOf(5) }, requests: 2 },
      { what: 'with events and spawns', changes: { emits: emitsOf('x', 5), spawns: spawnsOf(5) }, requests: 3 },
      { what: 'with a trace step', changes: { trace }, requests: 1 },
      { what: 'with everything', changes: everything('a'), requests: 3 },
    ]

    test.each(shapes)(
      '$what takes $requests requests, one of which is a transaction (weakness 34)',
      async ({ changes, requests }) => {
        const held = execution('a')
        // Where a trace ends is looked up once.
        await store.commit(held, { trace })
        await store.commit(held)
        const operations = await way.during(() => store.commit(held, changes))
        expect(operations).toHaveLength(requests)
        expect(operations.filter((operation) => operation === 'TransactWriteItems')).toHaveLength(1)
      },
    )

    test('looks up where a trace ends once, and again when somebody else has written the execution', async () => {
      const held = execution('a')
      const other = storeOn(clientFor(url), { prefix })
      expect(await way.during(() => store.commit(held, { trace }))).toEqual(['Query', 'TransactWriteItems'])
      const theirs = await other.load('a')
      if (theirs === undefined) return expect.unreachable()
      await other.commit(theirs, { trace: { n: 2 } })
      expect(await way.during(() => store.commit(theirs, { trace: { n: 3 } }))).toEqual(['Query', 'TransactWriteItems'])
      expect((await store.readTrace('a')).map(({ index, n }) => [index, n])).toEqual([
        [0, 1],
        [1, 2],
        [2, 3],
      ])
    })

    test('whose place in the trace was taken by another process finds the next one, with the seqs that it has', async () => {
      const held = execution('a')
      await store.commit(held, { trace })
      await storeOn(clientFor(url), { prefix }).appendTrace('a', { n: 2 })
      const changes = { trace: { n: 3 }, emits: emitsOf('x', 1) }
      const operations = await way.during(async () => expect(await store.commit(held, changes)).toEqual([1]))
      expect(operations).toEqual(['UpdateItem', 'TransactWriteItems', 'Query', 'TransactWriteItems'])
      expect((await store.readTrace('a')).map(({ n }) => n)).toEqual([1, 2, 3])
      // Another content under one token would be refused.
      expect(new Set(tokens().slice(-2)).size).toBe(2)
    })

    test('has a token of its own, so that the service knows one that is sent twice', async () => {
      const held = execution('a')
      for (let n = 0; n < 3; n++) await store.commit(held)
      expect(new Set(tokens()).size).toBe(3)
    })

    test('of a timer that is cancelled and armed again is one write (B71)', async () => {
      const held = execution('a')
      await store.commit(held, { timers: [{ action: 'schedule', path: 'P', fireAt: 1 }] })
      await store.commit(held, {
        timers: [
          { action: 'cancel', path: 'P' },
          { action: 'schedule', path: 'P', fireAt: 2 },
        ],
      })
      expect(await store.dueTimers(9)).toEqual([{ executionId: 'a', path: 'P', fireAt: 2 }])
      await store.commit(held, {
        timers: [
          { action: 'schedule', path: 'P', fireAt: 3 },
          { action: 'cancel', path: 'P' },
        ],
      })
      expect(await store.dueTimers(9)).toEqual([])
    })

    test('that is refused leaves no row, and tells the version that is stored without a further request', async () => {
      const held = execution('a')
      await store.commit(held, everything('a'))
      const before = await Promise.all(
        ['outbox', 'spawns', 'processed', 'timers', 'trace'].map((t) => itemsOf(client, `${prefix}_${t}`)),
      )
      const stale = { ...held, version: 5 }
      const operations = await way.during(async () => {
        const error = await store
          .commit(stale, { timers: [{ action: 'cancel', path: 'P' }] })
          .catch((reason: unknown) => reason)
        expect(error).toMatchObject({ code: 'STORE_CONFLICT', executionId: 'a', expected: 5, found: 1 })
      })
      expect(operations).toEqual(['TransactWriteItems'])
      await expect(store.commit({ ...held, version: 3 }, everything('a'))).rejects.toThrow(StoreConflict)
      const after = await Promise.all(
        ['outbox', 'spawns', 'processed', 'timers', 'trace'].map((t) => itemsOf(client, `${prefix}_${t}`)),
      )
      expect(after).toEqual(before)
    })

    test('keeps attributes of an item that are not ours', async () => {
      await putItem(client, `${prefix}_executions`, { ...pythonItem('a', 4), theirs: { S: 'kept' } })
      const held = await store.load('a')
      if (held === undefined) return expect.unreachable()
      await store.save(held)
      expect((await itemsOf(client, `${prefix}_executions`))[0]).toMatchObject({
        theirs: { S: 'kept' },
        version: { N: '5' },
      })
    })
  })

  test('commits that wait at the same moment share a request for seqs, and none is kept for later', async () => {
    const held = Array.from({ length: 64 }, (_, n) => execution(`e${n}`))
    const rounds = 10
    const operations = await way.during(() =>
      Promise.all(
        held.map(async (each) => {
          for (let n = 0; n < rounds; n++)
            await store.commit(each, { emits: emitsOf('x', 1), processedEventId: `${each.id}:${n}` })
        }),
      ),
    )
    expect(operations.length / (held.length * rounds)).toBeLessThanOrEqual(1.2)
    const seqs = (await store.pendingOutbox()).map(({ seq }) => seq)
    // No gap: every number that was taken was used.
    expect(seqs).toEqual(Array.from({ length: held.length * rounds }, (_, n) => n + 1))
  })

  describe('a commit that is too large is refused before anything is sent,', () => {
    const tooLarge: { what: string; changes: CommitChanges; context?: object; limit: number; message: RegExp }[] = [
      { what: 'of 101 writes', changes: { emits: emitsOf('x', 100) }, limit: 100, message: /101 writes, at most 100/ },
      { what: 'of 500 writes', changes: { spawns: spawnsOf(499) }, limit: 100, message: /500 writes, at most 100/ },
      {
        what: 'with an event over 400 KB',
        changes: {
          emits: [{ targetId: null, event: { ...emitsOf('x', 1)[0]?.event, data: { text: 'ü'.repeat(201 * KB) } } }],
        } as CommitChanges,
        limit: 400 * KB,
        message: /bytes in one item, at most 409600/,
      },
      {
        what: 'with a spawn over 400 KB',
        changes: { spawns: [{ childId: 'c', rootPath: '', context: { text: 'x'.repeat(401 * KB) } }] },
        limit: 400 * KB,
        message: /bytes in one item, at most 409600/,
      },
      {
        what: 'with a trace step over 400 KB',
        changes: { trace: { text: 'x'.repeat(400 * KB) } },
        limit: 400 * KB,
        message: /bytes in one item/,
      },
      {
        what: 'of 4.2 MB',
        changes: {
          spawns: Array.from({ length: 12 }, (_, n) => ({
            childId: `c${n}`,
            rootPath: '',
            context: { text: 'x'.repeat(350 * KB) },
          })),
        },
        limit: 4 * KB * KB,
        message: /bytes, at most 4194304/,
      },
    ]

    test.each(tooLarge)('$what, with the numbers (B26, B71)', async ({ changes, limit, message }) => {
      const held = execution('a')
      await store.save(held)
      const operations = await way.during(async () => {
        const error = await store.commit(held, changes).catch((reason: unknown) => reason)
        expect(error).toBeInstanceOf(CommitTooLarge)
        expect(error).toMatchObject({ limit, message: expect.stringMatching(message) })
        expect((error as CommitTooLarge).size).toBeGreaterThan(limit)
      })
      expect(operations).toEqual([])
      expect(held.version).toBe(1)
      await store.save(held)
    })

    test('also when it is the outcome that makes the item so large (B26)', async () => {
      const held = execution('a', { outcome: 'x'.repeat(205 * KB) })
      expect(await way.during(() => expect(store.save(held)).rejects.toThrow(CommitTooLarge))).toEqual([])
    })
  })

  test('a commit of 100 writes is stored, though its trace is full (B71)', async () => {
    const full = storeOn(client, { prefix, traceMax: 2 })
    const held = execution('a')
    for (let n = 0; n < 3; n++) await full.commit(held, { trace: { n } })
    await full.commit(held, { emits: emitsOf('x', 98), trace: { n: 3 } })
    expect((await full.readTrace('a')).map(({ n }) => n)).toEqual([2, 3])
    // What there was no room for leaves with the next step.
    await full.commit(held, { trace: { n: 4 } })
    expect((await itemsOf(client, `${prefix}_trace`)).map(({ idx }) => Number(idx?.N)).sort()).toEqual([3, 4])
  })

  test('of many who create one execution at once exactly one succeeds', async () => {
    const outcomes = await Promise.allSettled(
      Array.from({ length: 20 }, () => store.commit(execution('a'), everything('a'))),
    )
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    for (const outcome of outcomes)
      if (outcome.status === 'rejected') expect(outcome.reason).toBeInstanceOf(StoreConflict)
    expect(await store.pendingOutbox()).toHaveLength(2)
  })
})
