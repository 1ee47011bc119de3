import { setTimeout as sleep } from 'node:timers/promises'
import { newEvent, newExecution } from '@harel/store-base'
import { execution } from '@harel/xstate'
import { describe, expect, onTestFinished, test } from 'vitest'
import {
  type AnyActorRef,
  assign,
  cancel,
  createMachine,
  emit,
  enqueueActions,
  forwardTo,
  fromCallback,
  fromObservable,
  fromPromise,
  fromTransition,
  log,
  raise,
  sendParent,
  sendTo,
  setup,
  spawnChild,
  stopChild,
} from 'xstate'
import { contextOf, keepRunning, openStore, runnerOn, stored, stores, sweepUp, TestClock, until } from './helpers.js'

/** Takes events of any type. */
const anyEvent = { types: { events: {} as { type: string; [key: string]: unknown } } }

describe.each(stores)('on $name', ({ open }) => {
  /** A runner at work on an empty store. */
  const at = async <const M extends Parameters<typeof runnerOn>[1]['machines']>(
    machines: M,
    options: Partial<Parameters<typeof runnerOn>[1]> = {},
  ) => {
    const store = await openStore(open)
    const runner = runnerOn(store, { grace: 0.2, maxPause: 0.2, ...options, machines })
    keepRunning(runner)
    return { store, runner }
  }

  test('a delayed transition fires when it is due, is cancelled when its state is left, and leaves no timer (weakness 50)', async () => {
    const machine = setup(anyEvent).createMachine({
      id: 'delayed',
      initial: 'a',
      states: { a: { after: { 30: 'b' } }, b: { on: { GO: 'c' }, after: { 100000: 'a' } }, c: { type: 'final' } },
    })
    const { store, runner } = await at([machine])
    await runner.create('delayed', { id: 'd' })
    await until(async () => (await stored(store, 'd')).activePath === 'b')
    await runner.send('d', { type: 'GO' })
    expect(await stored(store, 'd')).toMatchObject({ status: 'DONE', outcome: 'c' })
    expect(await store.dueTimers(1e12)).toEqual([])
  })

  test('a delay of any length is kept to the millisecond: none is cut to what a timer of Node takes (B81)', async () => {
    const store = await openStore(open)
    const clock = new TestClock()
    const overflows: Error[] = []
    const note = (warning: Error) => void overflows.push(warning)
    process.on('warning', note)
    onTestFinished(() => void process.off('warning', note))
    const delays = [2 ** 31, 2 ** 31 - 1, 2 ** 31 - 2, 60 * 86_400_000, 1e14]
    const state = (delay: number, n: number) => ({ after: { [delay]: `s${n + 1}` } })
    const machine = createMachine({
      id: 'slow',
      initial: 's0',
      states: {
        ...Object.fromEntries(delays.map((delay, n) => [`s${n}`, state(delay, n)])),
        [`s${delays.length}`]: {},
      },
    })
    const runner = runnerOn(store, { machines: [machine], clock: clock.read })
    keepRunning(runner)
    await runner.create('slow', { id: 'l' })
    for (const [n, delay] of delays.entries()) {
      const { updatedAt } = await stored(store, 'l')
      const [timer] = await store.dueTimers(1e15)
      expect(timer?.fireAt).toBe((updatedAt ?? 0) + delay / 1000)
      clock.now = (timer?.fireAt ?? 0) - 0.001
      await runner.sweep()
      await sleep(20)
      expect(await stored(store, 'l')).toMatchObject({ activePath: `s${n}` })
      await until(async () => {
        await sweepUp(clock, runner, 1)
        return (await stored(store, 'l')).activePath === `s${n + 1}`
      })
    }
    expect(overflows).toEqual([])
  })

  test('delayed events of one id replace each other, are cancelled by it, and those without one are all sent', async () => {
    const machine = setup({ ...anyEvent, actions: {} }).createMachine({
      id: 'sender',
      context: { got: [] as string[] },
      initial: 'a',
      states: {
        a: {
          entry: [
            raise({ type: 'ONE' }, { delay: 5 }),
            raise({ type: 'TWO' }, { delay: 10 }),
            raise({ type: 'NEVER' }, { delay: 15, id: 'x' }),
            raise({ type: 'THREE' }, { delay: 20, id: 'x' }),
            raise({ type: 'CANCELLED' }, { delay: 15, id: 'y' }),
            cancel('y'),
            sendTo(({ self }) => self, { type: 'FOUR' }, { delay: 25 }),
          ],
          on: { '*': { actions: assign({ got: ({ context, event }) => [...context.got, event.type] }) } },
        },
      },
    })
    const { store, runner } = await at([machine])
    await runner.create('sender', { id: 's' })
    const got = async () => ((await contextOf(store, 's')) as { got: string[] }).got
    await until(async () => (await got()).length === 4)
    expect((await got()).toSorted()).toEqual(['FOUR', 'ONE', 'THREE', 'TWO'])
    expect(await store.dueTimers(1e12)).toEqual([])
  })

  test('parallel states, history and a final state with output are restored from the store with each event (B25)', async () => {
    const machine = setup(anyEvent).createMachine({
      id: 'player',
      initial: 'on',
      states: {
        on: {
          type: 'parallel',
          states: {
            sound: { initial: 'loud', states: { loud: { on: { MUTE: 'mute' } }, mute: {} } },
            tape: {
              initial: 'stopped',
              states: {
                stopped: { on: { PLAY: 'playing' } },
                playing: { initial: 'slow', states: { slow: { on: { FASTER: 'fast' } }, fast: {} } },
              },
            },
            memory: { type: 'history', history: 'deep' },
          },
          on: { OFF: 'off' },
        },
        off: { on: { ON: 'on.memory', BREAK: 'broken' } },
        broken: { type: 'final', output: 'smoke' },
      },
      output: ({ event }) => ({ seen: (event as { output?: unknown }).output }),
    })
    const { store, runner } = await at([machine])
    await runner.create('player', { id: 'p' })
    for (const type of ['MUTE', 'PLAY', 'FASTER', 'OFF']) await runner.send('p', { type })
    expect(await stored(store, 'p')).toMatchObject({
      activePath: 'off',
      history: { 'player.on.memory': ['player.on.sound.mute', 'player.on.tape.playing.fast'] },
    })
    await runner.send('p', { type: 'ON' })
    expect((await runner.snapshot('p')).value).toEqual({ on: { sound: 'mute', tape: { playing: 'fast' } } })
    expect((await stored(store, 'p')).activePath).toBe('on')
    for (const type of ['OFF', 'BREAK']) await runner.send('p', { type })
    expect(await stored(store, 'p')).toMatchObject({ status: 'DONE', outcome: 'broken' })
    expect((await runner.snapshot('p')).output).toEqual({ seen: 'smoke' })
  })

  test('an invoked machine runs as a child, hears its parent, and its output comes back', async () => {
    const child = setup({
      types: { input: {} as { x: number }, context: {} as { x: number }, events: {} as { type: 'ADD'; n: number } },
    }).createMachine({
      id: 'child',
      context: ({ input }) => input,
      initial: 'a',
      states: {
        a: {
          entry: sendParent({ type: 'HELLO' }),
          on: { ADD: { target: 'b', actions: assign({ x: ({ context, event }) => context.x + event.n }) } },
        },
        b: { after: { 10: 'c' } },
        c: { type: 'final' },
      },
      output: ({ context }) => ({ doubled: context.x * 2 }),
    })
    const parent = setup({ ...anyEvent, actors: { child } }).createMachine({
      id: 'parent',
      context: { y: 0 },
      initial: 'waiting',
      states: {
        waiting: {
          invoke: {
            src: 'child',
            id: 'kid',
            input: { x: 20 },
            onDone: {
              target: 'ready',
              actions: assign({ y: ({ event }) => (event.output as { doubled: number }).doubled }),
            },
          },
          on: { HELLO: { actions: sendTo('kid', { type: 'ADD', n: 1 }) } },
        },
        ready: { type: 'final' },
      },
    })
    const { store, runner } = await at([parent])
    await runner.create('parent', { id: 'p' })
    await until(async () => (await stored(store, 'p')).status === 'DONE')
    expect(await contextOf(store, 'p')).toEqual({ y: 42 })
    expect(await stored(store, 'p:kid')).toMatchObject({ status: 'DONE', parentId: 'p', definitionId: 'child' })
    await until(async () => (await store.pendingSpawns()).length === 0 && (await store.pendingOutbox()).length === 0)
  })

  test('a state that is entered again invokes again, and the result of the first time is dropped', async () => {
    const child = setup(anyEvent).createMachine({
      id: 'child',
      initial: 'a',
      states: { a: { on: { END: 'b' } }, b: { type: 'final' } },
    })
    const parent = setup({ ...anyEvent, actors: { child } }).createMachine({
      id: 'parent',
      initial: 'waiting',
      states: {
        waiting: {
          invoke: { src: 'child', id: 'kid', onDone: 'ready' },
          on: { AGAIN: { target: 'waiting', reenter: true } },
        },
        ready: {},
      },
    })
    const { store, runner } = await at([parent])
    await runner.create('parent', { id: 'p' })
    await runner.send('p', { type: 'AGAIN' })
    await runner.settled()
    expect(await stored(store, 'p:kid')).toMatchObject({ status: 'CANCELLED' })
    const late = newEvent({ kind: 'xstate.done.actor.kid', data: { executionId: 'p:kid' } })
    await store.commit(newExecution({ id: 'sender', definitionId: 'other' }), {
      emits: [{ targetId: 'p', event: late }],
    })
    await until(() => store.isProcessed('p', late.id))
    expect(await stored(store, 'p')).toMatchObject({ activePath: 'waiting', children: { 'p:kid#2': { key: 'kid' } } })
    await runner.send('p:kid#2', { type: 'END' })
    await until(async () => (await stored(store, 'p')).activePath === 'ready')
  })

  test('a machine that ends or is stopped takes its children with it, theirs included', async () => {
    const leaf = createMachine({ id: 'leaf', initial: 'a', states: { a: { after: { 100000: 'b' } }, b: {} } })
    const middle = setup({ actors: { leaf } }).createMachine({ id: 'middle', invoke: { src: 'leaf', id: 'leaf' } })
    const root = setup({ ...anyEvent, actors: { middle } }).createMachine({
      id: 'root',
      initial: 'a',
      states: {
        a: { entry: spawnChild('middle', { id: 'm' }), on: { STOP: 'b', END: 'c' } },
        b: { entry: stopChild('m') },
        c: { type: 'final' },
      },
    })
    const { store, runner } = await at([root])
    for (const [id, type] of [
      ['r1', 'STOP'],
      ['r2', 'END'],
    ] as const) {
      await runner.create('root', { id })
      await runner.settled()
      expect(await stored(store, `${id}:m:leaf`)).toMatchObject({ status: 'RUNNING' })
      await runner.send(id, { type })
      await runner.settled()
      for (const child of [`${id}:m`, `${id}:m:leaf`])
        expect(await stored(store, child)).toMatchObject({ status: 'CANCELLED' })
    }
    expect(await store.dueTimers(1e12)).toEqual([])
  })

  test('children spawned in assign are kept by reference, with an id of their own or without', async () => {
    const counter = setup(anyEvent).createMachine({
      id: 'counter',
      context: { n: 0 },
      on: { INC: { actions: assign({ n: ({ context }) => context.n + 1 }) } },
    })
    const root = setup({
      ...anyEvent,
      types: { ...anyEvent.types, context: {} as { named?: AnyActorRef; unnamed: AnyActorRef[] } },
      actors: { counter },
    }).createMachine({
      id: 'root',
      context: { unnamed: [] },
      on: {
        NAMED: { actions: assign({ named: ({ spawn }) => spawn('counter', { id: 'it' }) }) },
        UNNAMED: { actions: assign({ unnamed: ({ context, spawn }) => [...context.unnamed, spawn('counter')] }) },
        INC: {
          actions: enqueueActions(({ context, enqueue }) => {
            if (context.named !== undefined) enqueue.sendTo(context.named, { type: 'INC' })
            for (const ref of context.unnamed) enqueue.sendTo(ref, { type: 'INC' })
          }),
        },
      },
    })
    const { store, runner } = await at([root])
    await runner.create('root', { id: 'r' })
    for (const type of ['NAMED', 'UNNAMED', 'INC', 'UNNAMED', 'INC']) await runner.send('r', { type })
    await runner.settled()
    expect(await contextOf(store, 'r:it')).toEqual({ n: 2 })
    expect(await contextOf(store, 'r:harel.actor.1')).toEqual({ n: 2 })
    expect(await contextOf(store, 'r:harel.actor.2')).toEqual({ n: 1 })
    expect(await contextOf(store, 'r')).toEqual({
      named: { xstate$$type: 1, id: 'r:it' },
      unnamed: [
        { xstate$$type: 1, id: 'r:harel.actor.1' },
        { xstate$$type: 1, id: 'r:harel.actor.2' },
      ],
    })
  })

  test('executions address each other by id and answer by reference; a systemId is found (B25)', async () => {
    const greeter = setup(anyEvent).createMachine({
      id: 'greeter',
      on: {
        HI: {
          actions: sendTo(
            ({ event }) => event.from as AnyActorRef,
            ({ event }) => ({ type: 'ANSWER', to: event.name }),
          ),
        },
      },
    })
    const helper = setup(anyEvent).createMachine({
      id: 'helper',
      on: { ASK: { actions: sendParent({ type: 'HELPED' }) } },
    })
    const asker = setup({ ...anyEvent, actors: { helper } }).createMachine({
      id: 'asker',
      context: { answers: [] as unknown[], helped: 0 },
      invoke: { src: 'helper', id: 'h', systemId: 'help' },
      entry: sendTo(
        () => execution('greeter-1'),
        ({ self }) => ({ type: 'HI', from: self, name: self.id }),
      ),
      on: {
        ANSWER: {
          actions: [
            assign({ answers: ({ context, event }) => [...context.answers, event.to] }),
            ({ system }) => system.get('help')?.send({ type: 'ASK' }),
          ],
        },
        HELPED: { actions: assign({ helped: ({ context }) => context.helped + 1 }) },
      },
    })
    const { store, runner } = await at([greeter, asker])
    await runner.create('greeter', { id: 'greeter-1' })
    await runner.create('asker', { id: 'asker-1' })
    await runner.settled()
    expect(await contextOf(store, 'asker-1')).toEqual({ answers: ['asker-1'], helped: 1 })
  })

  test('a child that wants no more than to be watched tells of each step (onSnapshot)', async () => {
    const child = setup(anyEvent).createMachine({
      id: 'child',
      context: { n: 0 },
      on: { INC: { actions: assign({ n: ({ context }) => context.n + 1 }) } },
    })
    const parent = setup({ ...anyEvent, actors: { child } }).createMachine({
      id: 'parent',
      context: { seen: [] as number[] },
      invoke: {
        src: 'child',
        id: 'kid',
        onSnapshot: {
          actions: assign({
            seen: ({ context, event }) => [
              ...context.seen,
              (event.snapshot as unknown as { context: { n: number } }).context.n,
            ],
          }),
        },
      },
      on: { '*': { actions: forwardTo('kid') } },
    })
    const { store, runner } = await at([parent])
    await runner.create('parent', { id: 'p' })
    await runner.send('p', { type: 'INC' })
    await until(async () => ((await contextOf(store, 'p')) as { seen: number[] }).seen.length === 2)
    expect(await contextOf(store, 'p')).toEqual({ seen: [0, 1] })
  })

  test('a promise, its error, a callback, an observable and a reducer are invoked', async () => {
    const numbers = fromObservable(() => ({
      subscribe(observer: unknown) {
        const { next, complete } = observer as { next(value: number): void; complete(): void }
        next(1)
        queueMicrotask(complete)
        return { unsubscribe() {} }
      },
    }))
    const note = assign<
      { got: unknown[] },
      { type: string; output?: unknown; error?: unknown; of?: unknown },
      undefined,
      never,
      never
    >({
      got: ({ context, event }) => [...context.got, event.output ?? event.error ?? event.of],
    })
    const machine = setup({
      ...anyEvent,
      types: { ...anyEvent.types, context: {} as { got: unknown[] } },
      actors: {
        load: fromPromise(async ({ input }: { input: number }) => ({ value: input + 1 })),
        refuse: fromPromise(async () => {
          throw Object.assign(new RangeError('too far'), { code: 'E_FAR', request: () => {} })
        }),
        reject: fromPromise(() => Promise.reject({ reason: 'no C:\\udata', retry: true })),
        panic: fromPromise(() => Promise.reject(10n)),
        rave: fromPromise(() => Promise.reject({ cut: 'off \ud83d' })),
        listen: fromCallback(({ sendBack, receive }) => {
          receive((event) => sendBack({ type: 'ECHO', of: event.type }))
        }),
        count: fromTransition((state: { n: number }, event: { type: string }) => ({ n: state.n + event.type.length }), {
          n: 0,
        }),
        numbers,
      },
    }).createMachine({
      id: 'invoker',
      context: { got: [] },
      initial: 'loading',
      states: {
        loading: { invoke: { src: 'load', input: 1, onDone: { target: 'failing', actions: note } } },
        failing: { invoke: { src: 'refuse', onError: { target: 'rejecting', actions: note } } },
        rejecting: { invoke: { src: 'reject', onError: { target: 'panicking', actions: note } } },
        panicking: { invoke: { src: 'panic', onError: { target: 'raving', actions: note } } },
        raving: { invoke: { src: 'rave', onError: { target: 'listening', actions: note } } },
        listening: {
          invoke: [
            { src: 'listen', id: 'ear' },
            { src: 'count', id: 'sum' },
          ],
          entry: [sendTo('ear', { type: 'PING' }), sendTo('sum', { type: 'FOUR' })],
          on: { ECHO: { target: 'watching', actions: note } },
        },
        watching: { invoke: { src: 'numbers', onDone: 'done' } },
        done: { type: 'final' },
      },
    })
    const { store, runner } = await at([machine], { lease: 1 })
    await runner.create('invoker', { id: 'i' })
    await until(async () => (await stored(store, 'i')).status === 'DONE')
    expect(await contextOf(store, 'i')).toEqual({
      got: [
        { value: 2 },
        { xstate$$type: 'error', name: 'RangeError', message: 'too far', code: 'E_FAR' },
        { reason: 'no C:\\udata', retry: true },
        { xstate$$type: 'error', name: 'Error', message: '10' },
        { xstate$$type: 'error', name: 'Error', message: '[object Object]' },
        'PING',
      ],
    })
    expect((await stored(store, 'i:sum')).context.xstate).toMatchObject({ state: { context: { n: 4 } } })
    await runner.settled()
    for (const id of await store.idsWithPrefix('i:')) {
      expect(['DONE', 'CANCELLED']).toContain((await stored(store, id)).status)
    }
    expect(await store.dueTimers(1e12)).toEqual([])
  })

  test('emitted events reach listeners, and logs the logger, after the commit', async () => {
    const heard: unknown[] = []
    const machine = setup({
      types: { emitted: {} as { type: 'rang'; n: number }, events: {} as { type: 'RING' } },
    }).createMachine({
      id: 'bell',
      on: { RING: { actions: [emit({ type: 'rang', n: 1 }), log('ding', 'bell')] } },
    })
    const { runner } = await at([machine], { logger: (...values) => heard.push(values) })
    using _one = runner.on('rang', (event, { version }) => heard.push([event, version]))
    await runner.create('bell', { id: 'b' })
    await runner.send('b', { type: 'RING' })
    expect(heard).toEqual([
      [{ type: 'rang', n: 1 }, 2],
      ['bell', 'ding'],
    ])
  })
})
