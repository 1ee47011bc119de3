/** In which order what an execution sends, starts and keeps is done. */
import { setTimeout as sleep } from 'node:timers/promises'
import { currentEffect, execution } from '@harel/xstate'
import { describe, expect, test } from 'vitest'
import { assign, sendTo, setup, spawnChild } from 'xstate'
import { contextOf, keepRunning, openStore, runnerOn, stored, stores, sweepUp, TestClock, until } from './helpers.js'

const anyEvent = { types: { events: {} as { type: string; [key: string]: unknown } } }

/** Keeps the numbers that it is sent. */
const listener = setup({
  ...anyEvent,
  types: { ...anyEvent.types, context: {} as { heard: unknown[] } },
}).createMachine({
  id: 'listener',
  context: { heard: [] },
  on: { N: { actions: assign({ heard: ({ context, event }) => [...context.heard, event.n] }) } },
})

const heard = async (store: Parameters<typeof contextOf>[0], id: string) =>
  ((await contextOf(store, id)) as { heard: unknown[] }).heard

const numberIn = (event: object, key: string) => Number((event as Record<string, unknown>)[key])

const numbers = (count: number) => Array.from({ length: count }, (_, n) => n)

test.each(stores)(
  'events from one execution arrive in the order in which they were sent, over any number of steps ($name)',
  async ({ open }) => {
    const store = await openStore(open)
    const say = (more: number) =>
      sendTo(
        () => execution('listener'),
        ({ event }) => ({ type: 'N', n: 2 * numberIn(event, 'k') + more }),
      )
    const speaker = setup(anyEvent).createMachine({ id: 'speaker', on: { SAY: { actions: [say(0), say(1)] } } })
    const runner = runnerOn(store, { machines: [speaker, listener] })
    await runner.create('listener', { id: 'listener' })
    await runner.create('speaker', { id: 'speaker' })
    for (const k of numbers(20)) await runner.send('speaker', { type: 'SAY', k })
    await runner.settled()
    expect(await heard(store, 'listener')).toEqual(numbers(40))
  },
)

test.each(stores)(
  'a child is started before it gets what it was sent, however long that takes ($name)',
  async ({ open }) => {
    const store = await openStore(open)
    const kid = setup({
      types: { ...anyEvent.types, context: {} as { heard: unknown[] } },
      actions: { wait: (() => sleep(30)) as () => void },
    }).createMachine({
      id: 'kid',
      context: { heard: [] },
      entry: 'wait',
      on: { N: { actions: assign({ heard: ({ context, event }) => [...context.heard, event.n] }) } },
    })
    const say = (n: number) => sendTo('kid', { type: 'N', n })
    const parent = setup({ ...anyEvent, actors: { kid } }).createMachine({
      id: 'parent',
      on: {
        GO: { actions: [spawnChild('kid', { id: 'kid' }), ...numbers(3).map(say)] },
        MORE: { actions: sendTo('kid', ({ event }) => ({ type: 'N', n: numberIn(event, 'n') })) },
      },
    })
    const runner = runnerOn(store, { machines: [parent] })
    await runner.create('parent', { id: 'p' })
    await runner.send('p', { type: 'GO' })
    for (const n of [3, 4, 5]) await runner.send('p', { type: 'MORE', n })
    await runner.settled()
    expect(await heard(store, 'p:kid')).toEqual(numbers(6))
  },
)

/** Fails in its action until it is told that all is well. */
function failing() {
  const keys: string[] = []
  const state = { isWell: false }
  const act = () => {
    keys.push(currentEffect().idempotencyKey)
    if (!state.isWell) throw new Error('not yet')
  }
  const machine = setup({
    types: { ...anyEvent.types, context: {} as { heard: unknown[] } },
    actions: { act },
  }).createMachine({
    id: 'failing',
    context: { heard: [] },
    on: { N: { actions: ['act', assign({ heard: ({ context, event }) => [...context.heard, event.n] })] } },
  })
  return { machine, keys, state }
}

test.each(stores)(
  'what was kept is handled in its order and before what comes later, under the keys that it had ($name)',
  async ({ open }) => {
    const store = await openStore(open)
    const { machine, keys, state } = failing()
    const runner = runnerOn(store, { machines: [machine] })
    await runner.create('failing', { id: 'f' })
    for (const n of numbers(5)) await runner.send('f', { type: 'N', n }, { eventId: `e${n}` })
    expect((await stored(store, 'f')).deferred).toHaveLength(5)
    state.isWell = true
    await runner.redrive('f')
    await runner.send('f', { type: 'N', n: 5 }, { eventId: 'e5' })
    expect((await runner.send('f', { type: 'N', n: 3 }, { eventId: 'e3' })).outcome).toBe('duplicate')
    await runner.settled()
    expect(await heard(store, 'f')).toEqual(numbers(6))
    expect(await stored(store, 'f')).toMatchObject({ status: 'RUNNING', deferred: [] })
    expect(keys).toEqual(['f:e0:0:act', ...numbers(6).map((n) => `f:e${n}:0:act`)])
  },
)

test('what was kept fails again where it fails again, and the rest waits behind it', async () => {
  const store = await openStore()
  const { machine } = failing()
  const runner = runnerOn(store, { machines: [machine] })
  await runner.create('failing', { id: 'f' })
  for (const n of numbers(3)) await runner.send('f', { type: 'N', n })
  await runner.redrive('f')
  await runner.settled()
  const { status, deferred } = await stored(store, 'f')
  expect(status).toBe('FAILED')
  expect(deferred.map(({ data }) => data.n)).toEqual([0, 1, 2])
})

test('however much was kept, each event is a commit of its own', async () => {
  const store = await openStore()
  const commit = store.commit.bind(store)
  let most = 0
  store.commit = (held, changes) => {
    most = Math.max(most, changes?.emits?.length ?? 0)
    return commit(held, changes)
  }
  const runner = runnerOn(store, { machines: [listener] })
  await runner.create('listener', { id: 'l' })
  await runner.suspend('l')
  for (const n of numbers(120)) await runner.send('l', { type: 'N', n })
  await runner.resume('l')
  await runner.settled()
  expect(await heard(store, 'l')).toEqual(numbers(120))
  expect(most).toBe(1)
})

test('a command that resumes from outside of this package leaves nothing behind', async () => {
  const store = await openStore()
  const runner = runnerOn(store, { machines: [listener] })
  await runner.create('listener', { id: 'l' })
  await runner.suspend('l')
  for (const n of numbers(3)) await runner.send('l', { type: 'N', n })
  // As the control plane of another language does it: the status alone.
  await store.save({ ...(await stored(store, 'l')), status: 'RUNNING' })
  await runner.send('l', { type: 'N', n: 3 })
  await runner.settled()
  expect(await heard(store, 'l')).toEqual(numbers(4))
})

describe('a machine that is resumed from outside of this package', () => {
  let isBroken = false
  const act = () => {
    if (isBroken) throw new Error('not today')
  }
  const late = setup({
    ...anyEvent,
    types: { ...anyEvent.types, context: {} as { heard: number[] } },
    actions: { act },
  }).createMachine({
    id: 'late',
    context: { heard: [] },
    initial: 'early',
    on: { N: { actions: [assign({ heard: ({ context, event }) => [...context.heard, Number(event.n)] }), 'act'] } },
    states: { early: { after: { 1000: 'late' } }, late: {} },
  })
  const setUp = async () => {
    const store = await openStore()
    const clock = new TestClock()
    const runner = runnerOn(store, { machines: [late], clock: clock.read })
    await runner.create('late', { id: 'l' })
    /** As the control plane of another language does it: the status alone. */
    const set = async (status: 'SUSPENDED' | 'RUNNING') => store.save({ ...(await stored(store, 'l')), status })
    const wait = async (seconds: number) => {
      clock.now += seconds
      await sweepUp(clock, runner)
    }
    return { store, runner, set, wait }
  }

  test('and had failed is as after a redrive when the next event has come, with its timers', async () => {
    const { store, runner, set, wait } = await setUp()
    isBroken = true
    await runner.send('l', { type: 'N', n: 0 })
    expect(await stored(store, 'l')).toMatchObject({ status: 'FAILED' })
    isBroken = false
    await wait(5)
    // As Python does it to what has failed below a machine that it suspends and resumes.
    await set('SUSPENDED')
    await set('RUNNING')
    await runner.send('l', { type: 'N', n: 1 })
    await wait(5)
    expect(await stored(store, 'l')).toMatchObject({ ...isLate, status: 'RUNNING', error: null, deferred: [] })
  })
  const isLate = { activePath: 'late', context: { xstate: { context: { heard: [0, 1] } } } }

  test('and was suspended from there fires its late timers, and handles what has arrived, by itself', async () => {
    const { store, runner, set, wait } = await setUp()
    await set('SUSPENDED')
    for (const n of numbers(2)) expect(await runner.send('l', { type: 'N', n })).toMatchObject({ outcome: 'deferred' })
    await wait(5)
    expect(await stored(store, 'l')).toMatchObject({ activePath: 'early', status: 'SUSPENDED' })
    await set('RUNNING')
    await wait(31)
    expect(await stored(store, 'l')).toMatchObject({ ...isLate, deferred: [] })
    expect([await store.pendingOutbox(), await store.dueTimers(1e18)]).toEqual([[], []])
  })

  test('and was suspended by it fires its late timers when the next event has come', async () => {
    const { store, runner, set, wait } = await setUp()
    await runner.suspend('l')
    await runner.send('l', { type: 'N', n: 0 })
    await wait(5)
    await set('RUNNING')
    await runner.send('l', { type: 'N', n: 1 })
    await wait(5)
    expect(await stored(store, 'l')).toMatchObject(isLate)
  })
})

test('keys of different effects are different, whatever the ids are', async () => {
  const store = await openStore()
  const { machine, keys, state } = failing()
  state.isWell = true
  const start = setup({
    ...anyEvent,
    actions: { act: () => void keys.push(currentEffect().idempotencyKey) },
  }).createMachine({
    id: 'start',
    entry: 'act',
    on: { N: { actions: 'act' } },
  })
  const runner = runnerOn(store, { machines: [machine, start] })
  for (const id of ['shop', 'shop:1', 'shop:a:0:act']) await runner.create('failing', { id })
  await runner.send('shop', { type: 'N', n: 0 }, { eventId: '1:evt' })
  await runner.send('shop:1', { type: 'N', n: 0 }, { eventId: 'evt' })
  await runner.send('shop', { type: 'N', n: 0 }, { eventId: 'a:0:act:b' })
  await runner.send('shop:a:0:act', { type: 'N', n: 0 }, { eventId: 'b' })
  await runner.create('start', { id: 's' })
  await runner.send('s', { type: 'N', n: 0 }, { eventId: 'start' })
  expect(new Set(keys).size).toBe(6)
})

test('a child whose id is in use is an error to its parent, and the execution that has the id is left alone', async () => {
  const store = await openStore()
  const parent = setup({ ...anyEvent, actors: { listener } }).createMachine({
    id: 'parent',
    context: { error: '' },
    initial: 'idle',
    states: {
      idle: { on: { GO: 'on' } },
      on: {
        invoke: {
          src: 'listener',
          id: 'kid',
          onError: { target: 'sorry', actions: assign({ error: ({ event }) => String(event.error) }) },
        },
        on: { STOP: 'idle' },
      },
      sorry: {},
    },
  })
  const runner = runnerOn(store, { machines: [parent, listener] })
  keepRunning(runner)
  await runner.create('listener', { id: 'p:kid' })
  await runner.create('parent', { id: 'p' })
  await runner.send('p', { type: 'GO' })
  await until(async () => (await stored(store, 'p')).activePath === 'sorry')
  expect(await contextOf(store, 'p')).toEqual({ error: expect.stringContaining('p:kid') })

  await runner.create('listener', { id: 'q:kid' })
  await runner.create('parent', { id: 'q' })
  await runner.send('q', { type: 'GO' })
  await runner.send('q', { type: 'STOP' })
  await runner.settled()
  await sleep(50)
  for (const id of ['p:kid', 'q:kid']) expect((await stored(store, id)).status).toBe('RUNNING')
})
