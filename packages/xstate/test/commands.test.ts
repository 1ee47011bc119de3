/** Arguments of the methods that work on many executions or command one, and of the constructor. */
import { DurableRunner } from '@harel/xstate'
import { expect, test } from 'vitest'
import { createMachine, setup } from 'xstate'
import { all, counting, openStore, runnerOn } from './helpers.js'

const machine = createMachine({ id: 'm' })
const invalid = (argument: string, message = /must be .*; got /) => ({
  code: 'INVALID_ARGUMENT',
  argument,
  message: expect.stringMatching(message),
})

const setUp = async () => {
  const { store, calls } = counting(await openStore())
  return { calls, runner: runnerOn(store, { machines: [machine] }) }
}

test.each<[string, string, (runner: DurableRunner<[typeof machine]>) => unknown]>([
  ['redrive', 'options.skip', (runner) => runner.redrive('x', { skip: 'false' as never })],
  ['redrive', 'options.skip', (runner) => runner.redrive('x', { skip: null as never })],
  ['redrive', 'options', (runner) => runner.redrive('x', { skp: true } as never)],
  ['redrive', 'options', (runner) => runner.redrive('x', null as never)],
  ['redrive', 'id', (runner) => runner.redrive('')],
  ['cancel', 'options', (runner) => runner.cancel('x', { resaon: 'y' } as never)],
  ['cancel', 'options', (runner) => runner.cancel('x', null as never)],
  ['cancel', 'options', (runner) => runner.cancel('x', 'because' as never)],
  ['cancel', 'options.reason', (runner) => runner.cancel('x', { reason: 5 as never })],
  ['cancel', 'options.reason', (runner) => runner.cancel('x', { reason: null as never })],
  ['cancel', 'id', (runner) => runner.cancel(5 as never)],
  ['run', 'options', (runner) => runner.run({ sgnal: AbortSignal.abort() } as never)],
  ['run', 'options', (runner) => runner.run(null as never)],
  ['run', 'options', (runner) => runner.run(AbortSignal.abort() as never)],
  ['run', 'options.signal', (runner) => runner.run({ signal: 5 as never })],
  ['run', 'options.signal', (runner) => runner.run({ signal: null as never })],
  ['stuckOn', 'version', (runner) => all(runner.stuckOn('m', undefined as never))],
  ['stuckOn', 'version', (runner) => all(runner.stuckOn('m', 1 as never))],
  ['stuckOn', 'definitionId', (runner) => all(runner.stuckOn(undefined as never, '1'))],
  ['create', 'definitionId', (runner) => runner.create(Symbol('m') as never)],
  ['create', 'definitionId', (runner) => runner.create(undefined as never)],
])('%s refuses what is none of its arguments by name, %s, and asks nothing of the store', async (_, argument, call) => {
  const { calls, runner } = await setUp()
  await expect(call(runner)).rejects.toMatchObject(invalid(argument))
  expect([...calls]).toEqual([])
})

test('the message for an unknown machine shows no more of its id than says which it is', async () => {
  const { runner } = await setUp()
  const refused = await runner.create('x'.repeat(1000) as never).catch((error: unknown) => error)
  expect(refused).toMatchObject({ code: 'UNKNOWN_MACHINE' })
  expect((refused as Error).message.length).toBeLessThan(200)
  await expect(runner.create('x'.repeat(100_000) as never)).rejects.toMatchObject(invalid('definitionId'))
})

test.each<[string, object]>([
  ['options', { concurency: 1 }],
  ['lease', { lease: 7e6 }],
  ['grace', { grace: 7e6 }],
  ['maxPause', { maxPause: Number.POSITIVE_INFINITY }],
])('an option that is none is refused by name, %s, with what is allowed: %j', async (argument, option) => {
  const store = await openStore()
  const make = () => new DurableRunner(store, { machines: [machine], ...option })
  const message =
    argument === 'options' ? /than machines, migrate, .* \(has "concurency"\)/ : /at most 2147483.647; got /
  expect(make).toThrow(expect.objectContaining(invalid(argument, message)))
})

const cyclic: { self?: unknown } = {}
cyclic.self = cyclic

test.each<[string, () => unknown, RegExp]>([
  ['no machine', () => null, /^machines\[1\] must be made by createMachine of XState 5; got null$/],
  ['a machine without an id', () => createMachine({}), /^machines\[1\] has no id;/],
  ['an empty id', () => createMachine({ id: '' }), /^the id of machines\[1\] must be .* 1024 UTF-8 bytes .*; got ""$/],
  [
    'too long an id',
    () => createMachine({ id: 'x'.repeat(1025) }),
    /^the id of machines\[1\] must be .*1025 characters/,
  ],
  ['a reserved id', () => createMachine({ id: 'harel.x' }), /^the id of machines\[1\], "harel.x", is reserved/],
  [
    'an empty version',
    () => createMachine({ id: 'v', version: '' }),
    /^the version of machine "v" must be .*; got ""$/,
  ],
  [
    'a version that is no text',
    () => createMachine({ id: 'v', version: 2 as never }),
    /^the version of machine "v" .*; got 2$/,
  ],
  [
    'an actor without an id',
    () => setup({ actors: { a: createMachine({}) } }).createMachine({ id: 'p' }),
    /^an actor of machine "p" has no id/,
  ],
  [
    'meta with a bigint',
    () => createMachine({ id: 'big', meta: { n: 1n } }),
    /^machine "big" has what JSON does not carry.*BigInt/,
  ],
  [
    'params with a cycle',
    () => createMachine({ id: 'round', entry: { type: 'act', params: cyclic } as never }),
    /^machine "round" has what JSON does not carry.*circular/s,
  ],
])(
  'among the machines, %s is refused when the runner is made, with where it stands and what came',
  async (_, made, message) => {
    const store = await openStore()
    const make = () => new DurableRunner(store, { machines: [machine, made() as never] })
    expect(make).toThrow(expect.objectContaining({ code: 'INVALID_MACHINE', message: expect.stringMatching(message) }))
  },
)
