import assert from 'node:assert/strict'
import {
  type CommitChanges,
  type Execution,
  type JsonObject,
  NotSerializable,
  newEvent,
  newExecution,
  STATUSES,
  StoreConflict,
} from '@harel/store-base'
import * as fc from 'fast-check'
import { byBytes } from '../fixtures.js'
import type { Reference } from './reference.js'
import {
  assertListing,
  assertOutbox,
  assertSpawns,
  assertTimers,
  commit,
  DEFINITIONS,
  hold,
  storeOf,
  type World,
} from './world.js'

/** Few, so that they meet; alike, so that they are mixed up where they can be. */
export const NAMES = ['a', 'a:b', 'A', 'a_', 'a%', 'é', 'e\u0301', '😀', '\uffff'] as const
const EVENTS = ['ev', 'EV', 'ev '] as const
const PATHS = ['P', 'p', 'P.Q', '$'] as const
const TIMES = [-1, 0, 0.1 + 0.2, 0.3, 1, 2, 10, 1e18] as const
const LIMITS = [1, 2, 3, 10, 1000] as const

type Command = fc.AsyncCommand<Reference, World>

/** A command that can always be run; its arguments are shown when it is a part of a failing sequence. */
const command = <A>(
  name: string,
  args: fc.Arbitrary<A>,
  run: (model: Reference, world: World, args: A) => Promise<unknown>,
): fc.Arbitrary<Command> =>
  args.map((values) => ({
    check: () => true,
    run: async (model, world) => {
      await run(model, world, values)
    },
    toString: () => `${name}(${fc.stringify(values)})`,
  }))

const handle = fc.nat(1)
const name = fc.constantFrom(...NAMES)
const event = fc.constantFrom(...EVENTS)
const limit = fc.constantFrom(...LIMITS)
const json = fc.jsonValue({ maxDepth: 2 }).map((value) => ({ value }) as JsonObject)

const fields = fc.record({
  definitionId: fc.constantFrom(...DEFINITIONS),
  status: fc.constantFrom(...STATUSES),
  parentId: fc.option(name),
  outcome: fc.option(fc.constantFrom('', 'done', '\0')),
  activePath: fc.option(fc.constantFrom(...PATHS)),
  finishedAt: fc.option(fc.constantFrom(...TIMES)),
  context: json,
})

const changes = fc.record(
  {
    emits: fc.array(fc.record({ target: fc.option(name), data: json }), { maxLength: 3 }),
    processed: event,
    timers: fc.array(
      fc.record({
        action: fc.constantFrom('schedule' as const, 'schedule' as const, 'cancel' as const),
        path: fc.constantFrom(...PATHS),
        fireAt: fc.constantFrom(...TIMES),
      }),
      { maxLength: 3 },
    ),
    spawns: fc.array(fc.record({ rootPath: fc.constantFrom('', 'R'), context: json }), { maxLength: 2 }),
    trace: json,
  },
  { requiredKeys: [], noNullPrototype: true },
)

type ValueOf<A> = A extends fc.Arbitrary<infer Value> ? Value : never
type Fields = ValueOf<typeof fields>
type Changes = ValueOf<typeof changes>

const executionOf = ({ ns }: World, { definitionId, parentId, ...rest }: Fields): Partial<Execution> => ({
  ...rest,
  definitionId: ns + definitionId,
  parentId: parentId === null ? null : ns + parentId,
})

const changesOf = (world: World, { emits, processed, timers, spawns, trace }: Changes): CommitChanges => ({
  ...(emits && {
    emits: emits.map(({ target, data }) => ({
      targetId: target === null ? null : world.ns + target,
      event: newEvent({ id: `${world.ns}${world.next()}`, kind: 'K', data }),
    })),
  }),
  ...(processed && { processedEventId: processed }),
  ...(timers && {
    timers: timers.map(({ action, path, fireAt }) =>
      action === 'cancel' ? { action, path } : { action, path, fireAt },
    ),
  }),
  ...(spawns && { spawns: spawns.map((spawn) => ({ childId: `${world.ns}${world.next()}`, ...spawn })) }),
  ...(trace && { trace }),
})

/** One of the held copies, or a new execution where none is held. */
const heldOf = ({ held, ns }: World, pick: number): Execution =>
  structuredClone(held[pick % held.length] ?? newExecution({ id: `${ns}a`, definitionId: `${ns}d1` }))

export const commands: fc.Arbitrary<Command>[] = [
  command('create', fc.record({ handle, name, fields, changes }), (model, world, { handle, name, fields, changes }) => {
    const created = newExecution({ id: world.ns + name, definitionId: '', ...executionOf(world, fields) })
    return commit(model, world, handle, created, changesOf(world, changes))
  }),
  command(
    'commit',
    fc.record({ handle, pick: fc.nat(11), fields, changes }),
    (model, world, { handle, pick, fields, changes }) => {
      const next = { ...heldOf(world, pick), ...executionOf(world, fields) }
      return commit(model, world, handle, next, changesOf(world, changes))
    },
  ),
  command('goOn', fc.record({ handle, name, changes }), async (model, world, { handle, name, changes }) => {
    const current = await storeOf(world, handle).load(world.ns + name)
    if (current !== undefined) await commit(model, world, 1 - handle, current, changesOf(world, changes))
  }),
  command('race', fc.record({ name, fields, changes }), async (model, world, { name, fields, changes }) => {
    const held =
      model.executions.get(world.ns + name) ?? newExecution({ id: world.ns + name, definitionId: `${world.ns}d1` })
    const rivals = [0, 1].map((n) => ({
      execution: { ...structuredClone(held), ...executionOf(world, fields), processedEvents: n },
      changes: changesOf(world, changes),
    }))
    const outcomes = await Promise.allSettled(
      rivals.map(({ execution, changes }, n) => storeOf(world, n).commit(execution, changes)),
    )
    for (const [n, outcome] of outcomes.entries()) {
      const rival = rivals[n]
      assert(rival !== undefined)
      if (outcome.status === 'rejected') {
        assert(outcome.reason instanceof StoreConflict, String(outcome.reason))
        assert.equal(rival.execution.version, held.version)
      } else {
        assert(model.accepts(held.id, rival.execution.version - 1), 'both of two rivals win')
        model.commit(rival.execution, rival.changes, outcome.value)
        hold(world, rival.execution)
      }
    }
    assert.equal(outcomes.filter(({ status }) => status === 'fulfilled').length, 1)
  }),
  command('refused', fc.record({ handle, pick: fc.nat(11), changes }), async (_, world, { handle, pick, changes }) => {
    const bad = { ...heldOf(world, pick), context: { n: Number.NaN } }
    const version = bad.version
    await assert.rejects(storeOf(world, handle).commit(bad, changesOf(world, changes)), NotSerializable)
    assert.equal(bad.version, version)
  }),
  command('load', fc.record({ handle, name }), async (model, world, { handle, name }) => {
    const found = await storeOf(world, handle).load(world.ns + name)
    assert.deepEqual(found, model.executions.get(world.ns + name))
    if (found !== undefined) hold(world, found)
  }),
  command('loadForEvent', fc.record({ handle, name, event }), async (model, world, { handle, name, event }) => {
    const id = world.ns + name
    const expected = model.executions.get(id)
    assert.deepEqual(await storeOf(world, handle).loadForEvent(id, event), {
      execution: expected,
      processed: expected !== undefined && model.isProcessed(id, event),
    })
  }),
  command('isProcessed', fc.record({ handle, name, event }), async (model, world, { handle, name, event }) => {
    const id = world.ns + name
    assert.equal(await storeOf(world, handle).isProcessed(id, event), model.isProcessed(id, event))
  }),
  command('readTrace', fc.record({ handle, name }), async (model, world, { handle, name }) => {
    const id = world.ns + name
    assert.deepEqual(await storeOf(world, handle).readTrace(id), model.traces.get(id)?.steps ?? [])
  }),
  command('appendTrace', fc.record({ handle, name, step: json }), async (model, world, { handle, name, step }) => {
    await storeOf(world, handle).appendTrace(world.ns + name, step)
    model.appendTrace(world.ns + name, step)
  }),
  command('pendingOutbox', fc.record({ handle, limit }), (model, world, { handle, limit }) =>
    assertOutbox(model, world, storeOf(world, handle), limit),
  ),
  command('ackOutbox', fc.record({ handle, picks: fc.array(fc.nat(9)) }), async (model, world, { handle, picks }) => {
    const entries = [...model.events.entries()].filter((_, index) => picks.includes(index))
    await storeOf(world, handle).ackOutbox(entries.map(([, { seq }]) => seq))
    for (const [id] of entries) model.events.delete(id)
  }),
  command('pendingSpawns', fc.record({ handle, limit }), (model, world, { handle, limit }) =>
    assertSpawns(model, world, storeOf(world, handle), limit),
  ),
  command('ackSpawn', fc.record({ handle, picks: fc.array(fc.nat(9)) }), async (model, world, { handle, picks }) => {
    const queued = await assertSpawns(model, world, storeOf(world, handle), 1000)
    const acked = queued.filter((_, index) => picks.includes(index))
    await storeOf(world, 1 - handle).ackSpawn(acked.map(({ seq }) => seq))
    for (const { childId } of acked) model.children.delete(childId)
  }),
  command(
    'dueTimers',
    fc.record({ handle, now: fc.constantFrom(...TIMES), limit }),
    (model, world, { handle, now, limit }) => assertTimers(model, world, storeOf(world, handle), now, limit),
  ),
  command(
    'deleteTimer',
    fc.record({ handle, name, path: fc.constantFrom(...PATHS), fireAt: fc.constantFrom(...TIMES) }),
    async (model, world, { handle, name, path, fireAt }) => {
      await storeOf(world, handle).deleteTimer(world.ns + name, path, fireAt)
      model.deleteTimer({ executionId: world.ns + name, path, fireAt })
    },
  ),
  command(
    'listExecutions',
    fc.record({
      handle,
      limit,
      definition: fc.constantFrom(...DEFINITIONS),
      filter: fc.record(
        {
          status: fc.oneof(fc.constantFrom(...STATUSES), fc.array(fc.constantFrom(...STATUSES), { maxLength: 3 })),
          rootsOnly: fc.boolean(),
        },
        { requiredKeys: [], noNullPrototype: true },
      ),
    }),
    (model, world, { handle, limit, definition, filter }) =>
      assertListing(model, storeOf(world, handle), { ...filter, definitionId: world.ns + definition, limit }),
  ),
  command('idsWithPrefix', fc.record({ handle, name }), async (model, world, { handle, name }) => {
    const found = await storeOf(world, handle).idsWithPrefix(world.ns + name)
    const expected = [...model.executions.keys()].filter((id) => id.startsWith(world.ns + name))
    assert.deepEqual(found.toSorted(byBytes), expected.sort(byBytes))
  }),
  command('publishDefinition', fc.record({ handle, name, json }), async (model, world, { handle, name, json }) => {
    const record = { id: world.ns + name, version: '1', definition: json }
    assert.deepEqual(await storeOf(world, handle).publishDefinition(record), model.publish(record))
    const stored = await storeOf(world, 1 - handle).loadDefinition(record.id, '1')
    assert.deepEqual(stored, model.publish(record))
  }),
  command(
    'purge',
    fc.record({ handle, name, stale: fc.constantFrom(0, 0, 0, 1) }),
    async (model, world, { handle, name, stale }) => {
      const version = (model.versionOf(world.ns + name) ?? 1) + stale
      const purged = await storeOf(world, handle).purge(world.ns + name, version)
      assert.equal(purged, model.purge(world.ns + name, version))
    },
  ),
  command('reopen', handle, (_model, world, handle) => world.reopen(handle)),
]
