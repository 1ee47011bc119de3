import assert from 'node:assert/strict'
import { type CommitChanges, type Execution, NotSerializable } from '@harel/store-base'
import { assertionOf, type Check, type Contract } from '../contract.js'
import {
  conflict,
  emit,
  event,
  everything,
  execution,
  loaded,
  outboxOf,
  rejection,
  stateOf,
  stored,
} from '../fixtures.js'

/** An execution in which no field has its default. */
const full = (ns: string): Execution =>
  execution(ns, 'full', {
    definitionFqn: 'app.Order#Sub',
    rootPath: 'Order/ä',
    status: 'SUSPENDED',
    outcome: 'approved',
    error: 'why \u0000 not',
    activePath: 'Order/Waiting',
    history: { 'Order/H': 'Order/Waiting' },
    context: { amount: 12.5, items: [{ sku: 'a' }, null, true], empty: {}, none: [] },
    processedEvents: 7,
    priority: 4,
    parentId: `${ns}parent`,
    childId: `${ns}full`,
    deferred: [
      {
        ...event(ns, 'Later', { n: 1 }),
        createdTime: '2026-01-02T03:04:05.600000Z',
        receivedTime: '2026-01-02T03:04:05',
      },
    ],
    children: {
      [`${ns}child`]: {
        rootPath: 'Order/Region',
        finished: true,
        outcome: 'done',
        result: { ok: [1] },
        submachine: true,
        key: 'k',
      },
    },
    invokeSeq: { 'Order/Waiting': 3 },
    createdAt: 1700000000.125,
    updatedAt: 1700000001,
    finishedAt: 1700000002.5,
    expiresAt: 0,
  })

/** Each part of a commit by itself, and what its residue would be called. */
const parts = (ns: string): Record<string, CommitChanges> => {
  const { emits = [], spawns = [], timers = [], processedEventId = '', trace = {} } = everything(ns, 'loser')
  return {
    event: { emits },
    'processed mark': { processedEventId },
    timer: { timers },
    spawn: { spawns },
    'trace step': { trace },
  }
}

const residueChecks = Object.keys(parts('')).map(
  (part): Check => ({
    title: `a refused commit leaves no ${part}`,
    weaknesses: [8],
    async run(context) {
      const { store, ns } = context
      const stale = await stored(store, ns)
      await store.commit(structuredClone(stale), { trace: { n: 0 } })
      const before = await stateOf(context, [stale.id], [`${ns}loser-ev`])
      await conflict(() => store.commit(stale, parts(ns)[part]), stale.id, 1, 2)
      assert.deepEqual(await stateOf(context, [stale.id], [`${ns}loser-ev`]), before)
    },
  }),
)

/** Changes that cannot be stored, by the place of the fault. */
const unstorable = (ns: string): Record<string, CommitChanges> => ({
  'an event': {
    ...everything(ns, 'bad'),
    emits: [emit(ns, 'e', 'fine'), { targetId: null, event: event(ns, 'bad', { n: Number.NaN }) }],
  },
  'the text of one event of three': {
    ...everything(ns, 'bad'),
    emits: ['fine', 'x\udfff', 'fine too'].map((text, n) => emit(ns, 'e', `bad-${n}`, { text })),
  },
  'a spawned context': {
    ...everything(ns, 'bad'),
    spawns: [{ childId: `${ns}c`, rootPath: '', context: { n: Number.NaN } }],
  },
  'a trace step': { ...everything(ns, 'bad'), trace: { n: Number.NaN } },
})

const unstorableChecks = Object.keys(unstorable('')).map(
  (place): Check => ({
    title: `a commit with ${place} that cannot be stored changes nothing, the caller's version included`,
    reports: ['B06', 'B99'],
    weaknesses: [13],
    async run(context) {
      const { store, ns } = context
      const held = await stored(store, ns)
      const before = await stateOf(context, [held.id], [`${ns}bad-ev`])
      const picture = structuredClone(held)
      await rejection(() => store.commit(held, unstorable(ns)[place]), NotSerializable)
      assert.deepEqual(held, picture)
      assert.deepEqual(await stateOf(context, [held.id], [`${ns}bad-ev`]), before)
      await store.commit(held, everything(ns, 'good'))
      assert.equal((await outboxOf(store, ns)).length, 1)
    },
  }),
)

export const commitContract: Contract = {
  name: 'commit',
  checks: [
    {
      title: 'the first commit stores version 1 and raises the version of the caller',
      async run({ store, ns }) {
        const created = execution(ns)
        assert.equal(await store.load(created.id), undefined)
        await store.commit(created)
        assert.equal(created.version, 1)
        assert.equal((await loaded(store, created.id)).version, 1)
      },
    },
    {
      title: 'one object can be committed again and again, each time one version higher',
      reports: ['B17'],
      async run({ store, ns }) {
        const held = execution(ns)
        // Past 9 and 10, which compare wrongly as texts.
        for (let version = 1; version <= 12; version++) {
          await store.commit(held)
          assert.equal(held.version, version)
          assert.equal((await loaded(store, held.id)).version, version)
        }
      },
    },
    {
      title: 'every field of an execution is loaded as it was committed',
      reports: ['B85'],
      async run({ store, ns }) {
        const committed = full(ns)
        await store.commit(committed)
        assert.deepEqual(await store.load(committed.id), committed)
      },
    },
    {
      title: 'fields that changed since are stored anew, those that were cleared too',
      async run({ store, ns }) {
        const held = full(ns)
        await store.commit(held)
        const next = { ...execution(ns, 'full'), definitionId: `${ns}other`, version: held.version }
        await store.commit(next)
        assert.deepEqual(await store.load(next.id), next)
      },
    },
    {
      title: 'a store never stamps times of its own',
      reports: ['B82', 'B85'],
      async run({ store, ns }) {
        const held = execution(ns, 'e', { status: 'DONE' })
        await store.commit(held)
        const { createdAt, updatedAt, finishedAt, expiresAt } = await loaded(store, held.id)
        assert.deepEqual([createdAt, updatedAt, finishedAt, expiresAt], [null, null, null, null])
      },
    },
    {
      title: 'save is a commit without changes',
      async run({ store, ns }) {
        const held = execution(ns, 'e', { context: { n: 1 } })
        assert.equal(await store.save(held), undefined)
        assert.equal(held.version, 1)
        assert.deepEqual((await loaded(store, held.id)).context, { n: 1 })
        const stale = { ...structuredClone(held), version: 0 }
        await conflict(() => store.save(stale), held.id, 0, 1)
      },
    },
    {
      title: 'a stale copy conflicts and is told which version it held and which is stored',
      weaknesses: [53],
      async run({ store, ns }) {
        const stale = await stored(store, ns)
        const winner = structuredClone(stale)
        await store.commit(winner)
        await store.commit(winner)
        await conflict(() => store.commit(stale), stale.id, 1, 3)
      },
    },
    {
      title: 'a copy that is ahead of the stored version conflicts',
      async run({ store, ns }) {
        const held = await stored(store, ns)
        await conflict(() => store.commit({ ...structuredClone(held), version: 5 }), held.id, 5, 1)
      },
    },
    {
      title: 'a new object conflicts with a stored execution of its id',
      reports: ['B74', 'B77'],
      async run({ store, ns }) {
        const { id } = await stored(store, ns, 'e', { context: { first: true } })
        await conflict(() => store.commit(execution(ns)), id, 0, 1)
        assert.deepEqual((await loaded(store, id)).context, { first: true })
      },
    },
    {
      title: 'a copy of an execution that is not stored conflicts: found is null',
      async run({ store, ns }) {
        const held = execution(ns, 'e', { version: 3 })
        await conflict(() => store.commit(held), held.id, 3, null)
        assert.equal(await store.load(held.id), undefined)
      },
    },
    {
      title: "a conflict leaves the caller's object as it was",
      async run({ store, ns }) {
        const stale = await stored(store, ns)
        await store.commit(structuredClone(stale))
        stale.context = { mine: true }
        const picture = structuredClone(stale)
        await conflict(() => store.commit(stale, everything(ns, 'e')), stale.id, 1, 2)
        assert.deepEqual(stale, picture)
      },
    },
    {
      title: 'after a conflict the state of the winner is stored and can be gone on from',
      async run({ store, ns }) {
        const stale = await stored(store, ns)
        await store.commit({ ...structuredClone(stale), context: { winner: true } })
        await conflict(() => store.commit(stale), stale.id, 1, 2)
        const next = await loaded(store, stale.id)
        assert.deepEqual([next.version, next.context], [2, { winner: true }])
        await store.commit(next)
        assert.equal((await loaded(store, stale.id)).version, 3)
      },
    },
    {
      title: 'of many first commits of one id exactly one wins, the others conflict',
      reports: ['B74'],
      weaknesses: [8, 12],
      async run({ store, ns }) {
        const rivals = Array.from({ length: 8 }, (_, n) => execution(ns, 'e', { context: { n } }))
        const outcomes = await Promise.allSettled(rivals.map((rival) => store.commit(rival, everything(ns, 'e'))))
        const winners = rivals.filter((_, n) => outcomes[n]?.status === 'fulfilled')
        assert.equal(winners.length, 1)
        assert.deepEqual((await loaded(store, `${ns}e`)).context, winners[0]?.context)
        for (const [n, outcome] of outcomes.entries()) {
          if (outcome.status === 'fulfilled') continue
          await conflict(() => Promise.reject(outcome.reason), `${ns}e`, 0, 1)
          assert.equal(rivals[n]?.version, 0)
        }
      },
    },
    ...residueChecks,
    {
      title: 'a refused commit takes no index of the trace',
      weaknesses: [30],
      async run({ store, ns }) {
        const held = await stored(store, ns, 'e', {}, { trace: { n: 0 } })
        const stale = { ...structuredClone(held), version: 0 }
        await conflict(() => store.commit(stale, { trace: { lost: true } }), held.id, 0, 1)
        await store.commit(held, { trace: { n: 1 } })
        assert.deepEqual(await store.readTrace(held.id), [
          { n: 0, index: 0 },
          { n: 1, index: 1 },
        ])
      },
    },
    {
      title: 'a refused first commit leaves nothing under its id',
      async run(context) {
        const { store, ns } = context
        const before = await stateOf(context, [`${ns}e`], [`${ns}e-ev`])
        const held = execution(ns, 'e', { version: 1 })
        await conflict(() => store.commit(held, everything(ns, 'e')), held.id, 1, null)
        assert.deepEqual(await stateOf(context, [`${ns}e`], [`${ns}e-ev`]), before)
      },
    },
    {
      title: 'a context that cannot be stored changes nothing, and once mended the same object commits',
      reports: ['B99'],
      weaknesses: [13],
      async run(context) {
        const { store, ns } = context
        const held = await stored(store, ns)
        const before = await stateOf(context, [held.id], [`${ns}e-ev`])
        held.context = { n: Number.POSITIVE_INFINITY }
        await rejection(() => store.commit(held, everything(ns, 'e')), NotSerializable)
        assert.equal(held.version, 1)
        held.context = {}
        assert.deepEqual(await stateOf(context, [held.id], [`${ns}e-ev`]), before)
        held.context = { n: 1 }
        await store.commit(held)
        assert.deepEqual((await loaded(store, held.id)).context, { n: 1 })
      },
    },
    ...unstorableChecks,
  ],
}

/** Compare-and-set, conflicts, and that a refused commit changes nothing. */
export const assertCommit = assertionOf(commitContract)
