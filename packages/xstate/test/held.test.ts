/** Records of the runner's own under the control plane of another language, which changes the status alone. */
import { type ExecutionStore, isFinished, newEvent, newExecution, type Status } from '@harel/store-base'
import { describe, expect, test } from 'vitest'
import { fromPromise, setup } from 'xstate'
import { all, counting, openStore, runnerOn, stored, stores, sweepUp, TestClock, until } from './helpers.js'

const set = async (store: ExecutionStore, id: string, status: Status) =>
  store.save({ ...(await stored(store, id)), status, finishedAt: isFinished(status) ? 1 : null })

describe.each(stores)('on $name', ({ open }) => {
  test('a promise that is terminated from outside is aborted, and no sweep finds it again', async () => {
    const base = await openStore(open)
    const { store, calls } = counting(base)
    const clock = new TestClock()
    let isAborted = false
    const wait = fromPromise(({ signal }) => {
      signal.addEventListener('abort', () => {
        isAborted = true
      })
      return new Promise(() => {})
    })
    const machine = setup({ actors: { wait } }).createMachine({ id: 'waiter', invoke: { src: 'wait', id: 'w' } })
    const runner = runnerOn(store, { machines: [machine], clock: clock.read })
    await runner.create('waiter', { id: 'm' })
    await until(async () => (await base.load('m:w')) !== undefined)
    for (const id of ['m', 'm:w']) await set(base, id, 'CANCELLED')
    clock.now += 100
    await sweepUp(clock, runner)
    await until(() => isAborted)
    // Of a process that does not run it, too.
    await sweepUp(clock, runner)
    expect([await base.dueTimers(1e18), await base.pendingOutbox(), await base.pendingSpawns()]).toEqual([[], [], []])
    expect(await stored(base, 'm:w')).toMatchObject({ status: 'CANCELLED' })
    calls.clear()
    await sweepUp(clock, runner)
    expect(calls.get('load')).toBeLessThanOrEqual(13)
    expect(runner.warnings).toEqual([])
  })

  const undelivered = async () => {
    const { store, calls } = counting(await openStore(open))
    const clock = new TestClock()
    const machine = setup({ types: { events: {} as { type: 'HELLO' } } }).createMachine({ id: 'late' })
    const runner = runnerOn(store, { machines: [machine], clock: clock.read })
    const emits = [{ targetId: 'late', event: newEvent({ id: 'e', kind: 'HELLO' }) }]
    await store.commit(newExecution({ id: 's', definitionId: 'other' }), { emits })
    await sweepUp(clock, runner, 1)
    const [delivery = ''] = await store.idsWithPrefix('harel.delivery:')
    return { store, calls, clock, runner, delivery }
  }

  test('what could not be delivered and is suspended from outside is tried again when it is resumed', async () => {
    const { store, calls, clock, runner, delivery } = await undelivered()
    await set(store, delivery, 'SUSPENDED')
    await runner.create('late', { id: 'late' })
    calls.clear()
    await sweepUp(clock, runner)
    // The shared record of the sweeps in each of twelve rounds, and what is held twice: it is looked at every half minute.
    expect(calls.get('load')).toBeLessThanOrEqual(14)
    expect(await store.isProcessed('late', 'e')).toBe(false)
    await set(store, delivery, 'RUNNING')
    clock.now += 31
    await sweepUp(clock, runner)
    expect(await store.isProcessed('late', 'e')).toBe(true)
    expect([await store.load(delivery), await store.dueTimers(1e18)]).toEqual([undefined, []])
  })

  test('what could not be delivered and is terminated from outside is given up, and no sweep finds it again', async () => {
    const { store, clock, runner, delivery } = await undelivered()
    await set(store, delivery, 'CANCELLED')
    await runner.create('late', { id: 'late' })
    clock.now += 100
    await sweepUp(clock, runner)
    expect(await store.isProcessed('late', 'e')).toBe(false)
    expect([await store.dueTimers(1e18), await all(runner.parked())]).toEqual([[], []])
  })
})
