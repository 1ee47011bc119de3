/** The faults of the runtime that came before, by their numbers: none of them is to be found here. */
import { decodeExecution, type Execution, encodeExecution, newEvent, newExecution } from '@harel/store-base'
import { execution, TooManyConflicts } from '@harel/xstate'
import { describe, expect, test } from 'vitest'
import { assign, createMachine, fromPromise, sendTo, setup, spawnChild } from 'xstate'
import {
  all,
  contextOf,
  counting,
  keepRunning,
  openStore,
  runnerOn,
  stored,
  stores,
  sweepUp,
  TestClock,
  until,
  withMethods,
} from './helpers.js'

const anyEvent = { types: { events: {} as { type: string; [key: string]: unknown } } }

/** Counts the events `INC`. */
const counter = setup(anyEvent).createMachine({
  id: 'counter',
  context: { n: 0 },
  on: { INC: { actions: assign({ n: ({ context }) => context.n + 1 }) } },
})

/** Starts a `counter`, and waits. */
const parent = setup({ ...anyEvent, actors: { counter } }).createMachine({
  id: 'parent',
  invoke: { src: 'counter', id: 'kid' },
  initial: 'a',
  states: { a: { after: { 1000: 'b' }, on: { GO: 'b' } }, b: {} },
})

const stranger = createMachine({ id: 'stranger', initial: 'a', states: { a: { after: { 1000: 'b' } }, b: {} } })

const spawnEntry = (definitionId: string, at: number) => ({
  xstate: { definitionId, version: '1', src: definitionId, actorId: 'kid', sync: false, at },
})

describe.each(stores)('on $name', ({ open }) => {
  const setUp = async () => {
    const store = await openStore(open)
    return { store, clock: new TestClock() }
  }

  test('1: a child runs on the machine that its entry names, and entries of unknown machines are left alone', async () => {
    const { store, clock } = await setUp()
    const sender = newExecution({ id: 'p', definitionId: 'parent', status: 'RUNNING' })
    await store.commit(sender, {
      spawns: [
        { childId: 'p:known', rootPath: '', context: spawnEntry('counter', clock.now) },
        { childId: 'p:unknown', rootPath: '', context: spawnEntry('stranger', clock.now) },
        { childId: 'p:foreign', rootPath: 'region', context: {} },
      ],
    })
    const [seq] = await store.commit(newExecution({ id: 's', definitionId: 'stranger', status: 'RUNNING' }), {
      emits: [{ targetId: 's', event: newEvent({ kind: 'GO' }) }],
    })
    await sweepUp(clock, runnerOn(store, { machines: [parent], clock: clock.read }))
    expect((await store.pendingOutbox()).map((entry) => entry.seq)).toEqual([seq])
    expect(await store.isProcessed('s', (await store.pendingOutbox())[0]?.event.id ?? '')).toBe(false)
    expect(await stored(store, 'p:known')).toMatchObject({ definitionId: 'counter', status: 'RUNNING', parentId: 'p' })
    expect((await store.pendingSpawns()).map(({ childId }) => childId)).toEqual(['p:unknown', 'p:foreign'])
    await sweepUp(clock, runnerOn(store, { machines: [stranger], clock: clock.read }))
    expect(await stored(store, 'p:unknown')).toMatchObject({ definitionId: 'stranger', status: 'RUNNING' })
  })

  test('2: timers of unknown machines are left alone, and fire late where the machine is known', async () => {
    const { store, clock } = await setUp()
    await runnerOn(store, { machines: [stranger], clock: clock.read }).create('stranger', { id: 's' })
    await store.commit(newExecution({ id: 'python', definitionId: 'order' }), {
      timers: [{ action: 'schedule', path: 'Waiting', fireAt: clock.now }],
    })
    await sweepUp(clock, runnerOn(store, { machines: [counter], clock: clock.read }))
    expect((await store.dueTimers(clock.now)).map(({ executionId }) => executionId)).toEqual(['python', 's'])
    await sweepUp(clock, runnerOn(store, { machines: [stranger], clock: clock.read }))
    expect(await stored(store, 's')).toMatchObject({ activePath: 'b', version: 2 })
    expect((await store.dueTimers(clock.now)).map(({ executionId }) => executionId)).toEqual(['python'])
  })

  test('3: an event for an execution that does not load is kept, tried again, and delivered once it is there', async () => {
    const { store, clock } = await setUp()
    const runner = runnerOn(store, { machines: [counter], clock: clock.read })
    await store.commit(newExecution({ id: 'sender', definitionId: 'other' }), {
      emits: [{ targetId: 'late', event: newEvent({ kind: 'INC', id: 'e' }) }],
    })
    await sweepUp(clock, runner, 3)
    expect(await store.pendingOutbox()).toEqual([])
    await runner.create('counter', { id: 'late' })
    await sweepUp(clock, runner)
    expect(await contextOf(store, 'late')).toEqual({ n: 1 })
    expect(await store.idsWithPrefix('harel.delivery')).toEqual([])
  })

  test('4: what a crash has orphaned is carried on by an idle process, though nobody sends anything', async () => {
    const { store, clock } = await setUp()
    const sender = newExecution({ id: 'p', definitionId: 'counter' })
    await store.commit(sender, {
      emits: [{ targetId: 'p:kid', event: newEvent({ kind: 'INC' }) }],
      spawns: [{ childId: 'p:kid', rootPath: '', context: spawnEntry('counter', clock.now) }],
    })
    await sweepUp(clock, runnerOn(store, { machines: [counter], clock: clock.read }))
    expect(await contextOf(store, 'p:kid')).toEqual({ n: 1 })
    expect(await store.pendingOutbox()).toEqual([])
    expect(await store.pendingSpawns()).toEqual([])
  })

  test('15: what a suspended execution is sent, and what its timers and children bring, happens after its resumption', async () => {
    const { store, clock } = await setUp()
    const runner = runnerOn(store, { machines: [parent], clock: clock.read })
    await runner.create('parent', { id: 'p' })
    await runner.settled()
    await runner.suspend('p')
    await runner.settled()
    expect(await stored(store, 'p:kid')).toMatchObject({ status: 'SUSPENDED' })
    expect((await runner.send('p:kid', { type: 'INC' }, { eventId: 'e' })).outcome).toBe('deferred')
    expect((await runner.send('p:kid', { type: 'INC' }, { eventId: 'e' })).outcome).toBe('duplicate')
    clock.now += 10
    await sweepUp(clock, runner)
    expect(await stored(store, 'p')).toMatchObject({ status: 'SUSPENDED', activePath: 'a' })
    expect(await contextOf(store, 'p:kid')).toEqual({ n: 0 })
    await runner.resume('p')
    await runner.settled()
    await sweepUp(clock, runner)
    expect(await stored(store, 'p')).toMatchObject({ status: 'RUNNING', activePath: 'b' })
    expect(await contextOf(store, 'p:kid')).toEqual({ n: 1 })
  })

  test('16: an event that comes before the start is kept, and one for a cancelling machine is handled', async () => {
    const { store, clock } = await setUp()
    const runner = runnerOn(store, { machines: [counter], clock: clock.read })
    const pending = newExecution({ id: 'c', definitionId: 'counter' })
    pending.context = { xstate: { version: '1', context: {}, children: {}, timers: {} } }
    await store.save(pending)
    expect((await runner.send('c', { type: 'INC' })).outcome).toBe('deferred')
    expect((await stored(store, 'c')).deferred).toHaveLength(1)

    const saga = setup(anyEvent).createMachine({
      id: 'saga',
      initial: 'working',
      states: {
        working: { on: { 'harel.cancel': 'undoing' } },
        undoing: { on: { UNDONE: 'undone' } },
        undone: { type: 'final' },
      },
    })
    const other = runnerOn(store, { machines: [saga], clock: clock.read })
    await other.create('saga', { id: 's' })
    expect(await other.cancel('s', { reason: 'changed my mind' })).toMatchObject({
      status: 'CANCELLING',
      activePath: 'undoing',
    })
    await other.send('s', { type: 'UNDONE' })
    expect(await stored(store, 's')).toMatchObject({ status: 'CANCELLED', outcome: 'undone' })
  })

  test('17: resume wakes only the children that were suspended with their parent, and no other status is touched', async () => {
    const failing = setup(anyEvent).createMachine({
      id: 'failing',
      on: {
        FAIL: {
          actions: () => {
            throw new Error('no')
          },
        },
      },
    })
    const root = setup({ ...anyEvent, actors: { counter, failing } }).createMachine({
      id: 'root',
      entry: [
        spawnChild('counter', { id: 'own' }),
        spawnChild('counter', { id: 'with' }),
        spawnChild('failing', { id: 'failed' }),
      ],
      on: { 'xstate.error.actor.failed': {} },
    })
    const { store, clock } = await setUp()
    const runner = runnerOn(store, { machines: [root], clock: clock.read })
    await runner.create('root', { id: 'r' })
    await runner.settled()
    await runner.suspend('r:own')
    await runner.send('r:failed', { type: 'FAIL' })
    await runner.settled()
    await runner.suspend('r')
    await runner.settled()
    const statuses = async () =>
      Promise.all(['own', 'with', 'failed'].map(async (child) => (await stored(store, `r:${child}`)).status))
    expect(await statuses()).toEqual(['SUSPENDED', 'SUSPENDED', 'FAILED'])
    await runner.resume('r')
    await runner.settled()
    expect(await statuses()).toEqual(['SUSPENDED', 'RUNNING', 'FAILED'])
    expect((await stored(store, 'r:failed')).error).toBe('Error: no')
    await expect(runner.resume('r:failed')).rejects.toMatchObject({ code: 'CONTROL_REFUSED' })
    await expect(runner.suspend('r:failed')).rejects.toMatchObject({ code: 'CONTROL_REFUSED' })
  })

  test('18: a command that loses every race ends in an error, and a few lost races are made up for', async () => {
    const { store, clock } = await setUp()
    let rivals = 0
    /** Somebody else commits between the load and the commit. */
    const rival = new Proxy(store, {
      get(target, key) {
        if (key !== 'commit')
          return Reflect.get(target, key, target)?.bind?.(target) ?? Reflect.get(target, key, target)
        return async (held: Execution, changes: object) => {
          if (held.id === 'c' && held.version > 0 && rivals-- > 0) await target.save(await stored(target, 'c'))
          return target.commit(held, changes)
        }
      },
    })
    const runner = runnerOn(rival, { machines: [counter], clock: clock.read, maxConflicts: 5, random: () => 1 })
    await runner.create('counter', { id: 'c' })
    rivals = 5
    await expect(runner.send('c', { type: 'INC' })).rejects.toThrow(TooManyConflicts)
    expect(await contextOf(store, 'c')).toEqual({ n: 0 })
    rivals = 4
    const start = performance.now()
    expect(await runner.send('c', { type: 'INC' })).toMatchObject({ outcome: 'handled' })
    // Pauses of 4, 8, 16 and 32 ms at the most.
    expect(performance.now() - start).toBeGreaterThan(50)
    rivals = 4
    expect(await runner.suspend('c')).toMatchObject({ status: 'SUSPENDED' })
    rivals = 5
    await expect(runner.resume('c')).rejects.toThrow(TooManyConflicts)
    expect(await stored(store, 'c')).toMatchObject({ status: 'SUSPENDED' })
    rivals = 0
    expect(await runner.resume('c')).toMatchObject({ status: 'RUNNING' })
  })

  test('22: what takes longer than its lease is not done twice at once (B80)', async () => {
    let running = 0
    let most = 0
    let calls = 0
    const slow = async () => {
      calls += 1
      running += 1
      most = Math.max(most, running)
      await new Promise((resolve) => setTimeout(resolve, 1500))
      running -= 1
    }
    const machine = setup({
      ...anyEvent,
      actors: { slow: fromPromise(slow) },
      actions: { slowly: slow as () => void },
    }).createMachine({
      id: 'slow',
      initial: 'idle',
      states: {
        idle: { on: { ACT: { target: 'promising', actions: 'slowly' } } },
        promising: { invoke: { src: 'slow', onDone: 'done' } },
        done: { type: 'final' },
      },
    })
    const kicker = setup(anyEvent).createMachine({ id: 'kicker', entry: sendTo(() => execution('s'), { type: 'ACT' }) })
    const { store } = await setUp()
    const runners = [1, 2, 3].map(() =>
      runnerOn(store, { machines: [machine, kicker], grace: 0.2, lease: 0.5, maxPause: 0.1 }),
    )
    for (const runner of runners) keepRunning(runner)
    await runners[0]?.create('slow', { id: 's' })
    await runners[0]?.create('kicker', { id: 'k' })
    await until(async () => (await stored(store, 's')).status === 'DONE')
    expect({ most, calls }).toEqual({ most: 1, calls: 2 })
  })

  test('23: one entry that always fails holds up nothing, is counted, parked, shown, and can be tried again', async () => {
    const { store, clock } = await setUp()
    const runner = runnerOn(store, { machines: [counter], clock: clock.read, maxAttempts: 3 })
    await runner.create('counter', { id: 'c' })
    await store.commit(newExecution({ id: 'sender', definitionId: 'other' }), {
      emits: [
        { targetId: 'nobody', event: newEvent({ kind: 'INC', id: 'lost' }) },
        { targetId: 'c', event: newEvent({ kind: 'INC' }) },
      ],
    })
    await sweepUp(clock, runner)
    expect(await contextOf(store, 'c')).toEqual({ n: 1 })
    const parked = await all(runner.parked())
    expect(parked).toMatchObject([
      {
        kind: 'event',
        executionId: 'nobody',
        attempts: 3,
        error: expect.stringContaining('does not exist'),
        since: expect.any(Number),
      },
    ])
    await sweepUp(clock, runner)
    expect(await all(runner.parked())).toEqual(parked)
    await runner.create('counter', { id: 'nobody' })
    await runner.unpark(parked[0]?.id ?? '')
    await sweepUp(clock, runner)
    expect(await contextOf(store, 'nobody')).toEqual({ n: 1 })
    expect(await all(runner.parked())).toEqual([])
  })

  test('24: NaN and Infinity are refused wherever they come from, with the path to them, and nothing is written', async () => {
    const { store, clock } = await setUp()
    const machine = setup(anyEvent).createMachine({
      id: 'numbers',
      context: { list: [0] },
      on: {
        SET: { actions: assign({ list: ({ event }) => [0, event.half === true ? Number.NaN : 1] }) },
        SEND: { actions: sendTo(({ self }) => self, { type: 'TAKE', much: Number.POSITIVE_INFINITY }) },
      },
    })
    const runner = runnerOn(store, { machines: [machine], clock: clock.read })
    await expect(runner.create('numbers', { id: 'n', input: { a: [Number.NaN] } as never })).rejects.toMatchObject({
      path: 'input.a[0]',
    })
    expect(await store.load('n')).toBeUndefined()
    await runner.create('numbers', { id: 'n' })
    await expect(runner.send('n', { type: 'SET', x: Number.NaN })).rejects.toMatchObject({ path: 'event.x' })
    await expect(runner.send('n', { type: 'SET', half: true })).rejects.toMatchObject({
      code: 'NOT_SERIALIZABLE',
      path: expect.stringMatching(/context\.list\[1\]$/),
    })
    await expect(runner.send('n', { type: 'SEND' })).rejects.toMatchObject({ path: 'event TAKE.much' })
    expect(await stored(store, 'n')).toMatchObject({ version: 1, status: 'RUNNING' })
  })

  test('25: what others keep in the context of an execution survives each step', async () => {
    const { store, clock } = await setUp()
    const runner = runnerOn(store, { machines: [counter], clock: clock.read })
    await runner.create('counter', { id: 'c' })
    const held = await stored(store, 'c')
    held.context.billing = { account: 7 }
    held.priority = 3
    await store.save(held)
    await runner.send('c', { type: 'INC' })
    await runner.suspend('c')
    await runner.resume('c')
    expect(await stored(store, 'c')).toMatchObject({ context: { billing: { account: 7 } }, priority: 3 })
  })

  test.each([
    ['are kept', '"shop":{"till":3}', { status: 'fulfilled' }],
    [
      'end it where they cannot be kept exactly',
      '"shop":12345678901234567891',
      { reason: { code: 'NOT_SERIALIZABLE' } },
    ],
  ])('25: fields that only another program knows %s, in each step', async (_, field, outcome) => {
    const { store: inner, clock } = await setUp()
    await runnerOn(inner, { machines: [counter], clock: clock.read }).create('counter', { id: 'c' })
    let text = encodeExecution(await stored(inner, 'c'), 1, 'token').replace(/}$/, `,${field}}`)
    const quiet = { onWarning: () => {} }
    const store = withMethods(inner, {
      load: async () => decodeExecution(text, 'c', quiet),
      loadForEvent: async () => ({ execution: decodeExecution(text, 'c', quiet), processed: false }),
      commit: async (execution) => {
        text = encodeExecution(execution, execution.version + 1, 'token')
        execution.version += 1
        return []
      },
    })
    const runner = runnerOn(store, { machines: [counter], clock: clock.read })
    for (const step of [() => runner.send('c', { type: 'INC' }), () => runner.suspend('c')]) {
      expect((await Promise.allSettled([step()]))[0]).toMatchObject(outcome)
    }
    expect(text).toContain(field)
  })

  test('26: several runners share the work: together they read few rows twice, and do each thing once', async () => {
    const { store: base } = await setUp()
    const { store, rows } = counting(base)
    let acted = 0
    const act = () => {
      acted += 1
    }
    const actor = setup({ ...anyEvent, actions: { act } }).createMachine({
      id: 'actor',
      on: { ACT: { actions: 'act' } },
    })
    const maker = runnerOn(base, { machines: [actor] })
    const most = 300
    await Promise.all(Array.from({ length: 150 }, (_, n) => maker.create('actor', { id: `a${n}` })))
    const event = () => newEvent({ kind: 'ACT', createdTime: '2020-01-01T00:00:00Z' })
    await base.commit(newExecution({ id: 'sender', definitionId: 'other' }), {
      emits: Array.from({ length: most }, (_, n) => ({ targetId: `a${n % 150}`, event: event() })),
    })
    const runners = Array.from({ length: 5 }, () => runnerOn(store, { machines: [actor], pageSize: 50 }))
    for (const runner of runners) keepRunning(runner)
    await until(async () => (await base.pendingOutbox({ limit: 1 })).length === 0)
    expect(acted).toBe(most)
    // On a busy machine some are read again before they are acknowledged; each by itself would read them five times.
    expect(rows()).toBeLessThan(3 * most)
  })

  test('27: a sweep reads the queues in pages, however long they are', async () => {
    const { store: base, clock } = await setUp()
    let longest = 0
    const store = new Proxy(base, {
      get(target, key) {
        const member: unknown = Reflect.get(target, key, target)
        if (typeof member !== 'function') return member
        return async (...given: unknown[]) => {
          const answer: unknown = await member.apply(target, given)
          if (Array.isArray(answer)) longest = Math.max(longest, answer.length)
          return answer
        }
      },
    })
    const runner = runnerOn(store, { machines: [counter], clock: clock.read, pageSize: 20 })
    await runner.create('counter', { id: 'c' })
    await base.commit(newExecution({ id: 'sender', definitionId: 'other' }), {
      emits: Array.from({ length: 100 }, () => ({ targetId: 'c', event: newEvent({ kind: 'INC' }) })),
    })
    await sweepUp(clock, runner)
    expect(await contextOf(store, 'c')).toEqual({ n: 100 })
    expect(longest).toBeLessThanOrEqual(20)
  })

  test('35: an event takes one load and one commit, and one more of each and a removal for what it sends', async () => {
    const { store: base, clock } = await setUp()
    const { store, calls } = counting(base)
    const sender = setup(anyEvent).createMachine({
      id: 'sender',
      on: { TELL: { actions: sendTo(() => execution('c'), { type: 'INC' }) } },
    })
    const runner = runnerOn(store, { machines: [counter, sender], clock: clock.read })
    await runner.create('counter', { id: 'c' })
    await runner.create('sender', { id: 's' })
    await runner.settled()
    calls.clear()
    await runner.send('s', { type: 'TELL' })
    await runner.settled()
    expect(Object.fromEntries(calls)).toEqual({ loadForEvent: 2, commit: 2, ackOutbox: 1 })
  })

  test('36: an idle runner asks less and less, down to once in `maxPause`', async () => {
    const { store: base, clock } = await setUp()
    const { store, calls } = counting(base)
    const runner = runnerOn(store, { machines: [counter], clock: clock.read, random: () => 0, maxPause: 4 })
    const pauses: number[] = []
    for (let n = 0; n < 9; n++) {
      const pause = await runner.sweep()
      pauses.push(Math.round(pause * 10) / 10)
      clock.now += pause
    }
    expect(pauses).toEqual([0.2, 0.4, 0.8, 1.6, 3.2, 4, 4, 4, 4])
    // Before its time has come, it is the one execution that is looked at.
    clock.now -= 1
    calls.clear()
    await runner.sweep()
    expect(Object.fromEntries(calls)).toEqual({ load: 1 })
  })
})
