/** What others have given the runner to call: nothing that it does can undo or hold up what is committed. */
import { setTimeout as sleep } from 'node:timers/promises'
import { execution } from '@harel/xstate'
import { expect, onTestFinished, test } from 'vitest'
import { emit, sendTo, setup } from 'xstate'
import { keepRunning, openStore, runnerOn, stored, TestClock, until } from './helpers.js'

const anyEvent = { types: { events: {} as { type: string; [key: string]: unknown } } }
const bell = setup(anyEvent).createMachine({ id: 'bell', on: { RING: { actions: emit({ type: 'rang' }) } } })

/** What would have ended a process. */
function unhandled(): unknown[] {
  const found: unknown[] = []
  const note = (error: unknown) => found.push(error)
  process.on('unhandledRejection', note)
  onTestFinished(() => void process.off('unhandledRejection', note))
  return found
}

test.each<[string, () => unknown]>([
  [
    'throws',
    () => {
      throw new Error('no log today')
    },
  ],
  [
    'rejects',
    async () => {
      throw new Error('no log today')
    },
  ],
])('an onWarning that %s changes nothing: what is committed is told, and the rest goes on', async (_, onWarning) => {
  const found = unhandled()
  const store = await openStore()
  const lost = setup(anyEvent).createMachine({
    id: 'lost',
    on: { GO: { actions: [emit({ type: 'rang' }), sendTo(() => execution('nobody'), { type: 'X' })] } },
  })
  const runner = runnerOn(store, { machines: [lost], onWarning: onWarning as () => void })
  runner.on('*', () => {
    throw new Error('and no listener')
  })
  await runner.create('lost', { id: 'l' })
  expect((await runner.send('l', { type: 'GO' })).outcome).toBe('handled')
  await runner.settled()
  await sleep(20)
  expect(await store.idsWithPrefix('harel.delivery')).toHaveLength(1)
  expect(found).toEqual([])
})

test('a listener that rejects is reported like one that throws', async () => {
  const found = unhandled()
  const runner = runnerOn(await openStore(), { machines: [bell] })
  runner.on('rang', async () => {
    throw new Error('deaf')
  })
  runner.on('rang', () => {
    throw new Error('deaf')
  })
  await runner.create('bell', { id: 'b' })
  await runner.send('b', { type: 'RING' })
  await sleep(20)
  expect(runner.warnings).toEqual(['a listener failed', 'a listener failed'])
  expect(found).toEqual([])
})

test('a listener that was registered twice is called twice, and once when one of the two is disposed', async () => {
  const runner = runnerOn(await openStore(), { machines: [bell] })
  let calls = 0
  const listener = () => {
    calls += 1
  }
  const first = runner.on('rang', listener)
  runner.on('rang', listener)
  await runner.create('bell', { id: 'b' })
  await runner.send('b', { type: 'RING' })
  expect(calls).toBe(2)
  first[Symbol.dispose]()
  first[Symbol.dispose]()
  await runner.send('b', { type: 'RING' })
  expect(calls).toBe(3)
})

test.each([undefined, null, 'rang', {}, { type: 5 }])(
  'emit(() => %j) is refused by name, and nothing is written',
  async (event) => {
    const store = await openStore()
    const machine = setup(anyEvent).createMachine({ id: 'm', on: { GO: { actions: emit(() => event as never) } } })
    const runner = runnerOn(store, { machines: [machine] })
    await runner.create('m', { id: 'm' })
    await expect(runner.send('m', { type: 'GO' })).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
      argument: expect.stringContaining('the event that "m" emits'),
    })
    expect(await stored(store, 'm')).toMatchObject({ version: 1 })
  },
)

test('a run that ends leaves the timers of another run of the same runner to fire when they are due', async () => {
  const store = await openStore()
  const clock = new TestClock()
  const machine = setup(anyEvent).createMachine({
    id: 'm',
    initial: 'a',
    states: { a: { after: { 50: 'b' } }, b: {} },
  })
  // A clock that stands still: no sweep finds the timer, only who has armed it.
  let moving = 0
  const runner = runnerOn(store, { machines: [machine], grace: 60, clock: () => clock.now + moving })
  keepRunning(runner)
  const abort = new AbortController()
  const other = runner.run({ signal: abort.signal })
  await runner.create('m', { id: 'm' })
  abort.abort()
  await other
  moving = 1
  await until(async () => (await stored(store, 'm')).activePath === 'b', 5)
})
