/** Executions of XState machines, run here, under Python's control plane. */
import type { ExecutionStore } from '@harel/store-base'
import { DurableRunner } from '@harel/xstate'
import { canonical } from '@harel-tooling/canonical'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { assign, fromPromise, setup } from 'xstate'
import { backends } from '../src/backends/index.js'
import { PythonStore } from '../src/python.js'

const types = { events: {} as { type: string } }

/** A child with a delay, a promise, a delay of its own, a history and an end. */
function orderMachine(answer: Promise<string>, printer: { hasInk: boolean }) {
  const print = () => {
    if (!printer.hasInk) throw new TypeError('no ink')
  }
  const parcel = setup({ types, actions: { print } }).createMachine({
    id: 'parcel',
    initial: 'packing',
    on: { PRINT: { actions: 'print' } },
    states: { packing: { after: { 60000: 'packed' } }, packed: { type: 'final' } },
  })
  return setup({
    types: { ...types, context: {} as { heard: unknown[] } },
    actors: { parcel, ask: fromPromise(() => answer) },
    actions: {
      print,
      hear: assign({
        heard: ({ context, event }) => [...context.heard, (event as { output?: unknown }).output ?? event.type],
      }),
    },
  }).createMachine({
    id: 'order',
    context: { heard: [] },
    initial: 'open',
    states: {
      open: {
        initial: 'early',
        states: {
          early: { after: { 30000: 'late' } },
          late: {},
          last: { type: 'history' },
        },
        invoke: [
          { src: 'parcel', id: 'parcel', onDone: 'done', onError: { actions: 'hear' } },
          { src: 'ask', id: 'ask', onDone: { actions: 'hear' } },
        ],
        on: { NOTE: { actions: 'hear' }, PRINT: { actions: 'print' }, AWAY: 'away' },
      },
      away: { on: { BACK: 'open.last' } },
      done: { type: 'final' },
    },
  })
}

describe.each(backends)('on $name', ({ start, refresh }) => {
  let server: Awaited<ReturnType<typeof start>>
  beforeAll(async () => {
    server = await start()
  })
  afterAll(() => server[Symbol.asyncDispose]())

  const setUp = async () => {
    const database = await server.make()
    onTestFinished(() => database[Symbol.asyncDispose]())
    const store = await database.open({ prefix: 'harel' })
    onTestFinished(() => store.close())
    const python = new PythonStore(database.url, 'harel')
    onTestFinished(() => python[Symbol.asyncDispose]())
    const answer = Promise.withResolvers<string>()
    const printer = { hasInk: false }
    let ahead = 0
    const warnings: string[] = []
    const runner = new DurableRunner(store, {
      machines: [orderMachine(answer.promise, printer)],
      clock: () => Date.now() / 1000 + ahead,
      onWarning: (message) => warnings.push(message),
    })
    onTestFinished(() => runner.close())
    /** Lets so much time pass, in seconds, and the runner do what has come due. */
    const wait = async (seconds: number) => {
      for (const step of [seconds, ...Array.from({ length: 6 }, () => 3)]) {
        ahead += step
        await runner.sweep()
        await runner.settled()
      }
    }
    return { store, python, runner, answer, printer, wait, warnings }
  }

  const heardBy = async (store: ExecutionStore, id: string) => {
    const { xstate } = (await store.load(id))?.context ?? {}
    return (xstate as { context: { heard: unknown[] } } | undefined)?.context.heard
  }

  test('Python lists what our runner has stored, with status and active path, and reads all of it', async () => {
    const { store, python, runner } = await setUp()
    for (const id of ['away', 'broken', 'ended', 'held', 'open']) await runner.create('order', { id })
    await runner.send('away', { type: 'AWAY' })
    await runner.send('broken', { type: 'PRINT' })
    await runner.suspend('held')
    await runner.terminate('ended')
    await runner.settled()
    await refresh?.(store)
    expect(await python.list({ roots_only: true, definition_id: 'order' })).toEqual([
      ['away', 'order', 'RUNNING', 'away'],
      ['broken', 'order', 'FAILED', 'open.early'],
      ['ended', 'order', 'CANCELLED', 'open.early'],
      ['held', 'order', 'SUSPENDED', 'open.early'],
      ['open', 'order', 'RUNNING', 'open.early'],
    ])
    expect(await python.show('held:parcel')).toEqual(['SUSPENDED', 'packing'])
    expect(await python.show('open:ask')).toEqual(['RUNNING', 'ask'])
    // It would renew the leases of its promises between the one reading and the other.
    await runner.close()
    expect(await python.canonical('')).toEqual(await canonical(store, '', { ranks: true }))
  })

  test('what Python suspends is held with its children, and what it resumes comes to its end, timers included', async () => {
    const { store, python, runner, answer, wait, warnings } = await setUp()
    await runner.create('order', { id: 'o' })
    await runner.settled()
    expect(await python.command('suspend', 'o')).toEqual(['SUSPENDED', 'open.early'])
    expect(await python.show('o:parcel')).toEqual(['SUSPENDED', 'packing'])
    answer.resolve('yes')
    expect(await runner.send('o', { type: 'NOTE' })).toMatchObject({ outcome: 'deferred' })
    await wait(100)
    expect([await python.show('o'), await python.show('o:parcel')]).toEqual([
      ['SUSPENDED', 'open.early'],
      ['SUSPENDED', 'packing'],
    ])
    expect(await heardBy(store, 'o')).toEqual([])
    expect(await python.command('resume', 'o')).toEqual(['RUNNING', 'open.early'])
    await wait(31)
    expect(await python.show('o')).toEqual(['DONE', 'done'])
    expect(await python.show('o:parcel')).toEqual(['DONE', 'packed'])
    expect((await heardBy(store, 'o'))?.toSorted()).toEqual(['NOTE', 'yes'])
    expect(warnings).toEqual([])
    expect(await python.purge('o')).toBe(true)
    await refresh?.(store)
    const rest = await canonical(store, 'o')
    expect(rest).toMatchObject({ executions: {}, outbox: [], spawns: [], timers: [], trace: {} })
  })

  test('what our runner has suspended and Python resumes goes on, with its timers, at the next event', async () => {
    const { store, python, runner, wait } = await setUp()
    await runner.create('order', { id: 'o' })
    await runner.settled()
    await runner.suspend('o')
    await runner.settled()
    await wait(100)
    expect(await python.command('resume', 'o')).toEqual(['RUNNING', 'open.early'])
    expect(await python.show('o:parcel')).toEqual(['RUNNING', 'packing'])
    await runner.send('o', { type: 'NOTE' })
    await wait(3)
    expect(await python.show('o')).toEqual(['RUNNING', 'open.late'])
    expect(await heardBy(store, 'o')).toEqual(['NOTE'])
  })

  test('what had failed below what Python suspends and resumes is tried again at the next event, with its timers', async () => {
    const { python, runner, printer, wait, warnings } = await setUp()
    await runner.create('order', { id: 'o' })
    await runner.settled()
    await runner.send('o:parcel', { type: 'PRINT' })
    await wait(1)
    expect([await python.show('o'), await python.show('o:parcel')]).toEqual([
      ['RUNNING', 'open.early'],
      ['FAILED', 'packing'],
    ])
    // By its propagation to all children that are not finished.
    await python.command('suspend', 'o')
    await python.command('resume', 'o')
    expect(await python.show('o:parcel')).toEqual(['RUNNING', 'packing'])
    printer.hasInk = true
    await wait(100)
    expect(await python.show('o:parcel')).toEqual(['RUNNING', 'packing'])
    await runner.send('o:parcel', { type: 'NOTE' })
    await wait(3)
    expect([await python.show('o'), await python.show('o:parcel')]).toEqual([
      ['DONE', 'done'],
      ['DONE', 'packed'],
    ])
    expect(warnings).toEqual([])
  })

  test('what Python terminates fires no timer, takes no event, and lets go of its promise', async () => {
    const { store, python, runner, answer, wait, warnings } = await setUp()
    await runner.create('order', { id: 'o' })
    await runner.settled()
    expect(await python.command('terminate', 'o')).toEqual(['CANCELLED', 'open.early'])
    answer.resolve('too late')
    expect(await runner.send('o', { type: 'NOTE' })).toMatchObject({ outcome: 'finished' })
    await wait(100)
    for (const id of ['o', 'o:parcel', 'o:ask']) expect((await store.load(id))?.status, id).toBe('CANCELLED')
    expect(await heardBy(store, 'o')).toEqual([])
    expect([await store.pendingOutbox(), await store.pendingSpawns(), await store.dueTimers(1e18)]).toEqual([
      [],
      [],
      [],
    ])
    expect(warnings).toEqual([])
    expect(await runner.purge('o')).toBe(true)
    expect(await python.show('o:parcel')).toBe(null)
  })

  test('what Python runs is refused by our commands, and looked for by ours without a stumble', async () => {
    const { store, python, runner, wait, warnings } = await setUp()
    await python.create('py')
    await python.send('py', 'Pay', { amount: 2.5 })
    await refresh?.(store)
    await wait(0)
    const before = await python.canonical('py')
    for (const command of ['redrive', 'suspend', 'resume', 'cancel', 'terminate', 'snapshot'] as const) {
      await expect(runner[command]('py'), command).rejects.toMatchObject({ code: 'UNKNOWN_MACHINE' })
    }
    await expect(runner.send('py', { type: 'NOTE' })).rejects.toMatchObject({ code: 'UNKNOWN_MACHINE' })
    const found: unknown[] = []
    for (const { definition_id } of Object.values((before as { executions: object }).executions)) {
      for await (const id of runner.stuckOn(definition_id, '1')) found.push(id)
    }
    for await (const parked of runner.parked()) found.push(parked)
    await wait(100_000)
    expect(found).toEqual([])
    expect(await python.canonical('py')).toEqual(before)
    expect(warnings).toEqual([])
  })
})
