import { DatabaseSync } from 'node:sqlite'
import { asyncStore, type ExecutionStore, newEvent, newExecution } from '@harel/store-base'
import { SqliteStore } from '@harel/store-sqlite'
import { expect, onTestFinished, test } from 'vitest'
import { setup } from 'xstate'
import { all, freshFile, openStore, runnerOn, stored, sweepUp, TestClock, withMethods } from './helpers.js'

const counter = setup({ types: { events: {} as { type: string } } }).createMachine({ id: 'counter', on: { INC: {} } })

/** A runner on a file that others write to as well, with an entry parked for each of these. */
async function setUp({ targets = ['nobody'], maxAttempts = 1 } = {}) {
  const file = freshFile()
  const base = await openStore(async () => asyncStore(SqliteStore.open(file)))
  const clock = new TestClock()
  const runner = runnerOn(base, { machines: [counter], clock: clock.read, maxAttempts, random: () => 0 })
  const db = new DatabaseSync(file)
  onTestFinished(() => db.close())
  const sender = newExecution({ id: 'sender', definitionId: 'other' })
  await base.commit(sender, {
    emits: targets.map((targetId) => ({ targetId, event: newEvent({ kind: 'INC' }) })),
  })
  await sweepUp(clock, runner, 2)
  const ids = (await base.idsWithPrefix('harel.delivery:')).toSorted()
  return { base, clock, runner, db, ids, id: ids[0] ?? '' }
}

test('what is parked at its first failure is said to be parked, and not to be tried again', async () => {
  const { runner } = await setUp()
  expect(runner.warnings).toEqual(['event for nobody is parked after one attempt'])
})

test('discard removes nothing of what somebody else has had tried again meanwhile, and says so', async () => {
  const { base, runner, clock, id } = await setUp()
  const meanwhile: Partial<ExecutionStore> = {
    async purge(...given) {
      await runner.unpark(id)
      return base.purge(...given)
    },
  }
  const other = runnerOn(withMethods(base, meanwhile), { machines: [counter], clock: clock.read })
  await expect(other.discard(id)).rejects.toMatchObject({ code: 'CONTROL_REFUSED' })
  expect(await stored(base, id)).toMatchObject({ status: 'RUNNING' })
})

test('discard makes up for lost races, and gives up after `maxConflicts` of them', async () => {
  let lost = 0
  const { base, clock, id } = await setUp()
  const purge: ExecutionStore['purge'] = (...given) => (lost-- > 0 ? Promise.resolve(false) : base.purge(...given))
  const settings = { machines: [counter], clock: clock.read, maxConflicts: 3 }
  const runner = runnerOn(withMethods(base, { purge }), settings)
  lost = 3
  await expect(runner.discard(id)).rejects.toMatchObject({ code: 'TOO_MANY_CONFLICTS' })
  lost = 2
  await runner.discard(id)
  expect(await base.load(id)).toBeUndefined()
})

const damages = [
  '{oops',
  'null',
  '5',
  '{}',
  '{"kind":"event"}',
  '{"kind":"constructor"}',
  '{"kind":"timer","executionId":"x","path":5,"fireAt":1}',
  '{"kind":"spawn","parentId":"p","childId":"c","data":null}',
  '{"kind":"unreadable","queue":"x","seq":1}',
]

test.each(damages)('a parked entry that holds %s hides no other, and can be discarded', async (work) => {
  const { base, runner, id, ids } = await setUp({ targets: ['nobody', 'no one'] })
  const damaged = await stored(base, id)
  damaged.context = { xstate: { work, attempts: 1 } }
  await base.save(damaged)
  runner.warnings.length = 0
  expect((await all(runner.parked())).map((entry) => entry.id)).toEqual(ids.slice(1))
  expect(runner.warnings).toEqual([`${id} is passed over: what it was to deliver cannot be read; discard removes it`])
  await expect(runner.unpark(id)).rejects.toMatchObject({ code: 'CONTROL_REFUSED' })
  await runner.discard(id)
  expect(await base.load(id)).toBeUndefined()
})

test('an entry that is damaged while it waits is parked', async () => {
  const { base, clock, runner, id } = await setUp({ maxAttempts: 20 })
  const damaged = await stored(base, id)
  damaged.context = {}
  await base.save(damaged)
  clock.now += 60
  await sweepUp(clock, runner, 4)
  expect(await stored(base, id)).toMatchObject({ status: 'FAILED', activePath: 'parked' })
  expect(await base.dueTimers(1e12)).toEqual([])
  expect(await base.idsWithPrefix('harel.delivery:')).toEqual([id])
})

test('a row that has been repaired, or is gone, is no longer shown as parked, and leaves no record behind', async () => {
  const { base, clock, runner, db } = await setUp({ targets: [] })
  db.exec(`INSERT INTO harel_outbox (seq, target_id, event) VALUES (0, 'c', '{'), (4, 'c', '{'), (5, 'c', '{')`)
  await sweepUp(clock, runner, 1)
  expect(await all(runner.parked())).toHaveLength(3)
  db.exec('DELETE FROM harel_outbox WHERE seq = 4')
  db.prepare('UPDATE harel_outbox SET event = ? WHERE seq = 5').run(JSON.stringify({ id: 'repaired', kind: 'INC' }))
  expect((await all(runner.parked())).map(({ work }) => work)).toEqual([
    { kind: 'unreadable', queue: 'outbox', seq: 0 },
  ])
  expect(await base.idsWithPrefix('harel.delivery:')).toHaveLength(1)
})

test('to look at a parked row again takes one row, however many stand behind it that cannot be read', async () => {
  const { base, clock, runner, db } = await setUp({ targets: [] })
  for (let seq = 0; seq < 50; seq++) db.prepare(`INSERT INTO harel_outbox VALUES (?, 'c', '{')`).run(seq)
  await sweepUp(clock, runner, 2)
  let told = 0
  const pendingOutbox: ExecutionStore['pendingOutbox'] = (page) =>
    base.pendingOutbox({
      ...page,
      onUnreadable(...row) {
        told += 1
        page?.onUnreadable?.(...row)
      },
    })
  const other = runnerOn(withMethods(base, { pendingOutbox }), { machines: [counter], clock: clock.read })
  const parked = await all(other.parked())
  expect(parked).toHaveLength(50)
  expect(told).toBe(50)
  for (const { id } of parked) await other.discard(id)
  expect(told).toBe(100)
  expect(db.prepare('SELECT count(*) AS n FROM harel_outbox').get()).toEqual({ n: 0 })
})
