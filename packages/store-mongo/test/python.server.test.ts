import { canonical } from '@harel-tooling/canonical'
import { withServer } from '@harel-tooling/test-servers/vitest'
import { Double, Int32, Long } from 'mongodb'
import { describe, expect, test } from 'vitest'
import { documentsOf, everything, execution, newPrefix, storeOn, useDatabase } from './helpers.js'
import { pythonDocument, readByPython, restore } from './python.js'

withServer('mongo', (server) => {
  const database = useDatabase(server)

  describe.each([
    { name: 'scenario', ns: 'chk-' },
    { name: 'runner', ns: 'run-' },
  ] as const)('the documents that Python has written ($name)', ({ name, ns }) => {
    test('are read exactly as Python reads them, and left as they are', async () => {
      const prefix = newPrefix()
      await restore(database.db(), name, prefix)
      const before = await documentsOf(database.db(), prefix)
      const warnings: string[] = []
      const store = storeOn(database.db(), { prefix, onWarning: (text) => warnings.push(text) })
      expect(await canonical(store, ns)).toEqual(readByPython(name))
      expect(warnings).toEqual([])
      expect(await documentsOf(database.db(), prefix)).toEqual(before)
    })
  })

  test('a document has the fields and the types that Python gives them', async () => {
    const prefix = newPrefix()
    const store = storeOn(database.db(), { prefix })
    await store.commit(execution('a'), {
      ...everything('a'),
      timers: [{ action: 'schedule', path: 'A.b', fireAt: 5 }],
      spawns: [{ childId: 'c', rootPath: 'R', context: { whole: 2, large: 2 ** 40, real: 0.5, list: [], object: {} } }],
    })
    await store.save(execution('b'))
    const plain = { promoteValues: false, promoteLongs: false }
    const find = (_id: string) =>
      database.db().collection<{ _id: string }>(`${prefix}_executions`, plain).findOne({ _id })
    expect(await find('a')).toEqual({
      data: expect.stringMatching(/^\{"version":1,/),
      summary: expect.anything(),
      _id: 'a',
      definition_id: 'd',
      version: new Int32(1),
      outbox: [{ seq: Long.fromNumber(1), target_id: 'a', event: expect.stringMatching(/^\{"id":/) }],
      processed: ['a-event'],
      spawns: [
        {
          ...{ seq: Long.fromNumber(1), parent_id: 'a', child_id: 'c', root_path: 'R' },
          context: {
            whole: new Int32(2),
            large: Long.fromNumber(2 ** 40),
            real: new Double(0.5),
            list: [],
            object: {},
          },
        },
      ],
      timers: { 'A\uff0eb': new Double(5) },
      trace: [{ event: 'Tick', index: new Int32(0) }],
      next_fire_at: new Double(5),
    })
    expect(await find('b')).toMatchObject({ outbox: [], processed: [], spawns: [], timers: {}, trace: [] })
  })

  describe('an execution that Python has gone on with', () => {
    const setUp = async () => {
      const prefix = newPrefix()
      const store = storeOn(database.db(), { prefix })
      const held = execution('a')
      await store.commit(held, { timers: [{ action: 'schedule', path: 'Ours', fireAt: 9 }], trace: { n: 0 } })
      const python = database.db().collection<{ _id: string }>(`${prefix}_executions`)
      const { data } = pythonDocument('a', 2)
      // As its commit does.
      await python.updateOne({ _id: 'a' }, {
        $set: { data: data.replace('RUNNING', 'SUSPENDED'), version: 2, 'timers.Theirs': 3 },
        $push: { outbox: { seq: 90, target_id: null, event: '{"id":"e","kind":"k"}' }, trace: { n: 1, index: 1 } },
        $addToSet: { processed: 'theirs' },
      } as object)
      return { store, python }
    }

    test('is listed as it is now, and its timers and events are found', async () => {
      const { store } = await setUp()
      expect((await store.listExecutions({ status: 'PENDING' })).items).toEqual([])
      expect((await store.listExecutions({ status: 'SUSPENDED' })).items).toMatchObject([{ id: 'a', version: 2 }])
      expect((await store.dueTimers(10)).map(({ path }) => path)).toEqual(['Theirs', 'Ours'])
      expect(await store.pendingOutbox()).toMatchObject([{ seq: 90 }])
      expect(await store.isProcessed('a', 'theirs')).toBe(true)
    })

    test('keeps the timers that Python armed when a commit of ours arms none', async () => {
      const { store } = await setUp()
      const held = await store.load('a')
      if (held === undefined) return expect.unreachable()
      await store.commit(held, { trace: { n: 2 } })
      expect((await store.dueTimers(5)).map(({ path }) => path)).toEqual(['Theirs'])
      expect((await store.readTrace('a')).map(({ index }) => index)).toEqual([0, 1, 2])
    })

    test('gives no timer that Python has deleted, nor an event that it has acknowledged', async () => {
      const { store, python } = await setUp()
      await python.updateOne({ _id: 'a' }, {
        $unset: { 'timers.Theirs': '' },
        $pull: { outbox: { seq: 90 } },
      } as object)
      expect((await store.dueTimers(10)).map(({ path }) => path)).toEqual(['Ours'])
      expect(await store.pendingOutbox()).toEqual([])
    })
  })

  test('an execution is created where Python has left a document with nothing but a trace (weakness 9)', async () => {
    const prefix = newPrefix()
    const python = database.db().collection<{ _id: string }>(`${prefix}_executions`)
    await python.updateOne({ _id: 'a' }, { $push: { trace: { n: 0, index: 0 } } } as object, { upsert: true })
    const store = storeOn(database.db(), { prefix })
    expect(await store.load('a')).toBeUndefined()
    await store.commit(execution('a'), { trace: { n: 1 } })
    expect((await store.load('a'))?.version).toBe(1)
    expect((await store.readTrace('a')).map(({ index }) => index)).toEqual([0, 1])
  })
})
