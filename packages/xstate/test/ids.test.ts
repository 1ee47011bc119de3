/** Ids that the runner makes of those that it is given: none is another's, and none is too long. */
import { InvalidArgument } from '@harel/store-base'
import { currentEffect, execution } from '@harel/xstate'
import { expect, test } from 'vitest'
import { assign, fromPromise, sendTo, setup, spawnChild } from 'xstate'
import { contextOf, keepRunning, openStore, runnerOn, stored, until } from './helpers.js'

const anyEvent = { types: { events: {} as { type: string; [key: string]: unknown } } }

const echo = fromPromise(async () => 'paid')
const paying = setup({ ...anyEvent, actors: { echo } }).createMachine({
  id: 'paying',
  initial: 'a',
  states: { a: { on: { GO: 'b' } }, b: { invoke: { src: 'echo', id: 'p', onDone: 'c' } }, c: {} },
})

test('no event id of a caller has an event of the runner itself taken for a repetition', async () => {
  const store = await openStore()
  const delaying = setup(anyEvent).createMachine({
    id: 'delaying',
    context: { got: 0 },
    on: {
      GO: { actions: sendTo(({ self }) => execution(self.id), { type: 'LATE' }, { id: 'late', delay: 20 }) },
      LATE: { actions: assign({ got: ({ context }) => context.got + 1 }) },
    },
  })
  const runner = runnerOn(store, { machines: [paying, delaying], maxPause: 0.05 })
  keepRunning(runner)
  await runner.create('paying', { id: 'o' })
  await runner.send('o', { type: 'X' }, { eventId: 'o:p:result' })
  await runner.send('o', { type: 'X' }, { eventId: 'o:p:taken' })
  for (const eventId of ['harel.result:o:p', 'harel.taken:o:p', 'timeout:d:late:1.0']) {
    await expect(runner.send('o', { type: 'X' }, { eventId }), eventId).rejects.toThrow(InvalidArgument)
  }
  await runner.send('o', { type: 'GO' })
  await until(async () => (await stored(store, 'o')).activePath === 'c')
})

test('an id that is allowed is never too long for what is made of it: a result, an answer that is late, a purge', async () => {
  const store = await openStore()
  const id = 'i'.repeat(1022)
  const machine = setup({ ...anyEvent, actors: { echo } }).createMachine({
    id: 'long',
    initial: 'a',
    states: {
      a: {
        entry: sendTo(() => execution('o'), { type: 'GO' }, { id: 'l'.repeat(1000), delay: 20 }),
        invoke: { src: 'echo', id: 'p', onDone: 'b' },
      },
      b: {},
      c: { type: 'final' },
    },
    on: { END: '.c' },
  })
  const runner = runnerOn(store, { machines: [machine, paying], maxPause: 0.05 })
  keepRunning(runner)
  await runner.create('paying', { id: 'o' })
  await runner.create('long', { id })
  await until(async () => (await stored(store, id)).activePath === 'b')
  await until(async () => (await stored(store, 'o')).activePath === 'c')
  await runner.send(id, { type: 'END' })
  await runner.settled()
  expect(await runner.purge(id)).toBe(true)
  const longest = 'i'.repeat(1024)
  await runner.create('paying', { id: longest })
  await runner.terminate(longest)
  expect(await runner.purge(longest)).toBe(true)
})

test('an actor whose execution would have too long an id is refused with the limit, and nothing is written', async () => {
  const store = await openStore()
  const runner = runnerOn(store, { machines: [paying] })
  const id = 'i'.repeat(1023)
  await runner.create('paying', { id })
  await expect(runner.send(id, { type: 'GO' })).rejects.toMatchObject({
    code: 'INVALID_ARGUMENT',
    message: expect.stringMatching(/the id of the actor "p" of .* at most 1024 UTF-8 bytes together; got 1025/),
  })
  expect(await stored(store, id)).toMatchObject({ activePath: 'a', version: 1 })
})

test('two actors never share an execution, whatever they are called, and no key of one is that of an action', async () => {
  const store = await openStore()
  const keys: string[] = []
  const act = () => void keys.push(currentEffect().idempotencyKey)
  const note = fromPromise(async () => act())
  const leaf = setup({ ...anyEvent }).createMachine({ id: 'leaf' })
  const middle = setup({ ...anyEvent, actors: { leaf } }).createMachine({
    id: 'middle',
    invoke: { src: 'leaf', id: 'c' },
  })
  const machine = setup({ ...anyEvent, actors: { leaf, middle, note }, actions: { charge: act } }).createMachine({
    id: 'root',
    context: { child: null as unknown },
    entry: [
      spawnChild('middle', { id: 'b' }),
      spawnChild('leaf', { id: 'b:c' }),
      spawnChild('leaf', { id: 'b%3Ac' }),
      spawnChild('note', { id: 'start:0:charge' }),
      'charge',
    ],
  })
  const runner = runnerOn(store, { machines: [machine] })
  await runner.create('root', { id: 'a' })
  await runner.settled()
  await until(() => keys.length === 2)
  expect(keys.toSorted()).toEqual(['a:start%3A0%3Acharge', 'a:start:0:charge'])
  expect(await store.idsWithPrefix('a:')).toEqual(['a:b', 'a:b%253Ac', 'a:b%3Ac', 'a:b:c', 'a:start%3A0%3Acharge'])
  expect(await contextOf(store, 'a')).toEqual({ child: null })
})

test.each([null, undefined, '', 5, 'x'.repeat(1025)])(
  'execution(%j) is refused before anything is written: nothing that is sent is lost',
  async (id) => {
    const store = await openStore()
    const machine = setup(anyEvent).createMachine({
      id: 'sender',
      on: { GO: { actions: sendTo(() => execution(id as string), { type: 'X' }) } },
    })
    const runner = runnerOn(store, { machines: [machine] })
    await runner.create('sender', { id: 's' })
    await expect(runner.send('s', { type: 'GO' })).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
      argument: 'the id of execution()',
    })
    expect(await stored(store, 's')).toMatchObject({ status: 'RUNNING', version: 1 })
  },
)
