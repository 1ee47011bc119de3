import { type CommitChanges, CommitTooLarge, type JsonObject, newEvent, StoreConflict } from '@harel/store-base'
import { MongoStore } from '@harel/store-mongo'
import { withServer } from '@harel-tooling/test-servers/vitest'
import { describe, expect, test } from 'vitest'
import { connect, documentsOf, everything, execution, newPrefix, storeOn, useDatabase } from './helpers.js'

const MEBIBYTE = 1024 * 1024
const emit = (id: string) => ({ targetId: null, event: newEvent({ id, kind: 'k' }) })
const spawn = (childId: string) => ({ childId, rootPath: '', context: {} })

withServer('mongo', (server) => {
  const database = useDatabase(server)

  /** A store on a client whose commands are noted down, once it has made its indexes. */
  const setUp = async (options: { dedupe?: number; traceMax?: number } = {}) => {
    const prefix = newPrefix()
    const client = connect(database.url, { monitorCommands: true })
    const store = new MongoStore(client.db(), { prefix, ...options })
    await store.load('none')
    const sent: string[] = []
    client.on('commandStarted', ({ commandName, command }) => {
      if (String(command[commandName]).startsWith(prefix)) sent.push(commandName)
    })
    return { prefix, store, sent, documents: () => documentsOf(database.db(), prefix) }
  }

  describe('a commit is one update, after an allocation for its events and one for its spawns (B66, weakness 34)', () => {
    const shapes: [name: string, changes: CommitChanges, allocations: number][] = [
      ['of the state alone', {}, 0],
      ['with a mark, timers and a step', { ...everything('a'), emits: [], spawns: [] }, 0],
      ['with three events', { emits: [emit('1'), emit('2'), emit('3')] }, 1],
      ['with two spawns', { spawns: [spawn('1'), spawn('2')] }, 1],
      ['with one of everything', everything('a'), 2],
    ]
    test.each(shapes)('%s', async (_name, changes, allocations) => {
      const { store, sent } = await setUp()
      const held = execution('a')
      for (let version = 1; version < 4; version++) {
        sent.length = 0
        await store.commit(held, changes)
        expect(sent).toEqual([...Array(allocations).fill('findAndModify'), 'update'])
      }
    })

    test('and commits at once share the allocations, without sharing a number', async () => {
      const { store, sent } = await setUp()
      const held = Array.from({ length: 32 }, (_, n) => execution(`e${n}`))
      const seqs = await Promise.all(held.map((each) => store.commit(each, { emits: [emit('a'), emit('b')] })))
      expect(sent.filter((name) => name === 'update')).toHaveLength(32)
      expect(sent.filter((name) => name === 'findAndModify').length).toBeLessThan(8)
      expect(new Set(seqs.flat()).size).toBe(64)
      for (const [first = 0, second] of seqs) expect(second).toBe(first + 1)
    })
  })

  test('of 20 who create an execution at once one succeeds, the others get a StoreConflict', async () => {
    const { prefix, store } = await setUp()
    const stores = [store, storeOn(connect(database.url).db(), { prefix })]
    const racers = Array.from({ length: 20 }, (_, n) => execution('a', { context: { n } }))
    const results = await Promise.allSettled(
      racers.map((each, n) => stores[n % 2]?.commit(each, { emits: [emit(`e${n}`)], processedEventId: `e${n}` })),
    )
    const lost = results.flatMap((result) => (result.status === 'rejected' ? [result.reason] : []))
    expect(lost).toHaveLength(19)
    for (const error of lost) {
      expect(error).toBeInstanceOf(StoreConflict)
      expect(error).toMatchObject({ expected: 0, found: 1 })
    }
    const winner = racers.find(({ version }) => version === 1)
    expect(await store.load('a')).toEqual(winner)
    const queued = (await store.pendingOutbox()).map(({ event }) => event.id)
    expect(queued).toEqual([`e${winner?.context.n}`])
  })

  test('the first commits of many stores at once share no number, though all of them make the counter', async () => {
    const prefix = newPrefix()
    const stores = Array.from({ length: 10 }, () => storeOn(database.db(), { prefix }))
    const seqs = await Promise.all(
      stores.map((store, n) => store.commit(execution(`e${n}`), { emits: [emit(`${n}`)] })),
    )
    const queued = (await storeOn(database.db(), { prefix }).pendingOutbox()).map(({ seq, event }) => [seq, event.id])
    expect(new Map(seqs.map(([seq], n) => [seq, `${n}`]))).toEqual(new Map(queued as [number, string][]))
    expect(queued).toHaveLength(10)
  })

  test('a refused commit leaves no trace in the document', async () => {
    const { store, documents } = await setUp()
    await store.commit(execution('a'), everything('a'))
    const { executions: before } = await documents()
    await expect(store.commit(execution('a', { version: 7 }), everything('b'))).rejects.toMatchObject({ found: 1 })
    await expect(store.commit(execution('a'), everything('b'))).rejects.toBeInstanceOf(StoreConflict)
    expect((await documents()).executions).toEqual(before)
  })

  test('what BSON or the driver would change is stored exactly, in contexts of spawns and in steps', async () => {
    const { store } = await setUp()
    const odd: JsonObject[] = [
      { _bsontype: 'ObjectId', id: 'x' },
      { inner: { _bsontype: 'Long', low: 1, high: 2 } },
      { $ref: 'c', $id: 1 },
      { a: [{ $ref: 'c', $id: 'x', $db: 'd', more: 1 }] },
      { 'a.b': 1, a: { b: 2 }, $set: { x: 1 }, $: 3, '': 4, '.': 5, $where: '1', '$a.b': 6 },
      JSON.parse('{"__proto__": {"polluted": 1}, "constructor": 2}'),
      { text: '$data', list: ['$$ROOT', { $literal: '$x' }], empty: [[], {}, null] },
      { 'key\u0000with NUL': 'value\u0000with NUL' },
      { json_text: '{"not": "a text of ours"}' },
      { json_text: 1 },
      JSON.parse(`${'{"deeper":'.repeat(150)}1${'}'.repeat(150)}`),
      { 1: 'b', large: 2 ** 53 - 1, negative: -(2 ** 31) - 1, real: 1e300, small: 5e-324 },
    ]
    const held = execution('a', { context: { odd } })
    await store.commit(held, { spawns: odd.map((context, n) => ({ childId: `c${n}`, rootPath: '', context })) })
    for (const trace of odd) await store.commit(held, { trace })
    for (const step of odd) await store.appendTrace('b', step)
    expect((await store.pendingSpawns()).map(({ context }) => context)).toEqual(odd)
    const numbered = odd.map((step, index) => ({ ...step, index }))
    expect(await store.readTrace('a')).toEqual(numbered)
    expect(await store.readTrace('b')).toEqual(numbered)
    expect((await store.load('a'))?.context).toEqual({ odd })
    expect(Object.hasOwn({}, 'polluted')).toBe(false)
  })

  test('texts that look like paths or operators are only texts (B14, B100)', async () => {
    const { store } = await setUp()
    const names = ['$data', '$$ROOT', '$literal', 'a.b', '{"$gt":""}', '__proto__']
    for (const name of names) {
      await store.commit(execution(name, { definitionId: name, outcome: name, activePath: name, parentId: name }), {
        processedEventId: name,
        emits: [{ targetId: name, event: newEvent({ kind: name }) }],
        timers: [{ action: 'schedule', path: name, fireAt: 1 }],
      })
      expect((await store.listExecutions({ definitionId: name })).items).toMatchObject([
        { id: name, definitionId: name, outcome: name, activePath: name, parentId: name },
      ])
      expect(await store.loadForEvent(name, name)).toMatchObject({ processed: true })
      expect(await store.loadForEvent(name, `${name}x`)).toMatchObject({ processed: false })
    }
    expect(new Set((await store.dueTimers(1)).map(({ path }) => path))).toEqual(new Set(names))
    expect((await store.pendingOutbox()).map(({ targetId }) => targetId)).toEqual(names)
    const [held] = await Promise.all(names.map((name) => store.load(name)))
    if (held === undefined) return expect.unreachable()
    await store.commit(held, { timers: [{ action: 'cancel', path: '$data' }] })
    expect((await store.dueTimers(1)).map(({ path }) => path)).not.toContain('$data')
  })

  test('a path may be cancelled and armed in one commit, in the first one too; the last one counts', async () => {
    const { store } = await setUp()
    const held = execution('a')
    const cancel = { action: 'cancel', path: 'P' } as const
    const schedule = { action: 'schedule', path: 'P', fireAt: 5 } as const
    await store.commit(held, { timers: [cancel, schedule, { action: 'cancel', path: 'Q' }] })
    expect(await store.dueTimers(9)).toEqual([{ executionId: 'a', path: 'P', fireAt: 5 }])
    await store.commit(held, { timers: [cancel, { ...schedule, fireAt: 7 }] })
    expect(await store.dueTimers(9)).toEqual([{ executionId: 'a', path: 'P', fireAt: 7 }])
    await store.commit(held, { timers: [schedule, cancel] })
    expect(await store.dueTimers(9)).toEqual([])
  })

  describe('the window of processed events', () => {
    test('keeps the newest ids, as many as dedupe says (B77)', async () => {
      const { store } = await setUp({ dedupe: 3 })
      const held = execution('a')
      for (let n = 0; n < 5; n++) await store.commit(held, { processedEventId: `ev-${n}` })
      const known = await Promise.all([0, 1, 2, 3, 4].map((n) => store.isProcessed('a', `ev-${n}`)))
      expect(known).toEqual([false, false, true, true, true])
      expect(store.capabilities.dedupe).toBe(3)
    })

    test('is no larger after a million events than after as many as it holds (B96, weakness 28)', async () => {
      const { prefix, store } = await setUp()
      expect(store.capabilities.dedupe).toBe(10_000)
      const held = execution('a')
      await store.commit(held, { processedEventId: 'first' })
      const executions = database.db().collection<{ _id: string }>(`${prefix}_executions`)
      const size = async () => {
        const [document] = await executions.aggregate([{ $project: { bytes: { $bsonSize: '$$ROOT' } } }]).toArray()
        return document?.bytes
      }
      // As if it were at the end of its 990,000th event, and of as many as the window holds.
      const ids = (from: number) => Array.from({ length: 10_000 }, (_, n) => `${from + n}`.padStart(32, '0'))
      await executions.updateOne({ _id: 'a' }, { $set: { processed: ids(980_000) } })
      const full = await size()
      for (let n = 0; n < 20; n++) await store.commit(held, { processedEventId: `${990_000 + n}`.padStart(32, '0') })
      // The digits of the version.
      expect((await size()) - full).toBeLessThan(4)
      expect(full).toBeLessThan(MEBIBYTE)
      expect(await store.isProcessed('a', '980019'.padStart(32, '0'))).toBe(false)
      expect(await store.isProcessed('a', '980020'.padStart(32, '0'))).toBe(true)
      expect(await store.isProcessed('a', '990019'.padStart(32, '0'))).toBe(true)
    })
  })

  describe('a commit that is too large', () => {
    const text = (bytes: number) => ({ text: 'x'.repeat(bytes) })

    test.each<[string, CommitChanges]>([
      [
        'by its events',
        {
          emits: [1, 2].map((n) => ({
            targetId: null,
            event: newEvent({ kind: 'k', data: text(9 * MEBIBYTE), id: `${n}` }),
          })),
        },
      ],
      [
        'by its spawns',
        { spawns: [1, 2].map((n) => ({ childId: `${n}`, rootPath: '', context: text(9 * MEBIBYTE) })) },
      ],
    ])('%s is refused before it is sent, and says how large it is', async (_name, changes) => {
      const { store, sent } = await setUp()
      const held = execution('a')
      await store.commit(held)
      sent.length = 0
      const error = await store.commit(held, changes).catch((reason: unknown) => reason)
      expect(error).toBeInstanceOf(CommitTooLarge)
      expect(error).toMatchObject({ limit: 16 * MEBIBYTE })
      expect((error as CommitTooLarge).size).toBeGreaterThan(18 * MEBIBYTE)
      expect(sent).not.toContain('update')
      expect(held.version).toBe(1)
    })

    test('for a document that is full is refused by the server, which writes nothing (B26)', async () => {
      const { store, documents } = await setUp()
      const held = execution('a')
      const emits = [{ targetId: null, event: newEvent({ kind: 'k', data: text(9 * MEBIBYTE) }) }]
      const [seq = 0] = await store.commit(held, { emits })
      const before = (await documents()).executions
      await expect(store.commit({ ...held, context: text(8 * MEBIBYTE) })).rejects.toBeInstanceOf(CommitTooLarge)
      expect((await documents()).executions).toEqual(before)
      await store.ackOutbox(seq)
      await store.commit({ ...held, context: text(8 * MEBIBYTE) })
    })
  })
})
