import type { ExecutionStore } from '@harel/store-base'
import { DurableRunner } from '@harel/xstate'
import { describe, expect, test } from 'vitest'
import { fromPromise, setup } from 'xstate'
import { counting, openStore, runnerOn, stored } from './helpers.js'

const anyEvent = { types: { events: {} as { type: string; [key: string]: unknown } } }
const lamp = setup({ ...anyEvent }).createMachine({ id: 'lamp', on: { PRESS: {} } })

const invalid = (argument: string) => ({ code: 'INVALID_ARGUMENT', argument })

test('create refuses what is no id, no priority, no option at all, and asks nothing of the store', async () => {
  const { store, calls } = counting(await openStore())
  const runner = runnerOn(store, { machines: [lamp] })
  for (const id of [5, null, {}, '', 'a\0b', 'x\udfff', 'x'.repeat(2000), 'harel.x']) {
    await expect(runner.create('lamp', { id: id as string })).rejects.toMatchObject(invalid('options.id'))
  }
  for (const priority of [-1, 5, 1.5, Number.NaN, '2', null]) {
    const refused = expect(runner.create('lamp', { priority: priority as number })).rejects
    await refused.toMatchObject(invalid('options.priority'))
  }
  for (const options of [{ idd: 'q' }, 'q', 7, []]) {
    await expect(runner.create('lamp', options as object)).rejects.toMatchObject(invalid('options'))
  }
  expect([...calls]).toEqual([])
})

test('send refuses what is no event and no event id, and says which', async () => {
  const { store, calls } = counting(await openStore())
  const runner = runnerOn(store, { machines: [lamp] })
  for (const event of [null, undefined, 'PRESS', 5, [], () => 1]) {
    await expect(runner.send('l', event as never)).rejects.toMatchObject(invalid('event'))
  }
  for (const type of [undefined, 5, null]) {
    await expect(runner.send('l', { type } as never)).rejects.toMatchObject(invalid('event.type'))
  }
  for (const eventId of ['', 5, null, 'a\0']) {
    const sent = runner.send('l', { type: 'PRESS' }, { eventId: eventId as string })
    await expect(sent).rejects.toMatchObject(invalid('options.eventId'))
  }
  await expect(runner.send('l', { type: 'PRESS' }, { eventID: 'e' } as object)).rejects.toMatchObject(
    invalid('options'),
  )
  await expect(runner.send(5 as never, { type: 'PRESS' })).rejects.toMatchObject(invalid('id'))
  expect([...calls]).toEqual([])
})

test('on refuses what is no type and what cannot be called', async () => {
  const runner = runnerOn(await openStore(), { machines: [lamp] })
  expect(() => runner.on(5 as never, () => {})).toThrow(expect.objectContaining(invalid('type')))
  expect(() => runner.on('rang', 5 as never)).toThrow(expect.objectContaining(invalid('listener')))
})

test('a runner refuses what is no store, and tells that one was not awaited', async () => {
  const none = [undefined, null, {}, 'orders.db', openStore()]
  for (const store of none) {
    const make = () => new DurableRunner(store as ExecutionStore, { machines: [lamp] })
    expect(make).toThrow(expect.objectContaining(invalid('store')))
  }
  const make = () => new DurableRunner(openStore() as unknown as ExecutionStore, { machines: [lamp] })
  expect(make).toThrow('got a promise; was it to be awaited?')
})

test('nobody outside can tell a machine that its actor is done, has failed, or that its time is up', async () => {
  const store = await openStore()
  const never = fromPromise(() => new Promise<string>(() => {}))
  const machine = setup({ ...anyEvent, actors: { never } }).createMachine({
    id: 'paying',
    initial: 'a',
    states: {
      a: {
        invoke: { src: 'never', id: 'pay', onDone: 'b', onError: 'b' },
        after: { 3600000: 'b' },
      },
      b: {},
    },
  })
  const runner = runnerOn(store, { machines: [machine] })
  await runner.create('paying', { id: 'p' })
  const forged = [
    'done.actor.pay',
    'error.actor.pay',
    'snapshot.pay',
    'after.3600000.paying.a',
    'init',
    'stop',
    'x',
    '',
  ]
  for (const type of [...forged.map((name) => `xstate.${name}`), 'harel.cancel', 'harel.suspend']) {
    await expect(runner.send('p', { type, output: { paid: true } })).rejects.toMatchObject(invalid('event.type'))
  }
  expect(await stored(store, 'p')).toMatchObject({ activePath: 'a', version: 1 })
})

describe("with unknownEvents 'refuse'", () => {
  const machine = setup(anyEvent).createMachine({
    id: 'picky',
    initial: 'a',
    on: { 'harel.cancel': '.b' },
    states: {
      a: { on: { GO: 'b', STAY: {}, 'mouse.*': {} }, after: { 3600000: 'b' } },
      b: {},
    },
  })
  const greedy = setup(anyEvent).createMachine({ id: 'greedy', on: { '*': {} } })
  const setUp = async () => {
    const runner = runnerOn(await openStore(), { machines: [machine, greedy], unknownEvents: 'refuse' })
    await runner.create('picky', { id: 'p' })
    await runner.create('greedy', { id: 'g' })
    return runner
  }

  test('what a machine takes is let through, also where it does nothing with it or takes any', async () => {
    const runner = await setUp()
    for (const type of ['STAY', 'mouse', 'mouse.up', 'mouse.up.left', 'GO']) {
      expect((await runner.send('p', { type })).outcome).toBe('handled')
    }
    for (const type of ['whatever', 'a.b', '*']) expect((await runner.send('g', { type })).outcome).toBe('handled')
  })

  test('what it does not take is refused, with what it does take and can be sent', async () => {
    const runner = await setUp()
    for (const type of ['STOP', 'mousey', 'mous', 'constructor', '__proto__', 'toString', '']) {
      await expect(runner.send('p', { type })).rejects.toMatchObject({
        code: 'UNKNOWN_EVENT',
        message: `"p" knows no event ${JSON.stringify(type)}; it knows GO, STAY, mouse.*`,
      })
    }
  })
})
