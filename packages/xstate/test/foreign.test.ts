import { CorruptRecord, type ExecutionStore, newEvent, newExecution } from '@harel/store-base'
import { describe, expect, test } from 'vitest'
import { createMachine } from 'xstate'
import { all, everythingIn, openStore, runnerOn, stores, sweepUp, TestClock, withMethods } from './helpers.js'

const machine = createMachine({ id: 'Parcel', initial: 'a', states: { a: { on: { GO: 'b' } }, b: {} } })

/** Records as a runner of another language writes them: without what this package keeps under its own key. */
const kinds: readonly [what: string, definitionId: string, context: { [key: string]: never }][] = [
  ['a machine of its own', 'Order', {}],
  ['a machine that is called like one of ours', 'Parcel', {}],
  ['a machine with something else under our key', 'Parcel', { xstate: null as never }],
]

const namesakes: typeof kinds = [
  ['called like what we invoke', 'harel.invoked', {}],
  ['called like what we deliver', 'harel.delivery', {}],
  ['called like what we deliver, and with something else under our key', 'harel.delivery', { xstate: 7 as never }],
]

const statuses = ['RUNNING', 'FAILED', 'SUSPENDED'] as const

async function write(store: ExecutionStore, definitionId: string, context: { [key: string]: never }) {
  for (const status of statuses) {
    const execution = newExecution({ id: status, definitionId, status, activePath: 'Packing', context })
    await store.commit(execution, {
      timers: ['Packing', 'harel.lease', 'harel.retry'].map((path) => ({ action: 'schedule', path, fireAt: 1 })),
      emits: [{ targetId: status, event: newEvent({ kind: 'Pay' }) }],
      spawns: [{ childId: `${status}:Packing:0`, rootPath: 'Packing', context: { seed: 1 } }],
    })
  }
}

describe.each(stores)('on $name', ({ open }) => {
  test.each([...kinds, ...namesakes])(
    'a record of another language, %s, is refused by each command with an error of ours, and left as it is',
    async (_, definitionId, context) => {
      const store = await openStore(open)
      await write(store, definitionId, context)
      const runner = runnerOn(store, { machines: [machine] })
      expect([await all(runner.stuckOn(definitionId, '1')), await all(runner.parked())]).toEqual([[], []])
      const before = await everythingIn(store)
      for (const id of statuses) {
        const calls = {
          send: () => runner.send(id, { type: 'GO' }),
          snapshot: () => runner.snapshot(id),
          suspend: () => runner.suspend(id),
          resume: () => runner.resume(id),
          redrive: () => runner.redrive(id),
          skip: () => runner.redrive(id, { skip: true }),
          unpark: () => runner.unpark(id),
          discard: () => runner.discard(id),
          ...(definitionId !== 'harel.invoked' && {
            cancel: () => runner.cancel(id),
            terminate: () => runner.terminate(id),
          }),
        }
        for (const [name, call] of Object.entries(calls)) {
          const refused = { code: expect.stringMatching(/^(UNKNOWN_MACHINE|CONTROL_REFUSED)$/) }
          await expect(call(), `${name} ${id}`).rejects.toMatchObject(refused)
        }
      }
      expect(await everythingIn(store)).toEqual(before)
    },
  )

  test('a record that cannot be read is named, and hides nothing behind it from stuckOn and parked', async () => {
    const store = await openStore(open)
    const clock = new TestClock()
    const maker = runnerOn(store, { machines: [machine], clock: clock.read, maxAttempts: 1 })
    for (const id of ['a', 'b', 'c']) {
      await maker.create('Parcel', { id })
      const emits = [{ targetId: `no ${id}`, event: newEvent({ kind: 'GO' }) }]
      await store.commit(newExecution({ id: `s-${id}`, definitionId: 'Order' }), { emits })
    }
    await sweepUp(clock, maker, 3)
    const [first, second = '', third] = (await all(maker.parked())).map(({ id }) => id)
    const damaged = withMethods(store, {
      load: async (id) => {
        if (id === 'b' || id === second) throw new CorruptRecord(id, 'it was cut off')
        return store.load(id)
      },
    })
    const runner = runnerOn(damaged, { machines: [machine] })
    expect(await all(runner.stuckOn('Parcel', '1'))).toEqual(['a', 'c'])
    expect((await all(runner.parked())).map(({ id }) => id)).toEqual([first, third])
    expect(runner.warnings).toEqual(['b', second].map((id) => `${id} cannot be read and is passed over`))
  })

  test.each(kinds)('a record of another language, %s, is passed over by sweeps', async (_, definitionId, context) => {
    const store = await openStore(open)
    await write(store, definitionId, context)
    const clock = new TestClock()
    const runner = runnerOn(store, { machines: [machine], clock: clock.read })
    const before = await everythingIn(store)
    await runner.create('Parcel', { id: 'ours' })
    expect([await all(runner.stuckOn('Parcel', '1')), await all(runner.parked())]).toEqual([['ours'], []])
    await sweepUp(clock, runner)
    const after = await everythingIn(store)
    const executions = after.executions.filter(({ id }) => id !== 'ours' && id !== 'harel.sweep')
    expect({ ...after, executions, traces: before.traces }).toEqual(before)
    expect(runner.warnings).toEqual([])
  })
})

test('what another language runs is told from a machine that is missing', async () => {
  const store = await openStore()
  await store.save(newExecution({ id: 'p', definitionId: 'Parcel', status: 'FAILED' }))
  await expect(runnerOn(store, { machines: [machine] }).redrive('p')).rejects.toThrow(
    'execution "p" of "Parcel" was not written by this package; whoever has written it can run it',
  )
})
