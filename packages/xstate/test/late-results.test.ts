/** Results that were stored and sent, and come when their machine has let go of what it had invoked. */
import { describe, expect, onTestFinished, test } from 'vitest'
import { assign, fromPromise, setup } from 'xstate'
import { all, openStore, runnerOn, stored, stores, sweepUp, TestClock, until, withMethods } from './helpers.js'

const asking = (answer: () => Promise<string>) =>
  setup({
    types: { events: {} as { type: string; [key: string]: unknown }, context: {} as { heard: string[] } },
    actors: { ask: fromPromise(answer) },
    actions: { hear: assign({ heard: ({ context, event }) => [...context.heard, event.type] }) },
  }).createMachine({
    id: 'asking',
    context: { heard: [] },
    initial: 'asking',
    states: {
      asking: {
        invoke: { src: 'ask', id: 'ask', onDone: { target: 'answered', actions: 'hear' } },
        on: { LEAVE: 'left', END: 'ended' },
      },
      // Whatever comes would be heard.
      left: { on: { BACK: 'asking', '*': { actions: 'hear' } } },
      answered: {},
      ended: { type: 'final' },
    },
  })

describe.each(stores)('on $name', ({ open }) => {
  test.each([
    ['left the state', ['LEAVE'], { status: 'RUNNING', activePath: 'left' }],
    ['entered it again', ['LEAVE', 'BACK'], { status: 'RUNNING', activePath: 'asking' }],
    ['come to its end', ['END'], { status: 'DONE', activePath: 'ended' }],
  ])('a result that lies in the outbox when its machine has %s is dropped, and no more', async (_, types, state) => {
    const store = await openStore(open)
    const clock = new TestClock()
    const gate = Promise.withResolvers<string>()
    const over = Promise.withResolvers<void>()
    const result = 'harel.result:m:ask'
    // As a process that dies between the commit of the result and its delivery.
    const dying = withMethods(store, {
      loadForEvent: async (id, eventId) => {
        if (eventId === result) await over.promise
        return store.loadForEvent(id, eventId)
      },
    })
    const dead = runnerOn(dying, { machines: [asking(() => gate.promise)], clock: clock.read })
    onTestFinished(() => over.resolve())
    await dead.create('asking', { id: 'm' })
    await until(async () => (await store.load('m:ask')) !== undefined)
    gate.resolve('late')
    await until(async () => (await store.pendingOutbox()).some(({ event }) => event.id === result))
    // What it still has to say is never said.
    const runner = runnerOn(store, { machines: [asking(() => new Promise(() => {}))], clock: clock.read })
    for (const type of types) await runner.send('m', { type })
    await runner.settled()
    expect((await store.pendingOutbox()).map(({ event }) => event.id)).toContain(result)
    const [machine, promise] = [await stored(store, 'm'), await stored(store, 'm:ask')]
    await sweepUp(clock, runner, 3)
    expect(await store.pendingOutbox()).toEqual([])
    const after = await stored(store, 'm')
    expect(after).toMatchObject({ ...state, context: { xstate: { context: { heard: [] } } }, deferred: [] })
    // Nothing but the mark of the result, of which an execution that has ended has no need.
    const isMarked = state.status === 'RUNNING'
    expect(await store.isProcessed('m', result)).toBe(isMarked)
    const { version, updatedAt } = after
    expect(version).toBe(machine.version + (isMarked ? 1 : 0))
    expect(after).toEqual({ ...machine, version, updatedAt })
    expect(await stored(store, 'm:ask')).toEqual(promise)
    expect([await all(runner.parked()), runner.warnings]).toEqual([[], []])
    await sweepUp(clock, runner, 3)
    expect((await stored(store, 'm')).version).toBe(version)
  })
})
