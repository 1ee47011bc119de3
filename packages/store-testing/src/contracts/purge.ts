import assert from 'node:assert/strict'
import { type Execution, type ExecutionStore, StoreConflict } from '@harel/store-base'
import { assertionOf, type Check, type CheckContext, type Contract } from '../contract.js'
import {
  conflict,
  emit,
  everything,
  execution,
  loaded,
  outboxOf,
  rejection,
  spawnsOf,
  stateOf,
  stored,
  timersOf,
} from '../fixtures.js'

/** A victim and a bystander, each with one of everything; the bystander must come away unharmed. */
async function seed(store: ExecutionStore, ns: string): Promise<Execution> {
  for (const name of ['victim', 'bystander']) {
    await store.commit(execution(ns, name, { status: 'DONE' }), everything(ns, name))
  }
  return loaded(store, `${ns}victim`)
}

/** What is left of whom after the victim was purged. */
const companions: readonly { title: string; left: (context: CheckContext) => Promise<unknown>; expected: unknown }[] = [
  {
    title: 'a purge removes the processed marks of the execution and no others', // 18, 24
    left: ({ store, ns }) =>
      Promise.all(['victim', 'bystander'].map((name) => store.isProcessed(ns + name, `${ns}${name}-ev`))),
    expected: [false, true],
  },
  {
    title: 'a purge removes the trace of the execution and no other', // 19
    left: ({ store, ns }) => Promise.all(['victim', 'bystander'].map((name) => store.readTrace(ns + name))),
    expected: [[], [{ event: 'Tick', index: 0 }]],
  },
  {
    title: 'a purge removes the timers of the execution and no others', // 20
    left: async ({ store, ns }) =>
      (await timersOf(store, ns, 10)).map(({ executionId }) => executionId.slice(ns.length)),
    expected: ['bystander'],
  },
  {
    title: 'a purge removes the events addressed to the execution and no others', // 21
    left: async ({ store, ns }) => (await outboxOf(store, ns)).map(({ targetId }) => targetId?.slice(ns.length)),
    expected: ['bystander'],
  },
  {
    title: 'a purge removes the spawns that the execution issued and no others', // 22
    left: async ({ store, ns }) => (await spawnsOf(store, ns)).map(({ parentId }) => parentId.slice(ns.length)),
    expected: ['bystander'],
  },
]

const companionChecks = companions.map(
  ({ title, left, expected }): Check => ({
    title,
    async run(context) {
      const { id, version } = await seed(context.store, context.ns)
      assert.equal(await context.store.purge(id, version), true)
      assert.deepEqual(await left(context), expected)
    },
  }),
)

export const purgeContract: Contract = {
  name: 'purge',
  checks: [
    {
      title: 'a purge at another version changes nothing and returns false',
      async run(context) {
        const { store, ns } = context
        const { id, version } = await seed(store, ns)
        const before = await stateOf(context, [id], [`${ns}victim-ev`, `${ns}bystander-ev`])
        for (const wrong of [version + 7, version + 1, version - 1]) assert.equal(await store.purge(id, wrong), false) // 13
        assert.deepEqual(await stateOf(context, [id], [`${ns}victim-ev`, `${ns}bystander-ev`]), before) // 14, 15
      },
    },
    {
      title: 'a purge at the stored version removes the execution and returns true, once',
      async run({ store, ns }) {
        const { id, version } = await seed(store, ns)
        assert.equal(await store.purge(id, version), true) // 16
        assert.equal(await store.load(id), undefined) // 17
        assert.deepEqual(await store.loadForEvent(id, `${ns}victim-ev`), { execution: undefined, processed: false })
        assert.equal((await loaded(store, `${ns}bystander`)).version, 1) // 23
        assert.equal(await store.purge(id, version), false) // 25
      },
    },
    ...companionChecks,
    {
      title: 'a stale copy of a purged execution conflicts and does not bring it back',
      async run(context) {
        const { store, ns } = context
        const stale = await seed(store, ns)
        assert.equal(await store.purge(stale.id, stale.version), true)
        const before = await stateOf(context, [stale.id], [`${ns}victim-ev`])
        await rejection(() => store.commit(structuredClone(stale)), StoreConflict) // 26
        await conflict(() => store.commit(stale, everything(ns, 'victim')), stale.id, 1, null)
        assert.equal(await store.load(stale.id), undefined) // 27
        assert.deepEqual(await stateOf(context, [stale.id], [`${ns}victim-ev`]), before)
      },
    },
    {
      title: 'the id of a purged execution can be used again, from version 1 and with nothing of its former life',
      reports: ['B77'],
      async run({ store, ns }) {
        const { id, version } = await seed(store, ns)
        assert.equal(await store.purge(id, version), true)
        const reborn = execution(ns, 'victim')
        await store.commit(reborn, { trace: { n: 0 } })
        assert.equal((await loaded(store, id)).version, 1) // 28
        assert.equal(await store.isProcessed(id, `${ns}victim-ev`), false)
        assert.deepEqual(await store.readTrace(id), [{ n: 0, index: 0 }])
        assert.deepEqual(
          (await timersOf(store, ns)).map(({ executionId }) => executionId),
          [`${ns}bystander`],
        )
        for (const name of ['victim', 'bystander']) {
          assert.equal(await store.purge(ns + name, (await loaded(store, ns + name)).version), true) // 29
        }
      },
    },
    {
      title: 'events that the execution sent to others stay queued',
      weaknesses: [14],
      async run({ store, ns }) {
        const emits = [emit(ns, 'other', 'a'), emit(ns, 'e', 'own'), emit(ns, null, 'nobody')]
        const { id } = await stored(store, ns, 'e', {}, { emits })
        assert.equal(await store.purge(id, 1), true)
        assert.deepEqual(
          (await outboxOf(store, ns)).map(({ event }) => event.kind),
          ['a', 'nobody'],
        )
      },
    },
    {
      title: 'events that others sent to the execution leave the queue',
      async run({ store, ns }) {
        await stored(
          store,
          ns,
          'other',
          {},
          { emits: [emit(ns, 'e', 'a'), emit(ns, 'other', 'b'), emit(ns, 'e', 'c')] },
        )
        const { id } = await stored(store, ns)
        assert.equal(await store.purge(id, 1), true)
        assert.deepEqual(
          (await outboxOf(store, ns)).map(({ event }) => event.kind),
          ['b'],
        )
      },
    },
    {
      title: 'executions, queues and traces whose ids resemble the purged one are left alone',
      reports: ['B33', 'B35'],
      async run(context) {
        const { store, ns } = context
        const names = ['a_b', 'aXb', 'a_b:1', 'A_B', 'a%', 'a*', 'a', 'a_', 'a_b ']
        for (const name of names) await stored(store, ns, name, {}, everything(ns, name))
        const others = names.filter((name) => name !== 'a_b').map((name) => ns + name)
        const marks = names.map((name) => `${ns}${name}-ev`)
        assert.equal(await store.purge(`${ns}a_b`, 1), true)
        const { executions, outbox, spawns, timers } = await stateOf(context, others, marks)
        assert.deepEqual(Object.keys(executions).sort(), others.toSorted())
        for (const id of others) {
          const { execution, trace, marks } = executions[id] as Record<string, unknown>
          assert.deepEqual(
            [(execution as Execution).id, trace, marks],
            [id, [{ event: 'Tick', index: 0 }], [`${id}-ev`]],
          )
        }
        for (const queue of [outbox, spawns, timers]) assert.equal(queue.length, others.length)
      },
    },
    {
      title: 'a purge of what is not stored removes leftovers under its id and returns false',
      reports: ['B36'],
      async run({ store, ns }) {
        await store.appendTrace(`${ns}e`, { n: 1 })
        await stored(store, ns, 'other', {}, { emits: [emit(ns, 'e', 'early'), emit(ns, 'other', 'kept')] })
        assert.equal(await store.purge(`${ns}e`, 3), false)
        assert.deepEqual(await store.readTrace(`${ns}e`), [])
        assert.deepEqual(
          (await outboxOf(store, ns)).map(({ event }) => event.kind),
          ['kept'],
        )
      },
    },
    {
      title: 'of many purges of one execution at once exactly one returns true',
      async run({ store, ns }) {
        const { id, version } = await seed(store, ns)
        const purged = await Promise.all(Array.from({ length: 6 }, () => store.purge(id, version)))
        assert.equal(purged.filter((result) => result).length, 1)
        assert.equal(await store.load(id), undefined)
      },
    },
    {
      title: 'of a purge and a commit at once exactly one succeeds, and nothing half is left',
      async run({ store, ns }) {
        for (let n = 0; n < 10; n++) {
          const name = `e${n}`
          const held = await stored(store, ns, name)
          const [purged, committed] = await Promise.allSettled([
            store.purge(held.id, 1),
            store.commit(held, everything(ns, name)),
          ])
          assert(purged.status === 'fulfilled')
          assert.equal(purged.value, committed.status === 'rejected')
          const kept = purged.value ? 0 : 1
          assert.equal((await store.load(held.id))?.version, purged.value ? undefined : 2)
          assert.equal((await store.readTrace(held.id)).length, kept)
          assert.equal(await store.isProcessed(held.id, `${ns}${name}-ev`), kept === 1)
          assert.equal((await outboxOf(store, `${ns}${name}-`)).length, kept)
          assert.equal((await spawnsOf(store, held.id)).length, kept)
          assert.equal((await timersOf(store, held.id)).length, kept)
        }
      },
    },
    {
      title: 'a purge leaves no row',
      reports: ['B96'],
      needs: ['rows'],
      async run({ store, ns, probes }) {
        const before = await probes.rows?.()
        const { id, version } = await stored(store, ns, 'e', {}, everything(ns, 'e'))
        await store.appendTrace(id, { n: 1 })
        assert.notDeepEqual(await probes.rows?.(), before)
        assert.equal(await store.purge(id, version), true)
        assert.deepEqual(await probes.rows?.(), before)
      },
    },
    {
      title: 'what was delivered, carried out and fired leaves no row, however often',
      reports: ['B96'],
      needs: ['rows'],
      async run({ store, ns, traceMax, probes }) {
        const { processedEventId: _none, ...changes } = everything(ns, 'e')
        const held = execution(ns)
        const work = async () => {
          await store.commit(held, changes)
          await store.ackOutbox((await outboxOf(store, ns)).map(({ seq }) => seq))
          await store.ackSpawn((await spawnsOf(store, ns)).map(({ seq }) => seq))
          await store.deleteTimer(held.id, 'P', 1)
        }
        for (let n = 0; n < traceMax; n++) await work()
        const before = await probes.rows?.()
        for (let n = 0; n < 10; n++) await work()
        assert.deepEqual(await probes.rows?.(), before)
      },
    },
  ],
}

/** Purging: the execution with everything that is its own, and nothing else. */
export const assertPurge = assertionOf(purgeContract)
