/** The main guarantees, on every store that needs a server or a driver of its own. */
import { setTimeout as sleep } from 'node:timers/promises'
import { type ExecutionStore, newEvent, newExecution } from '@harel/store-base'
import { currentEffect, execution } from '@harel/xstate'
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { assign, fromPromise, sendTo, setup } from 'xstate'
import { contextOf, keepRunning, placeOf, runnerOn, stored, until } from './helpers.js'
import { openShared } from './programs/stores.js'

/** The first time on a machine, a server may have to be compiled. In milliseconds. */
const INSTALLATION = 1_800_000

const FAST = { lease: 1, grace: 0.3, maxPause: 0.3 }

const counter = setup({
  types: { context: {} as { n: number }, events: {} as { type: 'INC' } | { type: 'END' } },
}).createMachine({
  id: 'counter',
  context: { n: 0 },
  initial: 'counting',
  states: {
    counting: { on: { INC: { actions: assign({ n: ({ context }) => context.n + 1 }) }, END: 'ended' } },
    ended: { type: 'final' },
  },
})

const child = setup({}).createMachine({
  id: 'child',
  initial: 'waiting',
  states: { waiting: { after: { 50: 'done' } }, done: { type: 'final' } },
  output: { from: 'child' },
})

/** A promise that fails at first, a child with a delay, and an event for the execution `c`. */
const orderCharging = (charge: (attempt: number) => Promise<string>) =>
  setup({
    types: { context: {} as { attempts: number; receipt: string | null; child: unknown } },
    actors: { child, charge: fromPromise(({ input }: { input: number }) => charge(input)) },
  }).createMachine({
    id: 'order',
    context: { attempts: 0, receipt: null, child: null },
    initial: 'charging',
    states: {
      charging: {
        entry: assign({ attempts: ({ context }) => context.attempts + 1 }),
        invoke: {
          src: 'charge',
          input: ({ context }) => context.attempts,
          onDone: { target: 'shipping', actions: assign({ receipt: ({ event }) => event.output }) },
          onError: 'refused',
        },
      },
      refused: { after: { 20: 'charging' } },
      shipping: {
        invoke: {
          src: 'child',
          id: 'child',
          onDone: { target: 'done', actions: assign({ child: ({ event }) => event.output }) },
        },
      },
      done: { type: 'final', entry: sendTo(() => execution('c'), { type: 'INC' }) },
    },
  })

describe.each(['libsql-file', 'libsql', 'rqlite', 'postgres', 'redis', 'mongo', 'dynamodb'] as const)(
  'on %s',
  (kind) => {
    let place: Awaited<ReturnType<typeof placeOf>> | undefined
    beforeAll(async () => {
      place = await placeOf(kind)
    }, INSTALLATION)
    afterAll(async () => {
      await place?.remove()
    })
    beforeEach(({ skip }) => {
      if (place?.reason !== undefined) skip(place.reason)
    })

    let prefixes = 0
    /** As many stores on one new prefix. */
    const openStores = async (count: number): Promise<[ExecutionStore, ...ExecutionStore[]]> => {
      const shared = { kind, address: place?.address ?? '', prefix: `test${++prefixes}` }
      const open = async () => {
        const store = await openShared(shared)
        onTestFinished(() => store.close())
        return store
      }
      // One after the other: the first one makes the tables.
      const first = await open()
      const others = await Promise.all(Array.from({ length: count - 1 }, open))
      return [first, ...others]
    }

    const isIdle = async (store: ExecutionStore): Promise<boolean> => {
      const [outbox, spawns, timers] = await Promise.all([
        store.pendingOutbox(),
        store.pendingSpawns(),
        store.dueTimers(1e12),
      ])
      return outbox.length + spawns.length + timers.length === 0
    }

    test('a machine with a child, a delay and a promise that fails comes to its end, leaves nothing, and is purged whole', async () => {
      const [store] = await openStores(1)
      const keys: string[] = []
      const order = orderCharging(async (attempt) => {
        keys.push(currentEffect().idempotencyKey)
        if (attempt === 1) throw new Error('the bank has refused the card')
        return `receipt ${attempt}`
      })
      const runner = runnerOn(store, { machines: [order, counter], trace: true, ...FAST })
      keepRunning(runner)
      await runner.create('counter', { id: 'c' })
      await runner.create('order', { id: 'o' })
      await until(async () => (await stored(store, 'o')).status === 'DONE')
      await until(() => isIdle(store))
      expect(await contextOf(store, 'o')).toEqual({ attempts: 2, receipt: 'receipt 2', child: { from: 'child' } })
      expect(await contextOf(store, 'c')).toEqual({ n: 1 })
      expect(new Set(keys).size).toBe(2)
      expect((await store.readTrace('o')).map(({ to_path }) => to_path)).toEqual([
        ...['charging', 'refused', 'charging', 'shipping', 'done'],
      ])
      expect(await runner.purge('o')).toBe(true)
      expect(await store.idsWithPrefix('o')).toEqual([])
      expect(runner.warnings).toEqual([])
    })

    test('events that several runners send at once are all handled, and one of them that is sent by each, once', async () => {
      const stores = await openStores(3)
      const runners = stores.map((store) => runnerOn(store, { machines: [counter], maxConflicts: 100 }))
      await runners[0]?.create('counter', { id: 'c' })
      const sent = runners.flatMap((runner) =>
        ['same', 'one', 'two', 'three'].map(async (name) => {
          const eventId = name === 'same' ? name : `${name} ${runners.indexOf(runner)}`
          return (await runner.send('c', { type: 'INC' }, { eventId })).outcome
        }),
      )
      const outcomes = await Promise.all(sent)
      expect(outcomes.filter((outcome) => outcome === 'duplicate')).toHaveLength(2)
      expect(await contextOf(stores[0], 'c')).toEqual({ n: 10 })
      expect(await stored(stores[0], 'c')).toMatchObject({ version: 11 })
    })

    test('events, children and timers that a dead process has left behind are carried on once, by several that are idle', async () => {
      const stores = await openStores(3)
      const [store] = stores
      const dead = runnerOn(store, { machines: [counter, child] })
      await dead.create('counter', { id: 'c' })
      await dead.create('child', { id: 'late' })
      await dead.close()
      const at = Date.now() / 1000 - 10
      await store.commit(newExecution({ id: 'p', definitionId: 'other' }), {
        emits: Array.from({ length: 5 }, () => ({ targetId: 'c', event: newEvent({ kind: 'INC' }) })),
        spawns: Array.from({ length: 5 }, (_, n) => ({
          childId: `p:${n}`,
          rootPath: '',
          context: { xstate: { definitionId: 'child', version: '1', src: 'child', actorId: `${n}`, sync: false, at } },
        })),
      })
      for (const each of stores) keepRunning(runnerOn(each, { machines: [counter, child], ...FAST }))
      // What the children tell their parent is for a machine that nobody knows.
      await until(async () => {
        const [spawns, timers, late] = await Promise.all([
          store.pendingSpawns(),
          store.dueTimers(1e12),
          store.load('late'),
        ])
        return spawns.length + timers.length === 0 && late?.status === 'DONE'
      })
      await until(async () => (await store.pendingOutbox()).every(({ targetId }) => targetId === 'p'))
      expect(await contextOf(store, 'c')).toEqual({ n: 5 })
      for (const id of ['late', 'p:0', 'p:4'])
        expect(await stored(store, id)).toMatchObject({ status: 'DONE', version: 2 })
    })

    test('suspended, it keeps what it is sent until it is resumed; terminated, it is CANCELLED and has no timer', async () => {
      const [store] = await openStores(1)
      const runner = runnerOn(store, { machines: [counter, child] })
      await runner.create('counter', { id: 'c' })
      await runner.suspend('c')
      expect((await runner.send('c', { type: 'INC' })).outcome).toBe('deferred')
      expect(await runner.resume('c')).toMatchObject({ status: 'RUNNING' })
      await runner.settled()
      expect(await contextOf(store, 'c')).toEqual({ n: 1 })
      await runner.create('child', { id: 'k' })
      expect(await runner.terminate('k')).toMatchObject({ status: 'CANCELLED' })
      expect(await store.dueTimers(1e12)).toEqual([])
      await runner.send('c', { type: 'END' })
      await sleep(5)
      expect(await runner.purgeFinished({ olderThan: 0 })).toMatchObject({ purged: ['c', 'k'], nextCursor: null })
    })
  },
)
