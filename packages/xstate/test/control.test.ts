import { newEvent, newExecution } from '@harel/store-base'
import { type ArchivedTree, currentEffect } from '@harel/xstate'
import { describe, expect, test } from 'vitest'
import { assign, fromPromise, setup } from 'xstate'
import { contextOf, keepRunning, openStore, runnerOn, stored, stores, sweepUp, TestClock, until } from './helpers.js'

const anyEvent = { types: { events: {} as { type: string; [key: string]: unknown } } }

const leaf = setup(anyEvent).createMachine({
  id: 'leaf',
  initial: 'a',
  states: { a: { on: { END: 'b' }, after: { 1000: 'late' } }, b: { type: 'final' }, late: {} },
})

/** Has a child that has a child. */
const middle = setup({ ...anyEvent, actors: { leaf } }).createMachine({
  id: 'middle',
  initial: 'a',
  states: { a: { invoke: { src: 'leaf', id: 'leaf', onDone: 'b' } }, b: { type: 'final' } },
})

const root = setup({ ...anyEvent, actors: { middle } }).createMachine({
  id: 'root',
  initial: 'a',
  states: { a: { invoke: { src: 'middle', id: 'middle', onDone: 'b' } }, b: { type: 'final' } },
})

const saga = setup(anyEvent).createMachine({
  id: 'saga',
  initial: 'working',
  states: {
    working: { on: { 'harel.cancel': { target: 'undoing', actions: assign({ why: ({ event }) => event.reason }) } } },
    deaf: {},
    undoing: { after: { 1000: 'undone' } },
    undone: { type: 'final' },
  },
  context: { why: null as unknown },
  on: { DEAF: '.deaf' },
})

const greedy = setup(anyEvent).createMachine({ id: 'greedy', on: { '*': { actions: assign({}) } } })

describe.each(stores)('on $name', ({ open }) => {
  const setUp = async () => {
    const store = await openStore(open)
    const clock = new TestClock()
    return { store, clock, runner: runnerOn(store, { machines: [root, saga, greedy], clock: clock.read }) }
  }

  const tree = ['r', 'r:middle', 'r:middle:leaf']

  async function finishedTree({ store, clock, runner }: Awaited<ReturnType<typeof setUp>>) {
    await runner.create('root', { id: 'r' })
    await runner.settled()
    await runner.send('r:middle:leaf', { type: 'END' })
    await runner.settled()
    expect(await stored(store, 'r')).toMatchObject({ status: 'DONE' })
    clock.now += 5
    await runner.sweep()
  }

  test('cancel lets a machine that handles it come to its own end, and is then CANCELLED', async () => {
    const { store, clock, runner } = await setUp()
    await runner.create('saga', { id: 's' })
    expect(await runner.cancel('s', { reason: 'no money' })).toMatchObject({
      status: 'CANCELLING',
      activePath: 'undoing',
    })
    expect(await runner.cancel('s')).toMatchObject({ status: 'CANCELLING', version: 2 })
    clock.now += 5
    await runner.sweep()
    await runner.settled()
    expect(await stored(store, 's')).toMatchObject({ status: 'CANCELLED', outcome: 'undone', finishedAt: clock.now })
    expect(await contextOf(store, 's')).toEqual({ why: 'no money' })
    expect(await runner.cancel('s')).toMatchObject({ status: 'CANCELLED', version: 3 })
  })

  test('cancel ends at once what does not handle it in its state, or only takes whatever comes', async () => {
    const { runner } = await setUp()
    await runner.create('saga', { id: 's' })
    await runner.send('s', { type: 'DEAF' })
    expect(await runner.cancel('s')).toMatchObject({ status: 'CANCELLED', activePath: 'deaf' })
    await runner.create('greedy', { id: 'g' })
    expect(await runner.cancel('g')).toMatchObject({ status: 'CANCELLED' })
    await expect(runner.cancel('nobody')).rejects.toMatchObject({ code: 'UNKNOWN_EXECUTION' })
  })

  test('terminate ends the whole tree, timers included, and what comes later has no effect', async () => {
    const { store, runner } = await setUp()
    await runner.create('root', { id: 'r' })
    await runner.settled()
    await runner.terminate('r')
    await runner.settled()
    for (const id of tree) expect(await stored(store, id)).toMatchObject({ status: 'CANCELLED' })
    expect(await store.dueTimers(1e12)).toEqual([])
    expect((await runner.send('r:middle:leaf', { type: 'END' })).outcome).toBe('finished')
    expect(await runner.terminate('r')).toMatchObject({ status: 'CANCELLED', version: 2 })
  })

  test('suspend and resume hold and release the whole tree, however often, with timers that come late', async () => {
    const { store, clock, runner } = await setUp()
    await runner.create('root', { id: 'r' })
    await runner.settled()
    for (let n = 0; n < 3; n++) {
      await runner.suspend('r')
      await runner.settled()
      for (const id of tree) expect(await stored(store, id)).toMatchObject({ status: 'SUSPENDED' })
      expect(await store.dueTimers(1e12)).toEqual([])
      await runner.resume('r')
      await runner.settled()
      for (const id of tree) expect(await stored(store, id)).toMatchObject({ status: 'RUNNING' })
    }
    expect(await runner.resume('r')).toMatchObject({ status: 'RUNNING' })
    await runner.suspend('r')
    await runner.settled()
    clock.now += 100
    await runner.sweep()
    expect(await stored(store, 'r:middle:leaf')).toMatchObject({ activePath: 'a' })
    await runner.resume('r')
    await runner.settled()
    clock.now += 5
    await runner.sweep()
    await runner.settled()
    expect(await stored(store, 'r:middle:leaf')).toMatchObject({ activePath: 'late' })
  })

  test.each([
    ['resume', 'suspend', 'RUNNING'],
    ['suspend', 'resume', 'SUSPENDED'],
  ] as const)(
    "a parent's commands that arrive in the wrong order end in the later one, %s",
    async (last, first, status) => {
      const { store, runner } = await setUp()
      await runner.create('root', { id: 'r' })
      await runner.settled()
      // What the first one says is already so, whence it shows which one was heeded.
      if (first === 'resume') await runner.suspend('r:middle')
      const command = (kind: string, n: number) => ({
        targetId: 'r:middle',
        event: newEvent({ kind: `harel.${kind}`, data: { parent: 'r', command: n } }),
      })
      await store.commit(newExecution({ id: 'sender', definitionId: 'other' }), {
        emits: [command(last, 8), command(first, 7)],
      })
      await runner.sweep()
      await runner.settled()
      expect(await stored(store, 'r:middle')).toMatchObject({
        status,
        context: { xstate: expect.objectContaining({ command: 8 }) },
      })
    },
  )

  test('the result of a promise that comes while its machine is suspended is kept', async () => {
    const gate = Promise.withResolvers<string>()
    const machine = setup({ ...anyEvent, actors: { wait: fromPromise(() => gate.promise) } }).createMachine({
      id: 'waiter',
      initial: 'a',
      states: { a: { invoke: { src: 'wait', onDone: 'b' } }, b: { type: 'final' } },
    })
    const store = await openStore(open)
    const runner = runnerOn(store, { machines: [machine] })
    await runner.create('waiter', { id: 'w' })
    await runner.suspend('w')
    gate.resolve('done')
    await until(async () => (await stored(store, 'w')).deferred.length === 1)
    await runner.resume('w')
    await until(async () => (await stored(store, 'w')).status === 'DONE')
  })

  test('a promise is aborted when its machine leaves the state, and its result is dropped', async () => {
    const gate = Promise.withResolvers<void>()
    let aborted = false
    const wait = fromPromise(async ({ signal }) => {
      signal.addEventListener('abort', () => {
        aborted = true
      })
      await gate.promise
      return 'late'
    })
    const machine = setup({ ...anyEvent, actors: { wait } }).createMachine({
      id: 'waiter',
      initial: 'a',
      states: {
        a: { invoke: { src: 'wait', id: 'w', onDone: 'b' }, on: { LEAVE: 'c' } },
        b: {},
        c: { on: { BACK: 'a' } },
      },
    })
    const store = await openStore(open)
    const runner = runnerOn(store, { machines: [machine] })
    await runner.create('waiter', { id: 'x' })
    await until(async () => (await store.load('x:w')) !== undefined)
    await runner.send('x', { type: 'LEAVE' })
    await until(() => aborted)
    expect(await stored(store, 'x:w')).toMatchObject({ status: 'CANCELLED' })
    gate.resolve()
    await runner.settled()
    expect(await stored(store, 'x')).toMatchObject({ activePath: 'c' })
    expect(await store.dueTimers(1e12)).toEqual([])
  })

  test('what a closed runner has not finished of its promises, another takes up at once, under the same key', async () => {
    const keys: string[] = []
    let block = true
    const slow = fromPromise(async () => {
      const { idempotencyKey, signal, attempt } = currentEffect()
      keys.push(`${idempotencyKey} ${attempt}`)
      if (block) await new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('aborted'))))
      return 'done'
    })
    const machine = setup({ ...anyEvent, actors: { slow } }).createMachine({
      id: 'slow',
      initial: 'a',
      states: { a: { invoke: { src: 'slow', id: 'it', onDone: 'b', onError: 'c' } }, b: { type: 'final' }, c: {} },
    })
    const store = await openStore(open)
    const first = runnerOn(store, { machines: [machine] })
    await first.create('slow', { id: 's' })
    await until(() => keys.length === 1)
    await first.close()
    block = false
    keepRunning(runnerOn(store, { machines: [machine], grace: 0.1 }))
    await until(async () => (await stored(store, 's')).status === 'DONE')
    expect(keys).toEqual(['s:it 1', 's:it 1'])
  })

  test('the result of a process that has lost its lease is dropped: only whoever has it now can end the promise', async () => {
    const gates = [Promise.withResolvers<string>(), Promise.withResolvers<string>()]
    const started: number[] = []
    const wait = fromPromise(() => {
      const { attempt } = currentEffect()
      started.push(attempt)
      return gates[attempt - 1]?.promise ?? Promise.reject(new Error('once too often'))
    })
    const machine = setup({ ...anyEvent, actors: { wait } }).createMachine({
      id: 'waiter',
      context: { by: '' },
      initial: 'a',
      states: {
        a: {
          invoke: {
            src: 'wait',
            id: 'w',
            onDone: { target: 'b', actions: assign({ by: ({ event }) => event.output }) },
          },
        },
        b: { type: 'final' },
      },
    })
    const store = await openStore(open)
    const clock = new TestClock()
    const [slow, quick] = [1, 2].map(() => runnerOn(store, { machines: [machine], clock: clock.read }))
    await slow?.create('waiter', { id: 'x' })
    await until(() => started.length === 1)
    clock.now += 100
    await quick?.sweep()
    await until(() => started.length === 2)
    gates[0]?.resolve('the first')
    await new Promise((resolve) => setTimeout(resolve, 50))
    expect(await stored(store, 'x:w')).toMatchObject({ status: 'RUNNING' })
    gates[1]?.resolve('the second')
    await until(async () => (await stored(store, 'x')).status === 'DONE')
    expect(await contextOf(store, 'x')).toEqual({ by: 'the second' })
  })

  test('a promise that never survives its process is given up, and its machine is told', async () => {
    const machine = setup({ ...anyEvent, actors: { never: fromPromise(() => new Promise(() => {})) } }).createMachine({
      id: 'fragile',
      context: { error: '' },
      initial: 'a',
      states: {
        a: {
          invoke: {
            src: 'never',
            id: 'it',
            onError: { target: 'b', actions: assign({ error: ({ event }) => (event.error as Error).message }) },
          },
        },
        b: { type: 'final' },
      },
    })
    const store = await openStore(open)
    const clock = new TestClock()
    for (let n = 0; n < 3; n++) {
      // Each of them stays, as dead as a process that was killed: its lease runs out.
      const runner = runnerOn(store, { machines: [machine], maxAttempts: 2, clock: clock.read })
      if (n === 0) await runner.create('fragile', { id: 'f' })
      await runner.settled()
      await runner.sweep()
      await runner.settled()
      clock.now += 100
    }
    expect(await stored(store, 'f')).toMatchObject({ status: 'DONE' })
    expect(await contextOf(store, 'f')).toEqual({ error: 'never was given up after 2 attempts' })
  })

  test('purge removes a finished tree, children that no parent lists included, after it was archived', async () => {
    const at = await setUp()
    const { store, runner } = at
    await finishedTree(at)
    const lost = newExecution({ id: 'r:gone', definitionId: 'leaf', parentId: 'r', status: 'DONE' })
    const namesake = newExecution({ id: 'r:other', definitionId: 'leaf', status: 'DONE' })
    await store.save(lost)
    await store.save(namesake)
    const archives: ArchivedTree[] = []
    await expect(runner.purge('r:middle')).rejects.toMatchObject({ code: 'PURGE_REFUSED' })
    await expect(
      runner.purge('r', {
        archive() {
          throw new Error('the disk is full')
        },
      }),
    ).rejects.toThrow('the disk is full')
    expect(await store.idsWithPrefix('r')).toHaveLength(5)
    expect(await runner.purge('r', { archive: (archived) => void archives.push(archived) })).toBe(true)
    expect(await store.idsWithPrefix('r')).toEqual(['r:other'])
    expect(archives.map(({ rootId, executions }) => [rootId, executions.map(({ id }) => id)])).toEqual([
      ['r', ['r', expect.any(String), expect.any(String), 'r:middle:leaf']],
    ])
    expect(await runner.purge('r')).toBe(false)
  })

  test('purge removes children before their parents, so that what was cut off can be made again', async () => {
    const at = await setUp()
    await finishedTree(at)
    const order: string[] = []
    const failing = new Proxy(at.store, {
      get(target, key) {
        const member: unknown = Reflect.get(target, key, target)
        if (key !== 'purge') return typeof member === 'function' ? member.bind(target) : member
        return async (id: string, version: number) => {
          order.push(id)
          if (id === 'r:middle' && order.length < 3) throw new Error('cut off')
          return target.purge(id, version)
        }
      },
    })
    const runner = runnerOn(failing, { machines: [root], clock: at.clock.read })
    await expect(runner.purge('r')).rejects.toThrow('cut off')
    expect(await runner.purge('r')).toBe(true)
    expect(order).toEqual(['r:middle:leaf', 'r:middle', 'r:middle', 'r'])
    expect(await at.store.idsWithPrefix('r')).toEqual([])
  })

  test('purge refuses a tree that is not finished, and says who stands in the way', async () => {
    const { store, runner } = await setUp()
    await runner.create('root', { id: 'r' })
    await runner.settled()
    await expect(runner.purge('r')).rejects.toMatchObject({
      code: 'PURGE_REFUSED',
      members: expect.arrayContaining(tree),
    })
    expect(await store.idsWithPrefix('r')).toHaveLength(3)
  })

  test('purgeFinished removes what is old enough, as much as one call may, and only tells by option (B88)', async () => {
    const { store, clock, runner } = await setUp()
    const ids = Array.from({ length: 7 }, (_, n) => `g${n}`)
    for (const id of ids) {
      await runner.create('greedy', { id })
      await runner.terminate(id)
    }
    await runner.create('greedy', { id: 'alive' })
    clock.now += 50
    await runner.create('greedy', { id: 'young' })
    await runner.terminate('young')
    expect(await runner.purgeFinished({ olderThan: 10, dryRun: true })).toEqual({
      purged: ids,
      refused: [],
      nextCursor: null,
    })
    expect(await store.idsWithPrefix('g')).toHaveLength(7)
    const first = await runner.purgeFinished({ olderThan: 10, limit: 3 })
    expect(first.purged).toHaveLength(3)
    await runner.purgeFinished({ olderThan: 10 })
    expect(await store.idsWithPrefix('g')).toEqual([])
    expect(await stored(store, 'young')).toMatchObject({ status: 'CANCELLED' })
    expect(await runner.purgeFinished({ olderThan: 10 })).toMatchObject({ purged: [] })
    // It has ended at this very moment.
    expect(await runner.purgeFinished({ olderThan: 0 })).toMatchObject({ purged: ['young'] })
  })

  test('purgeFinished removes promises whose results were handled from trees that live on, which go on as before', async () => {
    const store = await openStore(open)
    const clock = new TestClock()
    const keys: string[] = []
    const ask = fromPromise(async () => {
      keys.push(currentEffect().idempotencyKey)
      return keys.length
    })
    const machine = setup({ ...anyEvent, actors: { ask } }).createMachine({
      id: 'asking',
      context: { answers: 0 },
      initial: 'idle',
      states: {
        idle: { on: { ASK: 'asking' } },
        asking: {
          invoke: {
            src: 'ask',
            id: 'ask',
            onDone: { target: 'idle', actions: assign({ answers: ({ context }) => context.answers + 1 }) },
          },
        },
      },
    })
    const runner = runnerOn(store, { machines: [machine], clock: clock.read })
    await runner.create('asking', { id: 'm' })
    const answered = async (n: number) => {
      await runner.send('m', { type: 'ASK' })
      await until(async () => ((await contextOf(store, 'm')) as { answers: number }).answers === n)
    }
    await answered(1)
    await answered(2)
    // Of the third, the machine does not hear before it is resumed.
    await runner.send('m', { type: 'ASK' })
    await runner.suspend('m')
    await until(async () => (await stored(store, 'm')).deferred.length === 1)
    clock.now += 100
    const options = { of: 'promises', olderThan: 10 } as const
    expect(await runner.purgeFinished({ ...options, dryRun: true })).toMatchObject({ purged: ['m:ask', 'm:ask#2'] })
    const archives: ArchivedTree[] = []
    const archive = (tree: ArchivedTree) => void archives.push(tree)
    expect(await runner.purgeFinished({ ...options, archive })).toEqual({
      purged: ['m:ask', 'm:ask#2'],
      refused: [{ id: 'm:ask#3', reason: expect.stringContaining('"m" has not handled its result') }],
      nextCursor: null,
    })
    expect(archives.map(({ executions }) => executions.map(({ id }) => id))).toEqual([['m:ask'], ['m:ask#2']])
    expect(await store.idsWithPrefix('m')).toEqual(['m', 'm:ask#3'])
    await runner.resume('m')
    await until(async () => ((await contextOf(store, 'm')) as { answers: number }).answers === 3)
    await answered(4)
    expect(keys).toEqual(['m:ask', 'm:ask#2', 'm:ask#3', 'm:ask#4'])
    // The entries that have started them are still there, and another process starts them anew: no result comes twice.
    const other = runnerOn(store, { machines: [machine], clock: clock.read })
    await sweepUp(clock, other, 6)
    await until(() => keys.length === 6)
    await sweepUp(clock, other, 2)
    expect([...(await store.pendingSpawns()), ...(await store.pendingOutbox())]).toEqual([])
    expect(new Set(keys).size).toBe(4)
    expect(await contextOf(store, 'm')).toEqual({ answers: 4 })
  })
})
