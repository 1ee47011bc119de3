/** What a runner does not let happen: what hangs, what is refused for ever, what looks like something else. */
import { setTimeout as sleep } from 'node:timers/promises'
import { newEvent, newExecution } from '@harel/store-base'
import { currentEffect, execution } from '@harel/xstate'
import { describe, expect, test } from 'vitest'
import { type AnyActorRef, type AnyStateMachine, createMachine, fromCallback, fromPromise, sendTo, setup } from 'xstate'
import { all, keepRunning, openStore, runnerOn, stored, TestClock, until } from './helpers.js'

const anyEvent = { types: { events: {} as { type: string; [key: string]: unknown } } }

const HALF = 'half a pair: \ud83d'
const deep = () => {
  let value: unknown = 1
  for (let n = 0; n < 250; n++) value = [value]
  return value
}

describe('what no store takes', () => {
  test.each([
    ['half a surrogate pair', () => HALF],
    ['what is too deep', deep],
    ['JSON that looks like a reference', () => ({ xstate$$type: 1, id: 'victim' })],
  ])('as the result of a promise is an error at once, and the promise is called once: %s', async (_, make) => {
    const store = await openStore()
    let calls = 0
    const work = fromPromise(async () => {
      calls += 1
      return make()
    })
    const machine = setup({ ...anyEvent, actors: { work } }).createMachine({
      id: 'm',
      initial: 'on',
      states: { on: { invoke: { src: 'work', onDone: 'done', onError: 'refused' } }, done: {}, refused: {} },
    })
    const runner = runnerOn(store, { machines: [machine] })
    keepRunning(runner)
    await runner.create('m', { id: 'm' })
    await until(async () => (await stored(store, 'm')).activePath === 'refused')
    expect(calls).toBe(1)
  })

  test('as an event of a callback ends the callback with an error', async () => {
    const store = await openStore()
    const talk = fromCallback(({ sendBack }) => sendBack({ type: 'SAID', text: HALF }))
    const machine = setup({ ...anyEvent, actors: { talk } }).createMachine({
      id: 'm',
      initial: 'on',
      states: { on: { invoke: { src: 'talk', onError: 'refused' }, on: { SAID: 'heard' } }, heard: {}, refused: {} },
    })
    const runner = runnerOn(store, { machines: [machine] })
    keepRunning(runner)
    await runner.create('m', { id: 'm' })
    await until(async () => (await stored(store, 'm')).activePath === 'refused')
  })

  const bad = sendTo(() => execution('x'), { type: 'X', given: new Map() })
  test.each<[string, object]>([
    ['in the context', { context: { text: HALF } }],
    ['in what is sent', { entry: ['act', bad] }],
    ['in the input of a child', { invoke: { src: 'kid', input: new Map() } }],
  ])('keeps the actions of the step from being run: %s', async (_, config) => {
    const store = await openStore()
    let calls = 0
    const act = () => {
      calls += 1
    }
    const kid = setup({}).createMachine({ id: 'kid' })
    const machine: AnyStateMachine = setup({ ...anyEvent, actors: { kid }, actions: { act } }).createMachine({
      id: 'm',
      entry: 'act',
      ...config,
    })
    const runner = runnerOn(store, { machines: [machine] })
    await expect(runner.create('m', { id: 'm' })).rejects.toMatchObject({ code: 'NOT_SERIALIZABLE' })
    expect(calls).toBe(0)
    expect(await store.load('m')).toBeUndefined()
  })
})

test('what contains itself is refused at once, however often it does', async () => {
  const store = await openStore()
  const runner = runnerOn(store, { machines: [setup(anyEvent).createMachine({ id: 'm' })] })
  await runner.create('m', { id: 'm' })
  const c: Record<string, unknown> = {}
  for (const key of ['a', 'b', 'c']) c[key] = c
  await expect(runner.send('m', { type: 'X', c })).rejects.toMatchObject({ code: 'NOT_SERIALIZABLE' })
})

test('JSON from outside cannot name an execution', async () => {
  const store = await openStore()
  const machine = setup(anyEvent).createMachine({
    id: 'm',
    on: { ASK: { actions: sendTo(({ event }) => event.from as AnyActorRef, { type: 'X' }) } },
  })
  const runner = runnerOn(store, { machines: [machine] })
  const from = { xstate$$type: 1, id: 'victim' }
  await runner.create('m', { id: 'm' })
  await expect(runner.send('m', { type: 'ASK', from })).rejects.toMatchObject({ code: 'NOT_SERIALIZABLE' })
  await expect(runner.send('m', { type: 'ASK', list: [{ deep: from }] })).rejects.toThrow(
    'event.list[0].deep.xstate$$type',
  )
  await expect(runner.create('m', { input: from } as never)).rejects.toMatchObject({ code: 'NOT_SERIALIZABLE' })
})

describe('actions that send by the runner', () => {
  const setUp = async () => {
    const store = await openStore()
    const machine = setup({
      ...anyEvent,
      actions: {
        ask: (async ({ event }: { event: { to: string; back?: string; before?: number } }) => {
          await sleep(event.before ?? 0)
          await runner.send(event.to, { type: event.back === undefined ? 'STOP' : 'ASK', to: event.back } as never)
        }) as never,
      },
    }).createMachine({ id: 'm', on: { ASK: { actions: 'ask' }, STOP: {} } })
    const runner = runnerOn(store, { machines: [machine] })
    for (const id of ['a', 'b', 'c']) await runner.create('m', { id })
    return { store, runner }
  }

  test('are refused where they would wait for themselves, over others too', async () => {
    const { store, runner } = await setUp()
    await runner.send('a', { type: 'ASK', to: 'b', back: 'a' })
    expect(await stored(store, 'b')).toMatchObject({ status: 'FAILED', error: expect.stringContaining('"a"') })
    expect((await stored(store, 'a')).status).toBe('RUNNING')
  })

  test('never wait for each other', async () => {
    const { store, runner } = await setUp()
    await Promise.all([
      runner.send('a', { type: 'ASK', to: 'b', before: 20 }),
      runner.send('b', { type: 'ASK', to: 'c', back: 'a', before: 10 }),
    ])
    const all = await Promise.all(['a', 'b', 'c'].map((id) => stored(store, id)))
    expect(all.map(({ status }) => status)).toEqual(['FAILED', 'RUNNING', 'RUNNING'])
  })
})

test.each([
  { type: 'xstate.stop', parent: null },
  { type: 'harel.suspend', parent: null, command: 5 },
  { type: 'xstate.done.actor.pay' },
])('a machine that passes on what it was sent passes on no command and no result: $type', async (inner) => {
  const store = await openStore()
  const forwarder = setup(anyEvent).createMachine({
    id: 'forwarder',
    on: {
      PASS: {
        actions: sendTo(
          () => execution('w'),
          ({ event }) => event.inner as { type: string },
        ),
      },
    },
  })
  const listener = setup(anyEvent).createMachine({ id: 'listener' })
  const runner = runnerOn(store, { machines: [forwarder, listener] })
  await runner.create('listener', { id: 'w' })
  await runner.create('forwarder', { id: 'f' })
  await expect(runner.send('f', { type: 'PASS', inner })).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
  await runner.settled()
  expect(await stored(store, 'f')).toMatchObject({ version: 1 })
  expect(await stored(store, 'w')).toMatchObject({ version: 1, status: 'RUNNING' })
})

test('an action that takes longer than the lease is reported', async () => {
  const store = await openStore()
  const machine = setup({ ...anyEvent, actions: { act: (() => sleep(200)) as never } }).createMachine({
    id: 'm',
    entry: 'act',
  })
  const runner = runnerOn(store, { machines: [machine], lease: 0.05 })
  await runner.create('m', { id: 'slow' })
  expect(runner.warnings).toEqual([expect.stringContaining('the action act of slow')])
})

test('what could not be handled at once is reported when it fails first', async () => {
  const store = await openStore()
  const machine = setup(anyEvent).createMachine({ id: 'm', entry: sendTo(() => execution('nobody'), { type: 'X' }) })
  const runner = runnerOn(store, { machines: [machine] })
  await runner.create('m', { id: 'm' })
  await runner.settled()
  expect(runner.warnings).toEqual([expect.stringContaining('event for nobody has failed')])
})

test("what is parked under onActionError 'raise' says what was thrown", async () => {
  const store = await openStore()
  const failing = setup(anyEvent).createMachine({
    id: 'failing',
    on: {
      X: {
        actions: () => {
          throw new TypeError('no more paper')
        },
      },
    },
  })
  const machine = setup(anyEvent).createMachine({ id: 'm', entry: sendTo(() => execution('f'), { type: 'X' }) })
  const runner = runnerOn(store, { machines: [machine, failing], onActionError: 'raise', maxAttempts: 1 })
  await runner.create('failing', { id: 'f' })
  await runner.create('m', { id: 'm' })
  await runner.settled()
  const [parked] = await all(runner.parked())
  expect(parked?.error).toBe('ActionFailed: an action of "f" failed: TypeError: no more paper')
})

test('an event for a record of the runner itself is parked', async () => {
  const store = await openStore()
  const clock = new TestClock()
  const runner = runnerOn(store, { machines: [], clock: clock.read, maxAttempts: 1 })
  keepRunning(runner)
  await until(async () => (await store.load('harel.sweep')) !== undefined)
  await store.commit(newExecution({ id: 'x', definitionId: 'other' }), {
    emits: [{ targetId: 'harel.sweep', event: newEvent({ kind: 'X' }) }],
  })
  await until(async () => {
    clock.now += 10
    return (await all(runner.parked())).length === 1
  })
})

describe('close', () => {
  const setUp = async (act: () => unknown) => {
    const store = await openStore()
    const machine = setup({ ...anyEvent, actions: { act: act as never } }).createMachine({
      id: 'm',
      initial: 'a',
      states: { a: { on: { GO: { target: 'b', actions: 'act' } } }, b: {} },
    })
    const runner = runnerOn(store, { machines: [machine] })
    await runner.create('m', { id: 'm' })
    return { store, runner, sent: runner.send('m', { type: 'GO' }) }
  }

  test('waits for the steps that have begun, whoever has asked for them', async () => {
    const { store, runner, sent } = await setUp(() => sleep(100))
    await sleep(20)
    await runner.close()
    expect((await stored(store, 'm')).activePath).toBe('b')
    expect((await sent).outcome).toBe('handled')
  })

  test('gives up a step that does not end; it writes nothing any more, and its caller is told why', async () => {
    const { store, runner, sent } = await setUp(() => {
      const { signal } = currentEffect()
      return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
    })
    const refused = expect(sent).rejects.toMatchObject({ code: 'RUNNER_CLOSED' })
    await sleep(20)
    await runner.close()
    await refused
    expect((await stored(store, 'm')).activePath).toBe('a')
  }, 15_000)
})

describe('timers of a machine that is migrated', () => {
  const version = (name: string, state: string): AnyStateMachine =>
    createMachine({
      id: 'm',
      version: name,
      initial: state,
      states: { [state]: { on: { X: {} }, after: { 1000: 'late' } }, late: { type: 'final' } },
    })

  const setUp = async (move: boolean) => {
    const store = await openStore()
    const clock = new TestClock()
    await runnerOn(store, { machines: [version('1', 'old')], clock: clock.read }).create('m', { id: 'm' } as never)
    const runner = runnerOn(store, {
      machines: [version('2', 'new')],
      clock: clock.read,
      migrate: ({ timers: { 'xstate.after.1000.m.old': timer, ...others }, ...stored }) => {
        const id = 'xstate.after.1000.m.new'
        return { ...stored, value: 'new', timers: timer && move ? { ...others, [id]: { ...timer, type: id } } : others }
      },
    })
    return { store, clock, runner }
  }

  test.each([true, false])(
    'fire where they were moved to, and only there (touched by an event before: %s)',
    async (touched) => {
      const { store, clock, runner } = await setUp(true)
      if (touched) await runner.send('m', { type: 'X' } as never)
      clock.now += 2
      keepRunning(runner)
      await until(async () => (await stored(store, 'm')).status === 'DONE')
      expect(await store.dueTimers(1e12)).toEqual([])
    },
  )

  test('are gone from the queue when they were left out', async () => {
    const { store, clock, runner } = await setUp(false)
    clock.now += 2
    keepRunning(runner)
    await until(async () => (await store.dueTimers(1e12)).length === 0)
    expect((await stored(store, 'm')).status).toBe('RUNNING')
  })

  test.each([null, 5, {}, Promise.resolve({})])('and what is no machine is refused: %s', async (moved) => {
    const { store } = await setUp(true)
    const runner = runnerOn(store, { machines: [version('2', 'new')], migrate: (() => moved) as never })
    await expect(runner.send('m', { type: 'X' } as never)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
  })

  test('and what migrate throws is said to be its own, with nothing written', async () => {
    const { store } = await setUp(true)
    const cause = new TypeError('nobody is at home')
    const migrate = () => {
      throw cause
    }
    const runner = runnerOn(store, { machines: [version('2', 'new')], migrate })
    const before = await stored(store, 'm')
    for (const call of [() => runner.send('m', { type: 'X' } as never), () => runner.snapshot('m')]) {
      const message = 'migrate has failed for "m": TypeError: nobody is at home'
      await expect(call()).rejects.toMatchObject({ code: 'MIGRATION_FAILED', executionId: 'm', message, cause })
    }
    expect(await stored(store, 'm')).toEqual(before)
  })

  const timer = { at: 1, type: 'X', data: {} }
  const child = { id: 'm:c', src: 'c' }
  test.each<[string, object]>([
    ['value', { value: null }],
    ['value', { value: undefined }],
    ['value', { value: 5 }],
    ['value', { value: [] }],
    ['value → new', { value: { new: null } }],
    ['context', { context: null }],
    ['children', { children: [] }],
    ['children → c', { children: { c: null } }],
    ['children → c → id', { children: { c: { ...child, id: '' } } }],
    ['children → c → src', { children: { c: { id: 'm:c' } } }],
    ['children → c → finished', { children: { c: { ...child, finished: 1 } } }],
    ['timers → t', { timers: { t: null } }],
    ['timers → t → at', { timers: { t: {} } }],
    ['timers → t → at', { timers: { t: { ...timer, at: Number.NaN } } }],
    ['timers → t → type', { timers: { t: { ...timer, type: 5 } } }],
    ['timers → t → data', { timers: { t: { ...timer, data: 'x' } } }],
    ['timers → t → to', { timers: { t: { ...timer, to: null } } }],
    ['history → h', { history: { h: 5 } }],
    ['history → h', { history: { h: [5] } }],
    ['sync', { sync: 'yes' }],
    ['command', { command: '1' }],
  ])('and a part that is none is refused by its name, %s, with nothing written: %j', async (part, wrong) => {
    const { store, clock } = await setUp(true)
    const migrate = ((before: object) => ({ ...before, value: 'new', ...wrong })) as never
    const runner = runnerOn(store, { machines: [version('2', 'new')], migrate, clock: clock.read })
    const before = await stored(store, 'm')
    for (const call of [() => runner.send('m', { type: 'X' } as never), () => runner.snapshot('m')]) {
      await expect(call()).rejects.toMatchObject({
        code: 'INVALID_ARGUMENT',
        argument: `the result of migrate → ${part}`,
        message: expect.stringMatching(/must be .*; got /),
      })
    }
    expect(await stored(store, 'm')).toEqual(before)
  })
})

test('a clock that goes wrong later is named, nothing is stored by it, and timers fire when it has come back', async () => {
  const machine = createMachine({ id: 'm', initial: 'a', states: { a: { after: { 300: 'b' } }, b: {} } })
  const store = await openStore()
  let wrong = false
  const clock = () => (wrong ? Number.NaN : Date.now() / 1000)
  const runner = runnerOn(store, { machines: [machine], clock, grace: 0.1, maxPause: 0.1 })
  keepRunning(runner)
  await runner.create('m', { id: 'x' })
  wrong = true
  await expect(runner.create('m', { id: 'y' })).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', argument: 'clock' })
  await sleep(400)
  expect(await store.load('y')).toBeUndefined()
  expect(await stored(store, 'x')).toMatchObject({ activePath: 'a' })
  wrong = false
  await until(async () => (await stored(store, 'x')).activePath === 'b')
})
