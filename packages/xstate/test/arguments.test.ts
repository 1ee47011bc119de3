import { type ExecutionStore, newEvent, newExecution } from '@harel/store-base'
import { DictStore } from '@harel/store-dict'
import { DurableRunner } from '@harel/xstate'
import { describe, expect, test } from 'vitest'
import { fromPromise, setup } from 'xstate'
import { all, counting, openStore, runnerOn, stored } from './helpers.js'

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
  for (const eventId of ['', 5, null, 'a\0', 'timeout:l:x:1.0', 'harel.result:l:p']) {
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
  expect(() => new DurableRunner(new DictStore() as never, { machines: [lamp] })).toThrow('got a synchronous one')
})

test('a runner refuses a clock in milliseconds', async () => {
  const store = await openStore()
  for (const clock of [Date.now, () => Number.NaN, () => new Date() as never]) {
    const make = () => new DurableRunner(store, { machines: [lamp], clock })
    expect(make).toThrow(expect.objectContaining(invalid('clock')))
  }
})

test('a runner refuses options that are none', async () => {
  const store = await openStore()
  for (const options of [undefined, null, 7, [lamp]]) {
    expect(() => new DurableRunner(store, options as never)).toThrow(expect.objectContaining(invalid('options')))
  }
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

describe('a command on what is no machine is refused, and says what it is', () => {
  const never = fromPromise(() => new Promise(() => {}))
  const machine = setup({ actors: { never } }).createMachine({ id: 'waiting', invoke: { src: 'never', id: 'never' } })

  const setUp = async () => {
    const store = await openStore()
    const runner = runnerOn(store, { machines: [machine], maxAttempts: 1 })
    await runner.create('waiting', { id: 'w' })
    const event = newEvent({ kind: 'LOST' })
    await store.commit(newExecution({ id: 's', definitionId: 'other' }), { emits: [{ targetId: 'nobody', event }] })
    await runner.sweep()
    await runner.settled()
    const [parked] = await all(runner.parked())
    return { runner, ids: { parked: parked?.id ?? '', invoked: 'w:never', sweep: 'harel.sweep' } }
  }

  test.each([
    ['parked', /could not be delivered; use unpark or discard/],
    ['invoked', /is no machine, but what one has invoked/],
    ['sweep', /belongs to the runner/],
  ] as const)('%s', async (name, message) => {
    const { runner, ids } = await setUp()
    const refused = { code: 'CONTROL_REFUSED', message: expect.stringMatching(message) }
    const { [name]: id } = ids
    await expect(runner.snapshot(id)).rejects.toMatchObject(refused)
    if (name === 'invoked') return
    await expect(runner.send(id, { type: 'PRESS' })).rejects.toMatchObject({ code: 'CONTROL_REFUSED' })
    for (const command of ['terminate', 'cancel', 'suspend', 'resume', 'redrive'] as const) {
      await expect(runner[command](id), command).rejects.toMatchObject(refused)
    }
  })
})

test('a machine whose start has failed has no state to show before it is redriven', async () => {
  let broken = true
  const entry = () => {
    if (broken) throw new Error('not yet')
  }
  const machine = setup({ ...anyEvent }).createMachine({ id: 'm', entry, initial: 'a', states: { a: {} } })
  const runner = runnerOn(await openStore(), { machines: [machine] })
  const refused = { code: 'CONTROL_REFUSED', message: '"x" has no state: its start has not succeeded' }
  expect(await runner.create('m', { id: 'x' })).toMatchObject({ status: 'FAILED', activePath: null })
  await expect(runner.snapshot('x')).rejects.toMatchObject(refused)
  expect((await runner.send('x', { type: 'PRESS' })).outcome).toBe('deferred')
  broken = false
  await runner.redrive('x')
  await runner.settled()
  expect((await runner.snapshot('x')).value).toBe('a')
})
