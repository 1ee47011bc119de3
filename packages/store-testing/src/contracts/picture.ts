import assert from 'node:assert/strict'
import { type CommitChanges, type DueTimer, InvalidArgument, type JsonObject } from '@harel/store-base'
import { assertionOf, type Contract } from '../contract.js'
import {
  conflict,
  emit,
  event,
  everything,
  execution,
  loaded,
  outboxOf,
  rejection,
  spawnsOf,
  stored,
  timersOf,
} from '../fixtures.js'

/** Freezes an object and everything in it. */
function freeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null) {
    for (const member of Object.values(value)) freeze(member)
    Object.freeze(value)
  }
  return value
}

export const pictureContract: Contract = {
  name: 'picture at call',
  checks: [
    {
      title: 'what a commit stores is what the execution was when commit was called',
      reports: ['B25'],
      needs: ['copies'],
      async run({ store, ns }) {
        const held = execution(ns, 'e', { context: { list: [1] }, status: 'RUNNING', deferred: [event(ns, 'd')] })
        const expected = structuredClone(held)
        const commit = store.commit(held)
        held.status = 'DONE'
        held.context.list = ['changed']
        held.history.h = 'changed'
        held.deferred.pop()
        await commit
        assert.equal(held.version, 1)
        assert.deepEqual(await store.load(held.id), { ...expected, version: 1 })
      },
    },
    {
      title: 'a listing says of an execution what its payload says, though a getter answers otherwise the next time',
      needs: ['copies'],
      async run({ store, ns }) {
        const held = execution(ns)
        const answers = {
          definitionId: [`${ns}d`, `${ns}other`],
          status: ['RUNNING', 'DONE'],
          outcome: ['a', 'b'],
          activePath: ['a', 'b'],
          parentId: [`${ns}a`, `${ns}b`],
          finishedAt: [1, 2],
        }
        for (const [field, [first, next]] of Object.entries(answers)) {
          let reads = 0
          Object.defineProperty(held, field, { enumerable: true, get: () => (reads++ === 0 ? first : next) })
        }
        await store.commit(held)
        const payload: object = await loaded(store, held.id)
        const { items } = await store.listExecutions({ definitionId: `${ns}d`, status: 'RUNNING' })
        assert.deepEqual(
          items.map((item) => ({ ...payload, ...item })),
          [payload],
        )
      },
    },
    {
      title: 'what a commit stores beside the execution is what it was when commit was called',
      reports: ['B25'],
      async run({ store, ns }) {
        const emits = [emit(ns, 'e', 'a', { n: 1 })]
        const spawns = [{ childId: `${ns}c`, rootPath: 'R', context: { n: 1 } as JsonObject }]
        const timers = [{ action: 'schedule' as const, path: 'P', fireAt: 1 }]
        const trace: JsonObject = { n: [1] }
        const changes: CommitChanges = { emits, spawns, timers, trace, processedEventId: `${ns}ev` }
        const expected = structuredClone({ emits, spawns, trace })
        const held = execution(ns)
        const commit = store.commit(held, changes)
        Object.assign(emits[0] ?? {}, { targetId: `${ns}changed` })
        Object.assign(emits[0]?.event ?? {}, { kind: 'changed', data: { n: 2 } })
        emits.push(emit(ns, 'e', 'late'))
        Object.assign(spawns[0]?.context ?? {}, { n: 2 })
        Object.assign(timers[0] ?? {}, { fireAt: 2 })
        trace.n = 'changed'
        changes.processedEventId = `${ns}changed`
        const seqs = await commit
        assert.equal(seqs.length, 1)
        assert.deepEqual(
          (await outboxOf(store, ns)).map(({ targetId, event }) => ({ targetId, event })),
          expected.emits,
        )
        assert.deepEqual(
          (await spawnsOf(store, ns)).map(({ context }) => context),
          [{ n: 1 }],
        )
        assert.deepEqual(await timersOf(store, ns), [{ executionId: held.id, path: 'P', fireAt: 1 }])
        assert.deepEqual(await store.readTrace(held.id), [{ n: [1], index: 0 }])
        assert.equal(await store.isProcessed(held.id, `${ns}ev`), true)
        assert.equal(await store.isProcessed(held.id, `${ns}changed`), false)
      },
    },
    {
      title: 'every other method looks at its arguments when it is called, too',
      async run({ store, ns }) {
        const definition: JsonObject = { n: 1 }
        const record = { id: `${ns}D`, version: '1', definition }
        const publish = store.publishDefinition(record)
        definition.n = 2
        record.version = '2'
        assert.deepEqual(await publish, { id: `${ns}D`, version: '1', definition: { n: 1 } })
        assert.equal(await store.loadDefinition(`${ns}D`, '2'), undefined)

        const step: JsonObject = { n: 1 }
        const append = store.appendTrace(`${ns}e`, step)
        step.n = 2
        await append
        assert.deepEqual(await store.readTrace(`${ns}e`), [{ n: 1, index: 0 }])

        const changes = {
          emits: [emit(ns, 'e', 'a'), emit(ns, 'e', 'b')],
          spawns: ['a', 'b'].map((name) => ({ childId: ns + name, rootPath: '', context: {} })),
        }
        const acked = await store.commit(execution(ns, 'e', { status: 'DONE' }), changes)
        const ackOutbox = store.ackOutbox(acked)
        acked.pop()
        await ackOutbox
        assert.deepEqual(await outboxOf(store, ns), [])
        const spawns = (await spawnsOf(store, ns)).map(({ seq }) => seq)
        const ackSpawn = store.ackSpawn(spawns)
        spawns.pop()
        await ackSpawn
        assert.deepEqual(await spawnsOf(store, ns), [])

        const query = { definitionId: `${ns}d`, status: ['DONE' as const] }
        const list = store.listExecutions(query)
        query.definitionId = `${ns}other`
        query.status.pop()
        assert.equal((await list).items.length, 1)
      },
    },
    {
      title: 'the place where a page starts is looked at when the page is asked for',
      async run({ store, ns }) {
        const held = await stored(store, ns, 'e', {}, { emits: ['a', 'b'].map((name) => emit(ns, 'e', name)) })
        const timers = [1, 2].map((n) => ({ action: 'schedule' as const, path: `P${n}`, fireAt: n }))
        await store.commit(held, { timers })
        const after: DueTimer = { executionId: held.id, path: 'P1', fireAt: 1 }
        const due = store.dueTimers(2, { after })
        after.fireAt = 2
        after.path = 'P2'
        assert.deepEqual(
          (await due).filter(({ executionId }) => executionId === held.id).map(({ path }) => path),
          ['P2'],
        )
        const [first] = await outboxOf(store, ns)
        const page = { after: first?.seq ?? 0, limit: 1000 }
        const pending = store.pendingOutbox(page)
        page.after = Number.MAX_SAFE_INTEGER
        assert.equal((await pending).filter(({ event }) => event.id.startsWith(ns)).length, 1)
      },
    },
    {
      title: 'one object committed twice at once is stored as often as it was told, and goes on from there',
      async run({ store, ns }) {
        const held = execution(ns)
        const outcomes = await Promise.allSettled([store.commit(held), store.commit(held)])
        const wins = outcomes.filter(({ status }) => status === 'fulfilled').length
        // Two where the first commit was over when the second was called.
        assert(wins > 0)
        for (const outcome of outcomes) {
          if (outcome.status === 'rejected') await conflict(() => Promise.reject(outcome.reason), held.id, 0, 1)
        }
        assert.equal(held.version, wins)
        await store.commit(held)
        assert.equal((await loaded(store, held.id)).version, wins + 1)
      },
    },
    {
      title: 'a commit changes nothing of its arguments but the version',
      async run({ store, ns }) {
        const held = execution(ns, 'e', { context: { list: [{ n: 1 }] }, deferred: [event(ns, 'd', { n: 1 })] })
        const changes = everything(ns, 'e')
        const picture = structuredClone({ held, changes })
        await store.commit(held, changes)
        assert.deepEqual({ held: { ...held, version: 0 }, changes }, picture)
      },
    },
    {
      title: 'frozen changes, contexts and events can be committed',
      async run({ store, ns }) {
        const held = execution(ns, 'e', freeze({ context: { list: [{ n: 1 }] }, history: {}, deferred: [] }))
        await store.commit(held, freeze(everything(ns, 'e')))
        assert.equal(held.version, 1)
        await store.publishDefinition(freeze({ id: `${ns}D`, version: '1', definition: { a: [1] } }))
        await store.appendTrace(held.id, freeze({ n: [1] }))
      },
    },
    {
      title: 'an execution whose version cannot be raised is refused before anything is written',
      async run({ store, ns }) {
        const bad = [
          Object.freeze(execution(ns)),
          Object.defineProperty(execution(ns), 'version', { value: 0, writable: false }),
          Object.defineProperty(execution(ns), 'version', { get: () => 0 }),
        ]
        for (const held of bad) {
          const error = await rejection(() => store.commit(held, everything(ns, 'e')), InvalidArgument)
          assert.equal(error.argument, 'execution')
        }
        assert.equal(await store.load(`${ns}e`), undefined)
        assert.deepEqual(await outboxOf(store, ns), [])
      },
    },
    {
      title: 'what load returns is a copy of its own each time',
      reports: ['B25'],
      needs: ['copies'],
      async run({ store, ns }) {
        const { id } = await stored(store, ns, 'e', { context: { list: [1] } }, { processedEventId: `${ns}ev` })
        const first = await store.load(id)
        const { execution: second } = await store.loadForEvent(id, `${ns}ev`)
        assert(first !== undefined && second !== undefined && first !== second)
        first.context.list = ['changed']
        second.status = 'FAILED'
        assert.deepEqual((await store.load(id))?.context, { list: [1] })
        assert.equal((await store.load(id))?.status, 'PENDING')
      },
    },
    {
      title: 'what the other reads return are copies too',
      reports: ['B25'],
      async run({ store, ns }) {
        const changes = { ...everything(ns, 'e'), trace: { list: [1] } }
        const { id } = await stored(store, ns, 'e', {}, changes)
        await store.publishDefinition({ id: `${ns}D`, version: '1', definition: { n: 1 } })
        const read = async () => [
          (await outboxOf(store, ns))[0],
          (await spawnsOf(store, ns))[0],
          (await timersOf(store, ns))[0],
          (await store.readTrace(id))[0],
          await store.loadDefinition(`${ns}D`, '1'),
          await store.publishDefinition({ id: `${ns}D`, version: '1', definition: {} }),
          (await store.listExecutions({ definitionId: `${ns}d` })).items[0],
        ]
        const before = structuredClone(await read())
        for (const record of await read()) {
          assert(record !== undefined)
          for (const [key, value] of Object.entries(record)) {
            if (typeof value === 'object' && value !== null) Object.assign(value, { changed: true })
            Object.assign(record, { [key]: 'changed' })
          }
        }
        assert.deepEqual(await read(), before)
      },
    },
  ],
}

/** That a call takes a picture of its arguments, and shares nothing afterwards. */
export const assertPictureAtCall = assertionOf(pictureContract)
