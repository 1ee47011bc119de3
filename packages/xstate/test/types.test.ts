import type { ExecutionStore } from '@harel/store-base'
import type { DurableRunner, IdOf } from '@harel/xstate'
import { expectTypeOf, test } from 'vitest'
import { type AnyStateMachine, createMachine, type SnapshotFrom, setup } from 'xstate'
import { openStore, runnerOn } from './helpers.js'

const order = setup({
  types: {
    input: {} as { total: number },
    context: {} as { total: number },
    events: {} as { type: 'PAID'; amount: number },
    emitted: {} as { type: 'paid'; amount: number },
  },
}).createMachine({ id: 'order', context: ({ input }) => input, initial: 'open', states: { open: {} } })
const lamp = setup({}).createMachine({ id: 'lamp' })
const bell = setup({ types: { context: {} as { rung: number } } }).createMachine({ id: 'bell', context: { rung: 0 } })
/** XState keeps no id in the type of this one. */
const loose = createMachine({ id: 'loose', types: { input: {} as { name: string } } })

/** What is written in here is looked at by the compiler alone. */
const compiled = (_: () => unknown): void => {}

test('the id of a machine stands in its type where setup() has made it', () => {
  expectTypeOf<IdOf<typeof order>>().toEqualTypeOf<'order'>()
  expectTypeOf<IdOf<typeof order | typeof lamp>>().toEqualTypeOf<'order' | 'lamp'>()
  expectTypeOf<IdOf<typeof loose>>().toEqualTypeOf<string>()
  expectTypeOf<IdOf<AnyStateMachine>>().toEqualTypeOf<string>()
})

test('create takes the ids of its machines, and for each the input that this one needs', async () => {
  const runner = runnerOn(await openStore(), { machines: [order, lamp] })
  await runner.create('order', { input: { total: 1 } })
  await runner.create('lamp')
  await runner.create('lamp', { id: 'l' })
  compiled(() => [
    // @ts-expect-error there is no such machine
    runner.create('nope', { input: { total: 1 } }),
    // @ts-expect-error the input is missing
    runner.create('order'),
    // @ts-expect-error the input is missing
    runner.create('order', { id: 'o' }),
    // @ts-expect-error the input is of another type
    runner.create('order', { input: { total: '1' } }),
    // @ts-expect-error there is no such option
    runner.create('lamp', { idd: 'l' }),
  ])
})

test('a machine whose type does not tell its id has an input that is checked all the same, and takes no id from others', async () => {
  const runner = runnerOn(await openStore(), { machines: [order, loose, lamp] })
  await runner.create('loose', { input: { name: 'a' } })
  await runner.create('order', { input: { total: 1 } })
  compiled(() => [
    // @ts-expect-error the input is missing
    runner.create('loose'),
    // @ts-expect-error the input is that of another machine
    runner.create('loose', { input: { total: 1 } }),
    // @ts-expect-error the input is that of another machine
    runner.create('order', { input: { name: 'a' } }),
  ])
  const two = runnerOn(await openStore(), {
    machines: [loose, createMachine({ id: 'other', types: { input: {} as { sku: string } } })],
  })
  compiled(() => [
    two.create('loose', { input: { name: 'a' } }),
    two.create('other', { input: { sku: 'a' } }),
    // @ts-expect-error the input is missing
    two.create('other'),
    // @ts-expect-error neither machine has such an input
    two.create('other', { input: { total: 1 } }),
  ])
})

test('on takes what the machines say that they emit', async () => {
  const runner = runnerOn(await openStore(), { machines: [order, lamp] })
  runner.on('paid', (event) => expectTypeOf(event).toEqualTypeOf<{ type: 'paid'; amount: number }>())
  runner.on('*', ({ type }) => expectTypeOf(type).toEqualTypeOf<string>())
  // @ts-expect-error neither machine emits that
  runner.on('nope', () => {})
  const silent = runnerOn(await openStore(), { machines: [lamp] })
  silent.on('whatever', ({ type }) => expectTypeOf(type).toEqualTypeOf<'whatever'>())
})

test('snapshot is that of the machines that were given, or of the one that is named', async () => {
  const runner = runnerOn(await openStore(), { machines: [order, bell] })
  compiled(async () => {
    const either = await runner.snapshot('x')
    expectTypeOf(either).toEqualTypeOf<SnapshotFrom<typeof order> | SnapshotFrom<typeof bell>>()
    // @ts-expect-error not every machine has it in its context
    const total: number = either.context.total
    const one = await runner.snapshot<typeof order>('x')
    expectTypeOf(one.context.total).toEqualTypeOf<number>()
    expectTypeOf(one.value).toEqualTypeOf<'open'>()
    return total
  })
})

test('what XState itself tells machines cannot be sent', async () => {
  const routed = setup({ types: { events: {} as { type: 'GO' } } }).createMachine({
    id: 'routed',
    initial: 'a',
    states: { a: {}, b: { id: 'b', route: {} } },
  })
  const runner = runnerOn(await openStore(), { machines: [routed] })
  expectTypeOf(runner.send).parameter(1).toEqualTypeOf<{ type: 'GO' }>()
})

test('a runner of these machines is one of any machines', async () => {
  const runner = runnerOn(await openStore(), { machines: [order, lamp] })
  const any: DurableRunner<readonly AnyStateMachine[]> = runner
  compiled(() => [any.create('whatever'), any.create('order', { input: 7 }), any.send('x', { type: 'WHATEVER' })])
  const store: Promise<ExecutionStore> = openStore()
  await store
  // @ts-expect-error the store was not awaited
  compiled(() => runnerOn(store, { machines: [order] }))
})
