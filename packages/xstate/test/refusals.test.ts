/** What is refused writes nothing: everything that a store has is compared, before and after. */
import { DatabaseSync } from 'node:sqlite'
import type { ExecutionStore } from '@harel/store-base'
import { AsyncSqliteStore } from '@harel/store-sqlite'
import { type DurableRunner, execution, type RunnerOptions } from '@harel/xstate'
import { expect, onTestFinished, test } from 'vitest'
import { type AnyStateMachine, assign, createMachine, sendTo, setup } from 'xstate'
import { all, freshFile, runnerOn, withMethods } from './helpers.js'

/** Each row of each table. */
function rowsIn(file: string): { [table: string]: unknown[] } {
  using database = new DatabaseSync(file, { readOnly: true })
  const tables = database.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name").all()
  return Object.fromEntries(
    tables.map(({ name }) => [String(name), database.prepare(`SELECT * FROM "${name}" ORDER BY 1, 2`).all()]),
  )
}

const child = createMachine({ id: 'child', initial: 'a', states: { a: { after: { 1000: 'b' } }, b: {} } })

/** Each event of it acts, sends, starts, and arms a timer. */
const busy = (version: string, state: string) =>
  setup({
    types: { events: {} as { type: string }, context: {} as { n: number } },
    actors: { child },
    actions: { act: () => {} },
  }).createMachine({
    id: 'busy',
    version,
    context: { n: 0 },
    entry: ['act', sendTo(() => execution('other'), { type: 'HELLO' })],
    initial: state,
    states: {
      [state]: {
        invoke: { src: 'child', id: 'kid' },
        after: { 60000: 'later' },
        on: {
          GO: {
            target: state,
            reenter: true,
            actions: ['act', assign({ n: ({ context }) => context.n + 1 }), sendTo('kid', { type: 'HELLO' })],
          },
        },
      },
      later: {},
    },
  })

const other = createMachine({ id: 'other', on: { HELLO: {} } })

type Runner = DurableRunner<readonly AnyStateMachine[]>
interface Refused {
  what: string
  code: string
  options: RunnerOptions
  call: (runner: Runner) => unknown
  store?: (store: ExecutionStore) => ExecutionStore
}

const same = { machines: [busy('1', 'on'), other] }
const go = (runner: Runner) => runner.send('b', { type: 'GO' }, { eventId: 'e' })

const refusals: Refused[] = [
  { what: 'an unknown machine', code: 'UNKNOWN_MACHINE', options: same, call: (runner) => runner.create('nothing') },
  { what: 'an event for an unknown machine', code: 'UNKNOWN_MACHINE', options: { machines: [other] }, call: go },
  {
    what: 'an event for an unknown version',
    code: 'UNKNOWN_MACHINE',
    options: { machines: [busy('2', 'on')] },
    call: go,
  },
  {
    what: 'an unknown event',
    code: 'UNKNOWN_EVENT',
    options: { ...same, unknownEvents: 'refuse' },
    call: (runner) => runner.send('b', { type: 'NO' }, { eventId: 'e' }),
  },
  {
    what: 'an id in use',
    code: 'EXECUTION_ALREADY_EXISTS',
    options: same,
    call: (runner) => runner.create('busy', { id: 'b' }),
  },
  {
    what: 'an id that comes into use at the same moment',
    code: 'EXECUTION_ALREADY_EXISTS',
    options: same,
    call: (runner) => runner.create('busy', { id: 'b' }),
    store: (store) => withMethods(store, { load: async (id) => (id === 'b' ? undefined : store.load(id)) }),
  },
  { what: 'a machine that has changed', code: 'MACHINE_CHANGED', options: { machines: [busy('1', 'off')] }, call: go },
  {
    what: 'the cancellation of a machine that has changed',
    code: 'MACHINE_CHANGED',
    options: { machines: [busy('1', 'off')] },
    call: (runner) => runner.cancel('b'),
  },
]

test.each(refusals)('of $what nothing is written: $code', async ({ code, options, call, store: changed }) => {
  const file = freshFile()
  const store = await AsyncSqliteStore.open(file)
  onTestFinished(() => store.close())
  const writer = runnerOn(store, same)
  await writer.create('other', { id: 'other' })
  await writer.create('busy', { id: 'b' })
  await writer.settled()
  const runner: Runner = runnerOn(changed?.(store) ?? store, { trace: true, ...options })
  // Publishes its machines.
  await all(runner.parked())
  const before = rowsIn(file)
  expect(Object.values(before).flat().length).toBeGreaterThan(5)
  await expect(call(runner)).rejects.toMatchObject({ code })
  await runner.settled()
  expect(rowsIn(file)).toEqual(before)
  // The same call writes where nothing stands in its way.
  await writer.send('b', { type: 'GO' }, { eventId: 'e' })
  expect(rowsIn(file)).not.toEqual(before)
})
