import { describe, expect, test } from 'vitest'
import { assign, cancel, enqueueActions, raise, sendTo, setup } from 'xstate'
import { contextOf, keepRunning, openStore, runnerOn, stored, stores, until } from './helpers.js'

const anyEvent = { types: { events: {} as { type: string; [key: string]: unknown } } }
const child = setup(anyEvent).createMachine({
  id: 'child',
  initial: 'a',
  states: { a: { on: { END: 'b' } }, b: { type: 'final' } },
})

/** Whatever every object has anyway, and what the runner itself has counted under. */
const names = ['constructor', 'toString', 'hasOwnProperty', 'valueOf', 'send', 'x', 'a#2', 'a:b', 'é\n']
/** As the name stands in an id. */
const part = (name = ''): string => name.replaceAll(':', '%3A')
const refused = ['__proto__', 'harel.lease', 'harel.retry', 'harel.timer.1', 'harel.actor.1']

describe.each(stores)('on $name', ({ open }) => {
  test('an actor may have any name: it runs, is sent events, ends, is stopped and started again', async () => {
    const store = await openStore(open)
    const machines = names.map((id, n) =>
      setup({ ...anyEvent, actors: { child } }).createMachine({
        id: `p${n}`,
        initial: 'waiting',
        states: {
          waiting: {
            invoke: { src: 'child', id, onDone: 'done' },
            on: { AGAIN: { target: 'waiting', reenter: true }, PASS: { actions: sendTo(id, { type: 'END' }) } },
          },
          done: {},
        },
      }),
    )
    const runner = runnerOn(store, { machines })
    for (const n of names.keys()) {
      await runner.create(`p${n}`, { id: `${n}` })
      await runner.settled()
      await runner.send(`${n}`, { type: 'AGAIN' })
      await runner.settled()
      await runner.send(`${n}`, { type: 'PASS' })
      await until(async () => (await stored(store, `${n}`)).activePath === 'done')
      const states = await Promise.all(
        [`${n}:${part(names[n])}`, `${n}:${part(names[n])}#2`].map((id) => store.load(id)),
      )
      if (names[n] !== 'a#2') expect(states.map((each) => each?.status)).toEqual(['CANCELLED', 'DONE'])
    }
  })

  test('a delayed event may have any name: it fires once, and not after it was cancelled', async () => {
    const store = await openStore(open)
    const machines = names.map((id, n) =>
      setup(anyEvent).createMachine({
        id: `t${n}`,
        context: { got: 0 },
        entry: raise({ type: 'GOT' }, { id, delay: 30 }),
        on: {
          GOT: { actions: assign({ got: ({ context }) => context.got + 1 }) },
          LATER: { actions: raise({ type: 'GOT' }, { id, delay: 3_600_000 }) },
          CANCEL: { actions: cancel(id) },
        },
      }),
    )
    const runner = runnerOn(store, { machines, maxPause: 0.05 })
    keepRunning(runner)
    for (const n of names.keys()) await runner.create(`t${n}`, { id: `${n}` })
    for (const n of names.keys()) {
      await until(async () => ((await contextOf(store, `${n}`)) as { got: number }).got === 1)
      await runner.send(`${n}`, { type: 'LATER' })
    }
    expect((await store.dueTimers(1e12)).map(({ path }) => path).toSorted()).toEqual(names.toSorted())
    for (const n of names.keys()) await runner.send(`${n}`, { type: 'CANCEL' })
    expect(await store.dueTimers(1e12)).toEqual([])
  })

  test('what has no name of its own never takes the place of what has one', async () => {
    const store = await openStore(open)
    const given = ['send.1', 'send.2', 'x.1', 'x.2', '1', '2']
    const machine = setup({ ...anyEvent, actors: { child } }).createMachine({
      id: 'mixed',
      context: { got: [] as string[] },
      entry: enqueueActions(({ enqueue }) => {
        for (const id of given) {
          enqueue.raise({ type: `named ${id}` }, { id, delay: 20 })
          enqueue.spawnChild('child', { id })
        }
        for (const n of [1, 2]) {
          enqueue.raise({ type: `unnamed ${n}` }, { delay: 20 })
          enqueue.spawnChild('child')
        }
      }),
      on: { '*': { actions: assign({ got: ({ context, event }) => [...context.got, event.type] }) } },
    })
    const runner = runnerOn(store, { machines: [machine], maxPause: 0.05 })
    keepRunning(runner)
    await runner.create('mixed', { id: 'm' })
    const got = async () => ((await contextOf(store, 'm')) as { got: string[] }).got
    await until(async () => (await got()).length === given.length + 2)
    expect(new Set(await got()).size).toBe(given.length + 2)
    await runner.settled()
    const ids = [...given, 'harel.actor.1', 'harel.actor.2'].map((id) => `m:${id}`)
    expect(await store.idsWithPrefix('m:')).toEqual(ids.toSorted())
  })
})

test('a name that cannot be kept is refused, with what is allowed, and nothing is written', async () => {
  const store = await openStore()
  for (const id of refused) {
    const timer = setup({}).createMachine({ id: 'timer', entry: raise({ type: 'X' }, { id, delay: 1 }) })
    const parent = setup({ actors: { child } }).createMachine({ id: 'parent', invoke: { src: 'child', id } })
    const runner = runnerOn(store, { machines: [timer, parent] })
    for (const machine of ['timer', 'parent'] as const) {
      await expect(runner.create(machine, { id: 'm' })).rejects.toMatchObject({
        code: 'INVALID_ARGUMENT',
        message: expect.stringMatching(/ of "m" must be a name other than __proto__ .*; got "/),
      })
    }
  }
  expect(await store.idsWithPrefix('m')).toEqual([])
})
