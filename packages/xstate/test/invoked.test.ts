/** What machines invoke that is no machine, and what they can see of each other. */
import { setTimeout as sleep } from 'node:timers/promises'
import { type ExecutionStore, StoreUnavailable } from '@harel/store-base'
import { ActorNotRestorable, InvalidMachine } from '@harel/xstate'
import { expect, test } from 'vitest'
import {
  type ActorLogic,
  type AnyActorRef,
  assign,
  type EventObject,
  fromCallback,
  fromObservable,
  fromPromise,
  fromTransition,
  type Snapshot,
  sendTo,
  setup,
} from 'xstate'
import { contextOf, keepRunning, openStore, runnerOn, stored, until, withMethods } from './helpers.js'

type Any = { type: string; [key: string]: unknown }
const anyEvent = { types: { events: {} as Any } }

/** Keeps what it gets. */
const got = assign<{ got: unknown[] }, Any, undefined, Any, never>({
  got: ({ context, event }) => {
    const { snapshot, error, output, n } = event as { snapshot?: { context?: unknown }; [key: string]: unknown }
    return [...context.got, snapshot?.context ?? (error as Error | undefined)?.message ?? output ?? n ?? null]
  },
})
const types = { ...anyEvent.types, context: {} as { got: unknown[] } }

const gotBy = async (store: Parameters<typeof contextOf>[0], id: string) =>
  ((await contextOf(store, id)) as { got: unknown[] }).got

const inner = setup({ ...anyEvent }).createMachine({
  id: 'inner',
  context: { n: 0 },
  on: { INC: { actions: assign({ n: ({ context }) => context.n + 1 }) } },
})

test('what a callback says after its runner was closed and another has taken it up is heard like what it said before', async () => {
  let say = (_n: number): void => {}
  let runs = 0
  const mouth = fromCallback(({ sendBack }) => {
    runs += 1
    say = (n) => sendBack({ type: 'SAID', n })
  })
  const machine = setup({ types, actors: { mouth } }).createMachine({
    id: 'ear',
    context: { got: [] },
    invoke: { src: 'mouth' },
    on: { SAID: { actions: got } },
  })
  const store = await openStore()
  for (let run = 1; run <= 3; run++) {
    await using runner = runnerOn(store, { machines: [machine], grace: 0.1, maxPause: 0.1 })
    const abort = new AbortController()
    const running = runner.run({ signal: abort.signal })
    if (run === 1) await runner.create('ear', { id: 'e' })
    await until(() => runs === run)
    say(run)
    await until(async () => (await gotBy(store, 'e')).length === run)
    abort.abort()
    await running
  }
  expect(await gotBy(store, 'e')).toEqual([1, 2, 3])
})

test('a machine that watches a reducer, a logic of your own or an observable hears of each of its steps (onSnapshot)', async () => {
  const sum = fromTransition((state: number, { type }: EventObject) => state + type.length, 0)
  const own: ActorLogic<Snapshot<unknown> & { context: number }, EventObject> = {
    getInitialSnapshot: () => ({ status: 'active', output: undefined, error: undefined, context: 5 }),
    transition: (snapshot, { type }) =>
      type === 'LAST'
        ? { ...snapshot, status: 'done', output: 'last', error: undefined }
        : { ...snapshot, context: snapshot.context * 2 },
    getPersistedSnapshot: (snapshot) => snapshot,
  }
  const counts = fromObservable(() => ({
    subscribe(observer: unknown) {
      ;(observer as { next(value: number): void }).next(7)
      return { unsubscribe() {} }
    },
  }))
  const watching = (src: 'sum' | 'own' | 'counts') => ({
    invoke: { src, id: src, onSnapshot: { actions: got }, onDone: { actions: got } },
    on: { '*': { actions: sendTo(src, ({ event }) => event) } },
  })
  const { createMachine } = setup({ types, actors: { sum, own, counts } })
  const machine = createMachine({
    id: 'watcher',
    context: { got: [] },
    initial: 'none',
    states: {
      none: { on: { SUM: 'sum', OWN: 'own', COUNTS: 'counts' } },
      sum: watching('sum'),
      own: watching('own'),
      counts: watching('counts'),
    },
  })
  const store = await openStore()
  const runner = runnerOn(store, { machines: [machine] })
  const told = async (id: string, events: string[]) => {
    await runner.create('watcher', { id })
    for (const type of events) {
      await runner.send(id, { type })
      await runner.settled()
    }
    return gotBy(store, id)
  }
  expect(await told('s', ['SUM', 'ONE', 'THREE'])).toEqual([0, 3, 8])
  expect(await told('o', ['OWN', 'TWICE', 'LAST'])).toEqual([5, 10, 'last'])
  expect(await stored(store, 'o:own')).toMatchObject({ status: 'DONE' })
  await told('c', ['COUNTS'])
  await until(async () => (await gotBy(store, 'c')).length === 2)
  expect(await gotBy(store, 'c')).toEqual([null, 7])
})

test('what a reducer throws, at its start or with an event, is the error of onError', async () => {
  const atStart = fromTransition(
    (state: number) => state,
    () => {
      throw new Error('no start')
    },
  )
  const withEvent = fromTransition((_: number, { type }: EventObject) => {
    throw new Error(`no ${type}`)
  }, 0)
  const machine = setup({ types, actors: { atStart, withEvent } }).createMachine({
    id: 'thrower',
    context: { got: [] },
    invoke: [
      { src: 'atStart', onError: { actions: got } },
      { src: 'withEvent', id: 'w', onError: { actions: got } },
    ],
    on: { GO: { actions: sendTo('w', { type: 'GO' }) } },
  })
  const store = await openStore()
  const runner = runnerOn(store, { machines: [machine] })
  await runner.create('thrower', { id: 't' })
  await runner.settled()
  await runner.send('t', { type: 'GO' })
  await runner.settled()
  expect(await gotBy(store, 't')).toEqual(['no start', 'no GO'])
  expect(await stored(store, 't:w')).toMatchObject({ status: 'DONE', outcome: 'error' })
})

test('what a callback says and JSON does not carry ends it with an error that names the path, and holds up nothing', async () => {
  let stopped = false
  const mouth = fromCallback(({ sendBack }) => {
    sendBack({ type: 'SAID', n: 1 })
    sendBack({ type: 'SAID', n: new Date(0) })
    sendBack({ type: 'SAID', n: 2 })
    return () => {
      stopped = true
    }
  })
  const machine = setup({ types, actors: { mouth } }).createMachine({
    id: 'ear',
    context: { got: [] },
    invoke: { src: 'mouth', onError: { actions: got } },
    on: { SAID: { actions: got } },
  })
  const store = await openStore()
  const runner = runnerOn(store, { machines: [machine] })
  await runner.create('ear', { id: 'e' })
  await until(() => stopped, 2)
  await runner.settled()
  expect(await gotBy(store, 'e')).toEqual([1, expect.stringContaining('event SAID.n')])
})

test('the state of another execution is not at hand: whoever reads it is refused, and nothing is written', async () => {
  const machine = setup({
    types: { ...types, context: {} as { ref: AnyActorRef; n: unknown } },
    actors: { inner },
  }).createMachine({
    id: 'reader',
    context: ({ spawn }) => ({ ref: spawn('inner', { id: 'i' }), n: null }),
    on: {
      READ: { actions: assign({ n: ({ context }) => context.ref.getSnapshot().context.n }) },
      STOP: { actions: ({ self }) => void self.getSnapshot().value },
    },
  })
  const store = await openStore()
  const runner = runnerOn(store, { machines: [machine] })
  const { version } = await runner.create('reader', { id: 'r' })
  await expect(runner.send('r', { type: 'READ' })).rejects.toThrow(ActorNotRestorable)
  await expect(runner.send('r', { type: 'READ' })).rejects.toThrow(
    'actor "i" of "r:i": has its context in an execution',
  )
  expect((await stored(store, 'r')).version).toBe(version)
  await runner.send('r', { type: 'STOP' })
})

test('actors with a systemId are found by the machine that has started them; others are refused, not given nothing', async () => {
  const seeker = setup(anyEvent).createMachine({
    id: 'seeker',
    on: { GO: { actions: sendTo(({ system }) => system.get('boss'), { type: 'INC' }) } },
  })
  const voice = fromCallback(({ receive, system }) => receive(() => system.get('boss').send({ type: 'INC' })))
  const machine = setup({ types, actors: { inner, seeker, voice } }).createMachine({
    id: 'team',
    context: { got: [] },
    invoke: [
      { src: 'inner', id: 'i', systemId: 'boss' },
      { src: 'seeker', id: 's' },
      { src: 'voice', id: 'v', onError: { actions: got } },
    ],
    on: {
      GO: { actions: sendTo(({ system }) => system.get('boss'), { type: 'INC' }) },
      SAY: { actions: sendTo('v', { type: 'SAY' }) },
    },
  })
  const store = await openStore()
  const runner = runnerOn(store, { machines: [machine] })
  await runner.create('team', { id: 't' })
  await runner.settled()
  await runner.send('t', { type: 'GO' })
  await runner.settled()
  expect(await contextOf(store, 't:i')).toEqual({ n: 1 })
  await expect(runner.send('t:s', { type: 'GO' })).rejects.toThrow(ActorNotRestorable)
  await runner.send('t', { type: 'SAY' })
  await until(async () => (await gotBy(store, 't')).length === 1)
  expect(await gotBy(store, 't')).toEqual([expect.stringContaining('actor "boss" of "t:v": is no child of its own')])
})

test('a machine inside other logic is refused, as an actor and as a machine of the runner', async () => {
  // Without its prototype it is no machine any more, as when somebody has put a `transition` of his own around it.
  const undoable = Object.assign({}, inner)
  const machine = setup({ actors: { undoable } }).createMachine({ id: 'editor', invoke: { src: 'undoable' } })
  const store = await openStore()
  const runner = runnerOn(store, { machines: [machine] })
  await expect(runner.create('editor', { id: 'e' })).rejects.toThrow(ActorNotRestorable)
  expect(await store.load('e')).toBeUndefined()
  expect(() => runnerOn(store, { machines: [undoable] })).toThrow(InvalidMachine)
})

test('no more than maxInvoked run at once, however many are started, and those that wait run as soon as there is room', async () => {
  let running = 0
  let most = 0
  const work = fromPromise(async () => {
    running += 1
    most = Math.max(most, running)
    await sleep(5)
    running -= 1
  })
  const machine = setup({ actors: { work } }).createMachine({
    id: 'worker',
    initial: 'a',
    states: { a: { invoke: { src: 'work', onDone: 'b' } }, b: { type: 'final' } },
  })
  const store = await openStore()
  const runner = runnerOn(store, { machines: [machine], maxInvoked: 2 })
  keepRunning(runner)
  const ids = Array.from({ length: 60 }, (_, n) => `w${n}`)
  await Promise.all(ids.map((id) => runner.create('worker', { id })))
  await until(async () =>
    (await Promise.all(ids.map((id) => stored(store, id)))).every(({ status }) => status === 'DONE'),
  )
  expect(most).toBe(2)
  expect(runner.warnings).toEqual([])
})

/** A promise on a store that takes no end of it while it is said so. */
async function promiseOnBusyStore() {
  const base = await openStore()
  const state = { runs: 0, refused: 0, busy: true }
  const commit: ExecutionStore['commit'] = async (execution, changes) => {
    if (!state.busy || execution.definitionId !== 'harel.invoked' || execution.status !== 'DONE') {
      return base.commit(execution, changes)
    }
    state.refused += 1
    throw new StoreUnavailable('away for a moment')
  }
  const charge = fromPromise(async () => {
    state.runs += 1
    return 'receipt'
  })
  const machine = setup({ actors: { charge } }).createMachine({
    id: 'payer',
    initial: 'paying',
    states: { paying: { invoke: { src: 'charge', onDone: 'paid', onError: 'unpaid' } }, paid: {}, unpaid: {} },
  })
  const runner = runnerOn(withMethods(base, { commit }), { machines: [machine], maxAttempts: 1 })
  await runner.create('payer', { id: 'p' })
  return { base, state, runner }
}

test('a result that the store does not take at once is told until it does, however few attempts a promise has', async () => {
  const { base, state, runner } = await promiseOnBusyStore()
  keepRunning(runner)
  await until(() => state.refused === 4)
  state.busy = false
  await until(async () => (await stored(base, 'p')).activePath === 'paid')
  expect(state.runs).toBe(1)
  expect(runner.warnings).toEqual(['what p:0.payer.paying has said could not be told, and will be told again'])
})

test('a result that cannot be told does not keep a runner from closing, and is found by the next', async () => {
  const { base, state, runner } = await promiseOnBusyStore()
  await until(() => state.refused > 0)
  const start = performance.now()
  await runner.close()
  expect(performance.now() - start).toBeLessThan(4000)
  expect((await base.load('p:0.payer.paying'))?.context.xstate).toMatchObject({ owner: null, attempt: 0 })
})
