import { DatabaseSync } from 'node:sqlite'
import { asyncStore, type JsonValue, newEvent, newExecution } from '@harel/store-base'
import { SqliteStore } from '@harel/store-sqlite'
import { describe, expect, onTestFinished, test } from 'vitest'
import { assign, setup } from 'xstate'
import {
  contextOf,
  counting,
  freshFile,
  openStore,
  runnerOn,
  stored,
  sweepUp,
  TestClock,
  withMethods,
} from './helpers.js'

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

describe('many rows that cannot be read', () => {
  const rows = 750

  /** What is read and what is stored is counted. */
  async function setUpMany() {
    const file = freshFile()
    const base = await openStore(async () => asyncStore(SqliteStore.open(file)))
    const db = new DatabaseSync(file)
    onTestFinished(() => db.close())
    const insert = db.prepare(`INSERT INTO harel_outbox (target_id, event) VALUES ('c', '{')`)
    for (let n = 0; n < rows; n++) insert.run()
    const counts = { read: 0, stored: 0, atOnce: 0, mostAtOnce: 0 }
    const store = withMethods(base, {
      pendingOutbox: (page) =>
        base.pendingOutbox({
          ...page,
          onUnreadable(...row) {
            counts.read += 1
            page?.onUnreadable?.(...row)
          },
        }),
      async commit(execution, changes) {
        if (execution.definitionId !== 'harel.delivery') return base.commit(execution, changes)
        counts.stored += 1
        counts.atOnce += 1
        counts.mostAtOnce = Math.max(counts.mostAtOnce, counts.atOnce)
        const seqs = await base.commit(execution, changes)
        counts.atOnce -= 1
        return seqs
      },
    })
    const clock = new TestClock()
    const runner = runnerOn(store, { machines: [counter], clock: clock.read, random: () => 0, pageSize: 100 })
    await runner.create('counter', { id: 'c' })
    const send = () =>
      base.commit(newExecution({ id: `sender ${Math.random()}`, definitionId: 'other' }), {
        emits: [{ targetId: 'c', event: newEvent({ kind: 'INC' }) }],
      })
    return { base, db, counts, clock, runner, send }
  }

  test('are parked page by page, one after the other, and what stands behind them is done', async () => {
    const { base, counts, clock, runner, send } = await setUpMany()
    await send()
    await runner.sweep()
    expect(counts).toMatchObject({ stored: 100, mostAtOnce: 1 })
    await sweepUp(clock, runner, 8)
    expect(counts).toMatchObject({ stored: rows, mostAtOnce: 1 })
    expect(await contextOf(base, 'c')).toEqual({ n: 1 })
  })

  test('are not read again by each sweep of an idle runner, and hide nothing that comes later', async () => {
    const { base, db, counts, clock, runner, send } = await setUpMany()
    await sweepUp(clock, runner, 8)
    counts.read = 0
    await send()
    await sweepUp(clock, runner, 1)
    // What is left of the last page.
    expect(counts.read).toBeLessThanOrEqual(100)
    expect(await contextOf(base, 'c')).toEqual({ n: 1 })
    db.prepare('UPDATE harel_outbox SET event = ? WHERE seq = 150').run(JSON.stringify({ id: 'repaired', kind: 'INC' }))
    await sweepUp(clock, runner, 40)
    expect(await contextOf(base, 'c')).toEqual({ n: 2 })
    expect(counts.stored).toBe(rows)
  })
})

test('an entry whose seq no store can be told is left alone, and said to be so once', async () => {
  const { base, clock, runner } = await setUp()
  const entry = { seq: 2 ** 53, targetId: 'c', event: newEvent({ kind: 'INC' }) }
  const store = withMethods(base, { pendingOutbox: async () => [entry] })
  const other = runnerOn(store, { machines: [counter], clock: clock.read, pageSize: 1 })
  await sweepUp(clock, other, 5)
  expect(other.warnings).toEqual([`entries of the outbox whose seq is above ${2 ** 53 - 1} are left alone`])
  expect(await contextOf(base, 'c')).toEqual({ n: 0 })
  await runner.close()
})
