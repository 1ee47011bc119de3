import { type ExecutionStore, newExecution, stamp } from '@harel/store-base'
import { ActionFailed, currentEffect, DurableRunner, execution, MachineChanged, UnknownMachine } from '@harel/xstate'
import { describe, expect, expectTypeOf, test } from 'vitest'
import {
  type AnyActorRef,
  assign,
  createActor,
  createMachine,
  fromPromise,
  sendParent,
  sendTo,
  setup,
  spawnChild,
} from 'xstate'
import { all, contextOf, openStore, runnerOn, stored, stores, sweepUp, TestClock, until } from './helpers.js'

const anyEvent = { types: { events: {} as { type: string; [key: string]: unknown } } }

const counter = setup({
  types: {
    input: {} as { from: number } | undefined,
    events: {} as { type: 'INC'; by?: number },
    context: {} as { n: number },
  },
}).createMachine({
  id: 'counter',
  context: ({ input }) => ({ n: input?.from ?? 0 }),
  on: { INC: { actions: assign({ n: ({ context, event }) => context.n + (event.by ?? 1) }) } },
})

/** Fails as often as it is told to. */
function failing(times: number) {
  const keys: string[] = []
  const act = () => {
    keys.push(currentEffect().idempotencyKey)
    if (keys.length <= times) throw new TypeError('not today')
  }
  const machine = setup({ ...anyEvent, actions: { act } }).createMachine({
    id: 'failing',
    context: { n: 0 },
    initial: 'a',
    states: {
      a: { after: { 1000: 'late' }, on: { GO: { target: 'b', actions: [assign({ n: 1 }), 'act'] } } },
      b: { on: { NEXT: 'c' } },
      c: {},
      late: {},
    },
  })
  return { machine, keys }
}

describe.each(stores)('on $name', ({ open }) => {
  test('an event that is sent from ten sides at once is handled once, and ten events are all handled (B74)', async () => {
    const store = await openStore(open)
    const runners = [1, 2, 3].map(() => runnerOn(store, { machines: [counter] }))
    await runners[0]?.create('counter', { id: 'c' })
    const send = (n: number, eventId: string) => runners[n % 3]?.send('c', { type: 'INC' }, { eventId })
    const same = await Promise.all(Array.from({ length: 10 }, (_, n) => send(n, 'same')))
    expect(same.filter((handled) => handled?.outcome === 'handled')).toHaveLength(1)
    await Promise.all(Array.from({ length: 10 }, (_, n) => send(n, `e${n}`)))
    expect(await contextOf(store, 'c')).toEqual({ n: 11 })
  })

  test('an action that throws leaves the state before the event, and redrive handles the event again, under the same key', async () => {
    const store = await openStore(open)
    const { machine, keys } = failing(1)
    const runner = runnerOn(store, { machines: [machine] })
    await runner.create('failing', { id: 'f' })
    await runner.send('f', { type: 'GO' }, { eventId: 'go' })
    expect(await stored(store, 'f')).toMatchObject({
      status: 'FAILED',
      error: 'TypeError: not today',
      activePath: 'a',
      deferred: [{ kind: 'GO' }],
    })
    expect(await contextOf(store, 'f')).toEqual({ n: 0 })
    expect(await store.dueTimers(1e12)).toEqual([])
    expect((await runner.send('f', { type: 'NEXT' })).outcome).toBe('deferred')
    await runner.redrive('f')
    await runner.settled()
    expect(await stored(store, 'f')).toMatchObject({ status: 'RUNNING', error: null, activePath: 'c', deferred: [] })
    expect(keys).toHaveLength(2)
  })

  test('an error of a store or a runner that an action has used is an error of the action like any other', async () => {
    const store = await openStore(open)
    const act = async () => {
      await runner.create('nothing' as never, {} as never)
    }
    const other = async () => {
      await store.save(newExecution({ id: 'u', definitionId: 'user' }))
    }
    const machine = setup({
      ...anyEvent,
      actions: { act: act as () => void, other: other as () => void },
    }).createMachine({
      id: 'user',
      on: { RUNNER: { actions: 'act' }, STORE: { actions: 'other' } },
    })
    const runner = runnerOn(store, { machines: [machine] })
    for (const [id, type, name] of [
      ['r', 'RUNNER', 'UnknownMachine'],
      ['u', 'STORE', 'StoreConflict'],
    ] as const) {
      await runner.create('user', { id })
      await runner.send(id, { type })
      expect(await stored(store, id)).toMatchObject({ status: 'FAILED', error: expect.stringContaining(name) })
    }
  })

  test('a failure is recorded whatever its error says, if anything (B03)', async () => {
    const store = await openStore(open)
    const mute = {
      toString() {
        throw new Error('it says nothing')
      },
    }
    const named = Object.assign(new Error('x'), { name: 'N\ud800' })
    const silent = Object.defineProperty(new Error('x'), 'message', { get: () => mute.toString() })
    const unnamed = Object.defineProperty(new Error('x'), 'name', { get: () => mute.toString() })
    const uncoded = Object.defineProperty(new Error('x'), 'code', { get: () => mute.toString() })
    const errors = [
      new Error('z'.repeat(100_000)),
      new Error('boom\0tail'),
      new Error('x\udfff'),
      named,
      silent,
      unnamed,
      uncoded,
      'y\udfff',
      Object.create(null),
      mute,
      Symbol('s'),
    ]
    const act = (_: unknown, { n }: { n: number }) => {
      throw errors[n]
    }
    const machine = setup({
      types: { events: {} as { type: 'GO'; n: number }, input: {} as { n: number } },
      actions: { act },
      actors: { reject: fromPromise<void, { n: number }>(async ({ input }) => Promise.reject(errors[input.n])) },
    }).createMachine({
      id: 'failing',
      context: ({ input }) => input,
      initial: 'a',
      states: {
        a: { invoke: { src: 'reject', input: ({ context }) => context as { n: number }, onError: 'told' } },
        told: {},
      },
      on: { GO: { actions: { type: 'act', params: ({ event }) => ({ n: event.n }) } } },
    })
    const runner = runnerOn(store, { machines: [machine] })
    for (const n of errors.keys()) {
      await runner.create('failing', { id: `f${n}`, input: { n } })
      await until(async () => (await stored(store, `f${n}`)).activePath === 'told')
      await runner.send(`f${n}`, { type: 'GO', n })
      expect(await stored(store, `f${n}`)).toMatchObject({ status: 'FAILED', error: expect.any(String) })
    }
    expect((await stored(store, 'f0')).error?.length).toBeLessThan(5000)
    expect((await stored(store, 'f1')).error).toBe('Error: boom\0tail')
    expect((await stored(store, 'f2')).error).toBe('Error: x\ufffd')
  })

  test('redrive can leave the failed event out, and arms the timers again', async () => {
    const store = await openStore(open)
    const runner = runnerOn(store, { machines: [failing(9).machine] })
    await runner.create('failing', { id: 'f' })
    await runner.send('f', { type: 'GO' })
    await expect(runner.redrive('nobody')).rejects.toMatchObject({ code: 'UNKNOWN_EXECUTION' })
    await runner.redrive('f', { skip: true })
    await runner.settled()
    expect(await stored(store, 'f')).toMatchObject({ status: 'RUNNING', activePath: 'a' })
    expect(await store.dueTimers(1e12)).toHaveLength(1)
    await expect(runner.redrive('f')).rejects.toMatchObject({ code: 'CONTROL_REFUSED' })
  })

  test("with onActionError 'raise', what an action throws is the cause of the error, and nothing is written", async () => {
    const store = await openStore(open)
    const runner = runnerOn(store, { machines: [failing(1).machine], onActionError: 'raise' })
    await runner.create('failing', { id: 'f' })
    const sent = runner.send('f', { type: 'GO' }, { eventId: 'go' })
    await expect(sent).rejects.toThrow(ActionFailed)
    await expect(sent).rejects.toMatchObject({ executionId: 'f', cause: new TypeError('not today') })
    expect(await stored(store, 'f')).toMatchObject({ status: 'RUNNING', version: 1 })
    expect((await runner.send('f', { type: 'GO' }, { eventId: 'go' })).outcome).toBe('handled')
  })

  test('a start that fails is redriven with its input', async () => {
    let broken = true
    const machine = setup({ types: { input: {} as { x: number } } }).createMachine({
      id: 'starter',
      context: ({ input }) => {
        if (broken) throw new Error('not yet')
        return { x: (input as { x: number }).x }
      },
    })
    const store = await openStore(open)
    const runner = runnerOn(store, { machines: [machine] })
    expect(await runner.create('starter', { id: 's', input: { x: 7 } })).toMatchObject({
      status: 'FAILED',
      error: 'Error: not yet',
    })
    broken = false
    await runner.redrive('s')
    await runner.settled()
    expect(await stored(store, 's')).toMatchObject({ status: 'RUNNING' })
    expect(await contextOf(store, 's')).toEqual({ x: 7 })
  })

  test('the key of an action is the same in each attempt at an event, and another for each event and action', async () => {
    const keys: string[] = []
    const act = () => void keys.push(currentEffect().idempotencyKey)
    const machine = setup({ ...anyEvent, actions: { act, again: act } }).createMachine({
      id: 'keys',
      entry: ['act'],
      on: { GO: { actions: ['act', 'again'] } },
    })
    const store = await openStore(open)
    const runners = [1, 2].map(() => runnerOn(store, { machines: [machine] }))
    await runners[0]?.create('keys', { id: 'k' })
    await Promise.all(runners.map((runner) => runner.send('k', { type: 'GO' }, { eventId: 'e' })))
    expect([...new Set(keys)].toSorted()).toEqual(['k:e:0:act', 'k:e:1:again', 'k:start:0:act'])
    expect(() => currentEffect()).toThrow('only while')
  })

  test('an action that would wait for its own execution is refused, instead of waiting for ever', async () => {
    const store = await openStore(open)
    let refused: unknown
    const act = async () => {
      refused = await runner.send('w', { type: 'GO' }).catch((error) => error)
    }
    const machine = setup({ ...anyEvent, actions: { act: act as () => void } }).createMachine({
      id: 'waiting',
      on: { GO: { actions: 'act' } },
    })
    const runner = runnerOn(store, { machines: [machine] })
    await runner.create('waiting', { id: 'w' })
    await runner.send('w', { type: 'GO' })
    expect(refused).toMatchObject({ code: 'CONTROL_REFUSED', executionId: 'w' })
  })

  test('an action may wait for another execution, which may answer, and what it leaves running is no part of its step', async () => {
    const store = await openStore(open)
    const late = Promise.withResolvers<unknown>()
    const ask = async ({ self }: { self: AnyActorRef }) => {
      await runner.send('other', { type: 'ASK', from: self })
      setTimeout(() => {
        expect(() => self.send({ type: 'X' })).toThrow('only from an action')
        late.resolve(runner.send('asker', { type: 'LATE' }))
      }, 30)
    }
    const heard = {
      actions: assign({
        heard: ({ context, event }: { context: { heard: string[] }; event: { type: string } }) => [
          ...context.heard,
          event.type,
        ],
      }),
    }
    const asker = setup({
      ...anyEvent,
      types: { ...anyEvent.types, context: {} as { heard: string[] } },
      actions: { ask: ask as never },
    }).createMachine({
      id: 'asker',
      context: { heard: [] },
      on: { GO: { actions: 'ask' }, ANSWER: heard, LATE: heard } as never,
    })
    const other = setup(anyEvent).createMachine({
      id: 'other',
      on: { ASK: { actions: sendTo(({ event }) => event.from as AnyActorRef, { type: 'ANSWER' }) } },
    })
    const runner = runnerOn(store, { machines: [asker, other] })
    await runner.create('other', { id: 'other' })
    await runner.create('asker', { id: 'asker' })
    await runner.send('asker', { type: 'GO' })
    expect(await late.promise).toMatchObject({ outcome: 'handled' })
    await runner.settled()
    expect(await contextOf(store, 'asker')).toEqual({ heard: ['ANSWER', 'LATE'] })
  })

  test('a snapshot that XState has persisted goes on here, with its history and its timer (B25)', async () => {
    const machine = setup(anyEvent).createMachine({
      id: 'moved',
      context: { n: 0 },
      initial: 'a',
      states: {
        a: {
          initial: 'one',
          states: { one: { on: { NEXT: 'two' } }, two: {}, past: { type: 'history' } },
          on: { OUT: { target: 'b', actions: assign({ n: 7 }) } },
        },
        b: { on: { BACK: 'a.past' }, after: { 1000: 'c' } },
        c: {},
      },
    })
    const actor = createActor(machine).start()
    for (const type of ['NEXT', 'OUT']) actor.send({ type })
    const row = { id: 'm', snapshot: JSON.stringify(actor.getPersistedSnapshot()) }
    actor.stop()

    const store = await openStore(open)
    const clock = new TestClock()
    const { value, context, historyValue } = JSON.parse(row.snapshot)
    const history = Object.entries(historyValue as Record<string, { id: string }[]>)
    const path = 'xstate.after.1000.moved.b'
    const timers = { [path]: { at: clock.now + 1, type: path, data: {} } }
    const moved = newExecution({
      id: row.id,
      definitionId: 'moved',
      status: 'RUNNING',
      activePath: 'b',
      context: { xstate: { version: '1', value, context, children: {}, timers } },
      history: Object.fromEntries(history.map(([node, states]) => [node, states.map(({ id }) => id)])),
    })
    stamp(moved, clock.now)
    await store.commit(moved, { timers: [{ action: 'schedule', path, fireAt: clock.now + 1 }] })

    const runner = runnerOn(store, { machines: [machine], clock: clock.read })
    await runner.send('m', { type: 'BACK' })
    expect(await stored(store, 'm')).toMatchObject({ activePath: 'a.two' })
    expect(await store.dueTimers(1e12)).toEqual([])
    await runner.send('m', { type: 'OUT' })
    await sweepUp(clock, runner, 1)
    expect(await stored(store, 'm')).toMatchObject({ activePath: 'c' })
    expect(await contextOf(store, 'm')).toEqual({ n: 7 })
  })

  test('asynchronous actions are waited for before the commit', async () => {
    const order: string[] = []
    const slow = async () => {
      await new Promise((resolve) => setTimeout(resolve, 20))
      order.push('acted')
    }
    const machine = setup({ ...anyEvent, actions: { slow: slow as () => void } }).createMachine({
      id: 'slow',
      on: { GO: { actions: 'slow' } },
    })
    const store = await openStore(open)
    const runner = runnerOn(store, { machines: [machine] })
    await runner.create('slow', { id: 's' })
    await runner.send('s', { type: 'GO' })
    order.push('committed')
    expect(order).toEqual(['acted', 'committed'])
  })

  test.each([
    ['none is in the trace without the option', {}, false],
    ['each is in the trace with it', { trace: true }, true],
  ])('of the steps of machines, starts and timers included, %s', async (_, option, isTraced) => {
    const store = await openStore(open)
    const clock = new TestClock()
    const kid = createMachine({ id: 'kid', initial: 'a', states: { a: { after: { 1000: 'b' } }, b: {} } })
    const machine = setup({ ...anyEvent, actors: { kid } }).createMachine({
      id: 'parent',
      invoke: { src: 'kid', id: 'kid' },
      on: { GO: { actions: () => {} } },
    })
    const runner = runnerOn(store, { machines: [machine], clock: clock.read, ...option })
    await runner.create('parent', { id: 'p' })
    await runner.send('p', { type: 'GO' })
    await runner.settled()
    await sweepUp(clock, runner, 3)
    expect(await stored(store, 'p:kid')).toMatchObject({ activePath: 'b' })
    await runner.terminate('p')
    const kinds = async (id: string) => (await store.readTrace(id)).map(({ event_kind }) => event_kind)
    expect([await kinds('p'), await kinds('p:kid')]).toEqual(
      isTraced
        ? [
            ['xstate.init', 'GO'],
            ['xstate.init', 'xstate.after.1000.kid.a'],
          ]
        : [[], []],
    )
  })

  test('a step of the trace tells from where, to where, by which event and with which actions', async () => {
    const store = await openStore(open)
    const machine = setup({ ...anyEvent, actions: { act: () => {} } }).createMachine({
      id: 'traced',
      context: { n: 1 },
      initial: 'a',
      states: { a: { on: { GO: { target: 'b', actions: ['act', assign({ n: 2 })] } } }, b: {} },
    })
    const clock = new TestClock()
    const runner = runnerOn(store, { machines: [machine], trace: true, worker: 'w1', clock: clock.read })
    await runner.create('traced', { id: 't' })
    await runner.send('t', { type: 'GO' }, { eventId: 'e' })
    expect(await store.readTrace('t')).toEqual([
      {
        index: 0,
        event_kind: 'xstate.init',
        event_id: null,
        from_path: null,
        to_path: 'a',
        from_status: 'PENDING',
        to_status: 'RUNNING',
        active: ['a'],
        actions: [],
        worker: 'w1',
        context_out: { n: 1 },
        timestamp: clock.now,
      },
      {
        index: 1,
        event_kind: 'GO',
        event_id: 'e',
        from_path: 'a',
        to_path: 'b',
        from_status: 'RUNNING',
        to_status: 'RUNNING',
        active: ['b'],
        actions: ['act'],
        worker: 'w1',
        context_out: { n: 2 },
        timestamp: clock.now,
      },
    ])
  })
})

describe('bad input', () => {
  const at = async <const M extends Parameters<typeof runnerOn>[1]['machines']>(machines: M, options = {}) => {
    const store = await openStore()
    return { store, runner: runnerOn(store, { ...options, machines }) }
  }

  test('an id in use, an unknown machine, an unknown execution and a reserved id are refused (B77)', async () => {
    let acted = 0
    const act = () => {
      acted += 1
    }
    const machine = setup({ actions: { act } }).createMachine({ id: 'acting', entry: 'act' })
    const { runner } = await at([machine, counter])
    await runner.create('acting', { id: 'c' })
    await expect(runner.create('acting', { id: 'c' })).rejects.toMatchObject({
      code: 'EXECUTION_ALREADY_EXISTS',
      executionId: 'c',
    })
    expect(acted).toBe(1)
    await expect(runner.create('other' as 'counter')).rejects.toMatchObject({
      code: 'UNKNOWN_MACHINE',
      definitionId: 'other',
    })
    await expect(runner.send('nobody', { type: 'INC' })).rejects.toMatchObject({ code: 'UNKNOWN_EXECUTION' })
    await expect(runner.create('acting', { id: 'harel.sweep' })).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
    await expect(runner.send('c', { type: 'xstate.stop' } as never)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
    await expect(runner.send('c', {} as never)).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
      argument: 'event.type',
    })
  })

  test('of two that create one id at the same moment, one is refused', async () => {
    const { runner } = await at([counter])
    const outcomes = await Promise.allSettled([
      runner.create('counter', { id: 'c' }),
      runner.create('counter', { id: 'c' }),
    ])
    expect(outcomes.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected'])
  })

  test('an event that the machine has no transition for is ignored, or refused by option', async () => {
    const wild = setup(anyEvent).createMachine({ id: 'wild', on: { 'a.*': {}, B: { actions: () => {} } } })
    const { store, runner } = await at([wild], { unknownEvents: 'refuse' })
    await runner.create('wild', { id: 'w' })
    await expect(runner.send('w', { type: 'C' })).rejects.toMatchObject({
      code: 'UNKNOWN_EVENT',
      type: 'C',
      executionId: 'w',
    })
    await runner.send('w', { type: 'B' })
    expect((await runnerOn(store, { machines: [wild] }).send('w', { type: 'C' })).outcome).toBe('handled')
  })

  test.each([
    ['a machine without an id', () => [createMachine({})]],
    ['two machines of one id', () => [createMachine({ id: 'a' }), createMachine({ id: 'a' })]],
    [
      'two machines of one id, one of them below another',
      () => [
        createMachine({ id: 'a' }),
        setup({ actors: { a: createMachine({ id: 'a' }) } }).createMachine({ id: 'b' }),
      ],
    ],
    ['a reserved id', () => [createMachine({ id: 'harel.sweep' })]],
    ['what is no machine', () => [fromPromise(async () => 1) as never]],
  ])('%s is refused when the runner is made', async (_, machines) => {
    const store = await openStore()
    expect(() => new DurableRunner(store, { machines: machines() })).toThrow(
      expect.objectContaining({ code: 'INVALID_MACHINE' }),
    )
  })

  test('options that are misspelt or out of range are refused, with their name', async () => {
    const store = await openStore()
    for (const [name, value] of [
      ['concurency', 1],
      ['concurrency', 0],
      ['lease', 0],
      ['lease', 1e-9],
      ['grace', -1],
      ['onActionError', 'x'],
      ['clock', 1],
      ['pageSize', 1001],
      ['trace', 1],
      ['worker', '\ud800'],
      ['maxAttempts', null],
      ['unknownEvents', null],
      ['random', () => 2],
      ['random', () => Number.NaN],
    ] as const) {
      expect(() => new DurableRunner(store, { machines: [], [name]: value } as never), name).toThrow(
        expect.objectContaining({ code: 'INVALID_ARGUMENT', message: expect.stringContaining(name) }),
      )
    }
  })

  test('what is not serialisable is refused with its path, and nothing is written (B99)', async () => {
    const machine = setup(anyEvent).createMachine({
      id: 'dated',
      context: {},
      on: {
        SET: { actions: assign({ at: () => new Date(0) }) },
        FUNCTION: { actions: assign({ call: () => () => {} }) },
      },
    })
    const { store, runner } = await at([machine, counter])
    await expect(runner.create('counter', { input: { from: 1n } as never })).rejects.toMatchObject({
      path: 'input.from',
    })
    await runner.create('dated', { id: 'd' })
    await expect(runner.send('d', { type: 'SET', when: new Map() })).rejects.toMatchObject({ path: 'event.when' })
    await expect(runner.send('d', { type: 'SET' })).rejects.toMatchObject({
      path: expect.stringMatching(/context\.at$/),
    })
    await expect(runner.send('d', { type: 'FUNCTION' })).rejects.toMatchObject({
      path: expect.stringMatching(/context\.call$/),
    })
    const cyclic: Record<string, unknown> = {}
    cyclic.self = cyclic
    await expect(runner.send('d', { type: 'SET', cyclic })).rejects.toMatchObject({ code: 'NOT_SERIALIZABLE' })
    expect(await stored(store, 'd')).toMatchObject({ version: 1 })
  })

  const throwing = () => {
    throw new Error('not to be read')
  }
  const getter = () => Object.defineProperty({}, 'at', { enumerable: true, get: throwing })
  test.each<[string, string, () => unknown]>([
    ['a getter', '.at', getter],
    ['a getter in an array', '.list[1].at', () => ({ list: [1, getter()] })],
    ['a proxy that cannot be read', '', () => new Proxy({ at: 1 }, { get: throwing, ownKeys: throwing })],
    ['a proxy that was revoked', '.gone', () => ({ gone: revoked() })],
    ['an error whose message cannot be read', '.error', () => ({ error: mute() })],
  ])('%s that throws is refused with its path (%s), and nothing is written (B99)', async (_, path, made) => {
    const refused = (name: string) => ({ code: 'NOT_SERIALIZABLE', path: `${name}${path}`, cause: expect.any(Error) })
    const machine = setup(anyEvent).createMachine({
      id: 'm',
      context: {},
      on: {
        SET: { actions: assign({ it: () => made() }) },
        SAY: {
          actions: sendTo(
            () => execution('m'),
            () => ({ type: 'X', it: made() }),
          ),
        },
      },
    })
    const { store, runner } = await at([machine])
    await expect(runner.create('m', { id: 'n', input: made() as never })).rejects.toMatchObject(refused('input'))
    await runner.create('m', { id: 'm' })
    await expect(runner.send('m', { type: 'X', it: made() })).rejects.toMatchObject(refused('event.it'))
    await expect(runner.send('m', { type: 'SET' })).rejects.toMatchObject(refused('context.it'))
    await expect(runner.send('m', { type: 'SAY' })).rejects.toMatchObject(refused('event X.it'))
    if (path === '.at') {
      const event = Object.assign(getter(), { type: 'X' })
      await expect(runner.send('m', event)).rejects.toMatchObject(refused('event'))
    }
    expect(await store.load('n')).toBeUndefined()
    expect(await stored(store, 'm')).toMatchObject({ version: 1, status: 'RUNNING' })
  })

  const revoked = () => {
    const { proxy, revoke } = Proxy.revocable({}, {})
    revoke()
    return proxy
  }
  const mute = () => Object.defineProperty(new Error('x'), 'message', { get: throwing })

  test('half a surrogate pair in an event is refused, whatever the status of its execution', async () => {
    const { store, runner } = await at([counter])
    for (const id of ['running', 'suspended', 'cancelled']) await runner.create('counter', { id })
    await runner.suspend('suspended')
    await runner.terminate('cancelled')
    for (const id of ['running', 'suspended', 'cancelled', 'nobody']) {
      const sent = (event: object) => runner.send(id, event as never)
      await expect(sent({ type: 'X', of: ['\ud800'] }), id).rejects.toMatchObject({ path: 'event.of[0]' })
      await expect(sent({ type: 'X\udfff' }), id).rejects.toMatchObject({ argument: 'event.type' })
    }
    await expect(runner.create('counter', { input: { from: '\udfff' } as never })).rejects.toMatchObject({
      path: 'input.from',
    })
    expect((await stored(store, 'suspended')).deferred).toEqual([])
  })

  test('an actor that another process could not find is refused, before any action has run', async () => {
    let acted = 0
    const act = () => {
      acted += 1
    }
    const machine = setup({ ...anyEvent, actions: { act } }).createMachine({
      id: 'spawner',
      on: {
        INLINE: {
          actions: [
            'act',
            spawnChild(
              fromPromise(async () => 1),
              { id: 'p' },
            ) as never,
          ],
        },
        MISSING: { actions: ['act', spawnChild('nothing' as never, { id: 'm' }) as never] },
        MACHINE: { actions: ['act', spawnChild(createMachine({ id: 'other' }), { id: 'o' }) as never] },
        PARENT: { actions: [sendParent({ type: 'X' })] },
      },
    })
    const { store, runner } = await at([machine])
    await runner.create('spawner', { id: 's' })
    for (const type of ['INLINE', 'MISSING', 'MACHINE']) {
      await expect(runner.send('s', { type })).rejects.toMatchObject({ code: 'ACTOR_NOT_RESTORABLE', executionId: 's' })
    }
    expect(acted).toBe(0)
    expect(await stored(store, 's')).toMatchObject({ version: 1 })
    await runner.send('s', { type: 'PARENT' })
    expect(await stored(store, 's')).toMatchObject({ status: 'FAILED' })
  })

  test('after close, everything is refused', async () => {
    const { runner } = await at([counter])
    await runner.close()
    await runner.close()
    await expect(runner.create('counter')).rejects.toMatchObject({ code: 'RUNNER_CLOSED' })
    await expect(runner.send('c', { type: 'INC' })).rejects.toMatchObject({ code: 'RUNNER_CLOSED' })
  })
})

describe('a machine that has changed', () => {
  const v1 = createMachine({
    id: 'm',
    version: '1',
    context: { n: 1 },
    initial: 'old',
    states: { old: { on: { GO: 'gone' } }, gone: {} },
  })
  const renamed = createMachine({
    id: 'm',
    version: '1',
    context: { n: 1 },
    initial: 'fresh',
    states: { fresh: { on: { GO: 'next' } }, next: {} },
  })
  const v2 = createMachine({
    id: 'm',
    version: '2',
    context: { n: 1 },
    initial: 'fresh',
    states: { fresh: { on: { GO: 'next' } }, next: {} },
  })
  const go = { type: 'GO' } as never

  async function old(): Promise<ExecutionStore> {
    const store = await openStore()
    await runnerOn(store, { machines: [v1] }).create('m', { id: 'x' })
    return store
  }

  test('is told by state and version where a stored state is gone, and nothing is written', async () => {
    const store = await old()
    const runner = runnerOn(store, { machines: [renamed] })
    const sent = runner.send('x', go)
    await expect(sent).rejects.toThrow(MachineChanged)
    await expect(sent).rejects.toMatchObject({ executionId: 'x', state: '"old"', version: '1' })
    expect(await stored(store, 'x')).toMatchObject({ version: 1, status: 'RUNNING' })
    expect(runner.warnings).toEqual(['machine m differs from what was published as version 1; give it another version'])
  })

  test('is refused in a version that is not there, which stuckOn finds', async () => {
    const store = await old()
    const runner = runnerOn(store, { machines: [v2] })
    await expect(runner.send('x', go)).rejects.toThrow(UnknownMachine)
    await runner.create('m', { id: 'y' })
    expect(await all(runner.stuckOn('m', '1'))).toEqual(['x'])
    expect(await all(runner.stuckOn('m', '2'))).toEqual(['y'])
  })

  describe('while a child of it was to be started', () => {
    const at = 1_700_000_000
    const orphaned = async () => {
      const store = await openStore()
      const clock = new TestClock()
      const spawn = (childId: string) => ({
        childId,
        rootPath: '',
        context: { xstate: { definitionId: 'm', version: '1', src: 'm', actorId: 'kid', sync: false, at } },
      })
      await store.commit(newExecution({ id: 'p', definitionId: 'other' }), { spawns: [spawn('p:kid')] })
      return { store, clock, spawn }
    }

    test('starts on the newest version, where there is a migrate', async () => {
      const { store, clock } = await orphaned()
      await sweepUp(clock, runnerOn(store, { machines: [v2], clock: clock.read, migrate: (machine) => machine }))
      expect(await stored(store, 'p:kid')).toMatchObject({ status: 'RUNNING', context: { xstate: { version: '2' } } })
      expect(await store.pendingSpawns()).toEqual([])
    })

    test('is found by stuckOn otherwise, and not any more once it has started', async () => {
      const { store, clock, spawn } = await orphaned()
      const runner = runnerOn(store, { machines: [v2], clock: clock.read })
      await sweepUp(clock, runner)
      expect(await all(runner.stuckOn('m', '1'))).toEqual(['p:kid'])
      expect(await all(runner.stuckOn('m', '2'))).toEqual([])
      expect(await all(runner.stuckOn('other', '1'))).toEqual([])
      await sweepUp(clock, runnerOn(store, { machines: [v1], clock: clock.read }))
      await store.commit(newExecution({ id: 'q', definitionId: 'other' }), { spawns: [spawn('p:kid')] })
      expect(await all(runner.stuckOn('m', '1'))).toEqual(['p:kid'])
    })
  })

  test('runs beside its new version, each execution on its own', async () => {
    const store = await old()
    const runner = runnerOn(store, { machines: [v1, v2] })
    await runner.create('m', { id: 'y' })
    for (const id of ['x', 'y']) await runner.send(id, go)
    expect([(await stored(store, 'x')).activePath, (await stored(store, 'y')).activePath]).toEqual(['gone', 'next'])
  })

  test('is migrated by the hook, with the next step', async () => {
    const store = await old()
    const runner = runnerOn(store, {
      machines: [v2],
      migrate: (machine, { executionId, definitionId, from, to }) => ({
        ...machine,
        value: 'fresh',
        context: { moved: `${definitionId} ${executionId} from ${from} to ${to}` },
      }),
    })
    await runner.send('x', go)
    expect(await stored(store, 'x')).toMatchObject({ activePath: 'next', context: { xstate: { version: '2' } } })
    expect(await contextOf(store, 'x')).toEqual({ moved: 'm x from 1 to 2' })
    expect(await all(runner.stuckOn('m', '1'))).toEqual([])
  })

  test('is kept in the store as it was published', async () => {
    const store = await old()
    expect(await store.loadDefinition('m', '1')).toMatchObject({
      definition: { id: 'm', states: { old: {}, gone: {} } },
    })
  })
})

test('types of inputs and events come from the machines', async () => {
  const store = await openStore()
  const strict = setup({
    types: { input: {} as { sku: string }, events: {} as { type: 'PAID'; amount: number } },
  }).createMachine({ id: 'strict' })
  const runner = runnerOn(store, { machines: [strict] })
  expectTypeOf(runner.send).parameter(1).toEqualTypeOf<{ type: 'PAID'; amount: number }>()
  expectTypeOf(runner.create<'strict'>).parameters.toEqualTypeOf<
    ['strict', { id?: string; priority?: number } & { input: { sku: string } }]
  >()
  await runner.create('strict', { id: 's', input: { sku: 'A-1' } })
  // @ts-expect-error the machine needs an input
  const created = runner.create('strict', { id: 't' })
  await created
})
