import { DatabaseSync } from 'node:sqlite'
import { asyncStore, type JsonValue, newEvent, newExecution } from '@harel/store-base'
import { SqliteStore } from '@harel/store-sqlite'
import { describe, expect, onTestFinished, test } from 'vitest'
import { assign, setup } from 'xstate'
import { contextOf, counting, freshFile, openStore, runnerOn, stored, sweepUp, TestClock } from './helpers.js'

const counter = setup({ types: { events: {} as { type: string } } }).createMachine({
  id: 'counter',
  context: { n: 0 },
  on: { INC: { actions: assign({ n: ({ context }) => context.n + 1 }) } },
})

/** A runner, with an execution `c`, on a file that others write to as well. */
async function setUp(options = {}) {
  const file = freshFile()
  const base = await openStore(async () => asyncStore(SqliteStore.open(file)))
  const { store, calls } = counting(base)
  const clock = new TestClock()
  const runner = runnerOn(store, { machines: [counter], clock: clock.read, random: () => 0, ...options })
  await runner.create('counter', { id: 'c' })
  const db = new DatabaseSync(file)
  onTestFinished(() => db.close())
  const send = (target = 'c') =>
    base.commit(newExecution({ id: `sender of ${Math.random()}`, definitionId: 'other' }), {
      emits: [{ targetId: target, event: newEvent({ kind: 'INC' }) }],
    })
  return { base, calls, clock, runner, db, send }
}

describe('the record that all sweeps share', () => {
  const state = { nextAt: 0, pause: 0.1, claims: [], busy: {} }
  const timer = { executionId: '', path: 'p', fireAt: 0 }

  test.each<[string, JsonValue]>([
    ['is empty', {}],
    ['is a number', 5],
    ['has a claim that is none', { ...state, claims: [null] }],
    ['has positions that are none', { ...state, outbox: -1, spawns: 0.5, timers: timer }],
    ['has no list of who is busy', { ...state, busy: [1], claims: {} }],
  ])('holds up nobody where it %s', async (_, xstate) => {
    const { base, clock, runner, send } = await setUp()
    const sweep = newExecution({ id: 'harel.sweep', definitionId: 'harel.sweep', status: 'RUNNING' })
    sweep.context = { xstate }
    await base.save(sweep)
    await send()
    await sweepUp(clock, runner, 2)
    expect(await contextOf(base, 'c')).toEqual({ n: 1 })
  })

  test('is made again where it cannot be read, with a warning', async () => {
    const { base, clock, runner, db, send } = await setUp()
    await sweepUp(clock, runner, 3)
    db.exec(`UPDATE harel_executions SET data = '{oops' WHERE id = 'harel.sweep'`)
    await send()
    await sweepUp(clock, runner, 2)
    expect(await contextOf(base, 'c')).toEqual({ n: 1 })
    expect(await stored(base, 'harel.sweep')).toMatchObject({ status: 'RUNNING' })
    expect(runner.warnings).toContain('harel.sweep cannot be read and is made again')
  })
})
