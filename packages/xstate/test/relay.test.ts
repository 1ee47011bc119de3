import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  asyncStore,
  CorruptRecord,
  type ExecutionStore,
  type JsonValue,
  newEvent,
  newExecution,
} from '@harel/store-base'
import { SqliteStore } from '@harel/store-sqlite'
import { currentEffect, execution } from '@harel/xstate'
import { describe, expect, onTestFinished, test } from 'vitest'
import { assign, createMachine, sendTo, setup } from 'xstate'
import {
  all,
  contextOf,
  counting,
  freshFile,
  keepRunning,
  openStore,
  runnerOn,
  stored,
  stores,
  sweepUp,
  TestClock,
  until,
} from './helpers.js'

const anyEvent = { types: { events: {} as { type: string; [key: string]: unknown } } }

const counter = setup(anyEvent).createMachine({
  id: 'counter',
  context: { n: 0 },
  initial: 'a',
  states: { a: { after: { 1000: 'b' } }, b: {} },
  on: { INC: { actions: assign({ n: ({ context }) => context.n + 1 }) } },
})

/** The same store, in which an execution cannot be read while it is said so. */
function damaged(store: ExecutionStore, id: string): { store: ExecutionStore; repair(): void } {
  let broken = true
  const proxy = new Proxy(store, {
    get(target, key) {
      const member: unknown = Reflect.get(target, key, target)
      if (typeof member !== 'function') return member
      return async (...given: unknown[]) => {
        if (broken && /^load/.test(String(key)) && given[0] === id) throw new CorruptRecord(id, 'it was cut off')
        return member.apply(target, given)
      }
    },
  })
  return {
    store: proxy,
    repair() {
      broken = false
    },
  }
}

describe.each(stores)('on $name', ({ open }) => {
  const setUp = async () => {
    const store = await openStore(open)
    return { store, clock: new TestClock() }
  }

  test('events, children and timers of an execution that cannot be read are parked, and done when it has been repaired', async () => {
    const { store: base, clock } = await setUp()
    await runnerOn(base, { machines: [counter], clock: clock.read }).create('counter', { id: 'x' })
    await base.commit(newExecution({ id: 'sender', definitionId: 'other' }), {
      emits: [{ targetId: 'x', event: newEvent({ kind: 'INC' }) }],
    })
    const { store, repair } = damaged(base, 'x')
    const runner = runnerOn(store, { machines: [counter], clock: clock.read, maxAttempts: 2 })
    await sweepUp(clock, runner)
    const parked = await all(runner.parked())
    expect(
      parked.map(({ kind, executionId, attempts, error }) => [kind, executionId, attempts, error]).toSorted(),
    ).toEqual([
      ['event', 'x', 2, 'CorruptRecord: x cannot be read: it was cut off'],
      ['timer', 'x', 2, 'CorruptRecord: x cannot be read: it was cut off'],
    ])
    expect(await base.dueTimers(1e12)).toEqual([])
    repair()
    for (const { id } of parked) await runner.unpark(id)
    await sweepUp(clock, runner)
    expect(await stored(base, 'x')).toMatchObject({ activePath: 'b' })
    expect(await contextOf(base, 'x')).toEqual({ n: 1 })
    expect(await all(runner.parked())).toEqual([])
  })

  test('an entry that is nested as deep as a record can be is parked like any other', async () => {
    const { store, clock } = await setUp()
    const keeper = setup(anyEvent).createMachine({
      id: 'keeper',
      on: { KEEP: { actions: assign({ kept: ({ event }) => ({ under: { two: event.value } }) }) } },
    })
    const runner = runnerOn(store, { machines: [keeper], clock: clock.read, maxAttempts: 2 })
    await runner.create('keeper', { id: 'k' })
    let value: JsonValue = 'deep'
    for (let level = 0; level < 196; level++) value = [value]
    const event = newEvent({ kind: 'KEEP', data: { value } })
    await store.commit(newExecution({ id: 'sender', definitionId: 'other' }), { emits: [{ targetId: 'k', event }] })
    await sweepUp(clock, runner)
    expect(await store.pendingOutbox()).toEqual([])
    const [parked] = await all(runner.parked())
    expect(parked).toMatchObject({ kind: 'event', executionId: 'k', attempts: 2, work: { event } })
  })

  test('a child that cannot be started is parked, and can be given up', async () => {
    const { store: base, clock } = await setUp()
    const { store } = damaged(base, 'p:k')
    const runner = runnerOn(store, { machines: [counter], clock: clock.read, maxAttempts: 2 })
    const data = { definitionId: 'counter', version: '1', src: 'counter', actorId: 'k', sync: false, at: clock.now }
    await store.commit(newExecution({ id: 'p', definitionId: 'other' }), {
      spawns: [{ childId: 'p:k', rootPath: '', context: { xstate: data } }],
    })
    await sweepUp(clock, runner)
    expect(await store.pendingSpawns()).toEqual([])
    const [parked] = await all(runner.parked())
    expect(parked).toMatchObject({ kind: 'spawn', executionId: 'p:k', attempts: 2 })
    await runner.discard(parked?.id ?? '')
    expect(await all(runner.parked())).toEqual([])
    await expect(runner.discard('nobody')).rejects.toMatchObject({ code: 'UNKNOWN_EXECUTION' })
    await expect(runner.discard('p')).rejects.toMatchObject({ code: 'CONTROL_REFUSED' })
    await expect(runner.unpark('p')).rejects.toMatchObject({ code: 'CONTROL_REFUSED' })
  })

  test('what a runner has claimed and not done is done by another as soon as the claim has run out (B80)', async () => {
    const { store, clock } = await setUp()
    const runner = runnerOn(store, { machines: [counter], clock: clock.read })
    await runner.create('counter', { id: 'c' })
    const seqs = await store.commit(newExecution({ id: 'sender', definitionId: 'other' }), {
      emits: [{ targetId: 'c', event: newEvent({ kind: 'INC' }) }],
    })
    const claim = { owner: 'dead', until: clock.now + 4, outbox: [seqs[0], seqs[0]] }
    const sweep = newExecution({ id: 'harel.sweep', definitionId: 'harel.sweep', status: 'RUNNING' })
    sweep.context = { xstate: { nextAt: 0, pause: 0.1, claims: [claim as never], busy: {} } }
    await store.save(sweep)
    await sweepUp(clock, runner, 1)
    expect(await contextOf(store, 'c')).toEqual({ n: 0 })
    await sweepUp(clock, runner, 1)
    expect(await contextOf(store, 'c')).toEqual({ n: 1 })
  })

  test('what a clock that ran two hours ahead has left behind is taken up as soon as anything else (B82, B83)', async () => {
    const { store, clock } = await setUp()
    const runner = runnerOn(store, { machines: [counter], clock: clock.read })
    await runner.create('counter', { id: 'c' })
    const far = clock.now + 7200
    const createdTime = new Date(far * 1000).toISOString()
    const seqs = await store.commit(newExecution({ id: 'sender', definitionId: 'other' }), {
      emits: [{ targetId: 'c', event: newEvent({ kind: 'INC', createdTime }) }],
    })
    const claim = { owner: 'dead', until: far, outbox: [seqs[0], seqs[0]] }
    const sweep = newExecution({ id: 'harel.sweep', definitionId: 'harel.sweep', status: 'RUNNING' })
    const shared = { owner: 'dead', reading: far, nextAt: far, pause: 2, claims: [claim], busy: { c: far } }
    sweep.context = { xstate: shared as never }
    await store.save(sweep)
    expect(await runner.sweep()).toBeLessThan(3)
    await runner.settled()
    expect(await contextOf(store, 'c')).toEqual({ n: 1 })
  })

  test('while the clock is set forward and back each timer fires once, and the pauses between sweeps stay short (B83)', async () => {
    const { store, clock } = await setUp()
    const fired: string[] = []
    const act = () => void fired.push(currentEffect().idempotencyKey)
    const machine = setup({ actions: { act } }).createMachine({
      id: 'timed',
      initial: 'a',
      states: { a: { after: { 3600000: { target: 'b', actions: 'act' } } }, b: {} },
    })
    const runners = [1, 2].map(() => runnerOn(store, { machines: [machine], clock: clock.read }))
    await runners[0]?.create('timed', { id: 't' })
    for (const step of [0, 3, 7200, 3, 3, -7200, 3, 3, 3, 7200, 3, -7200, 3]) {
      clock.now += step
      for (const runner of runners) {
        expect(await runner.sweep()).toBeLessThan(3)
        await runner.settled()
      }
    }
    expect(fired).toHaveLength(1)
    expect(await stored(store, 't')).toMatchObject({ activePath: 'b', version: 2 })
    await store.commit(newExecution({ id: 'sender', definitionId: 'other' }), {
      emits: [
        { targetId: 't', event: newEvent({ kind: 'ANY', createdTime: new Date(clock.now * 1000).toISOString() }) },
      ],
    })
    await sweepUp(clock, runners[1] ?? runnerOn(store, { machines: [machine] }), 2)
    expect(await store.pendingOutbox()).toEqual([])
  })

  test('any number of slow steps at once is told to others in a few commits', async () => {
    const { store } = await setUp()
    const slow = () => new Promise((resolve) => setTimeout(resolve, 800))
    const machine = setup({ ...anyEvent, actions: { slow: slow as () => void } }).createMachine({
      id: 'slow',
      on: { ACT: { actions: 'slow' } },
    })
    const sender = setup(anyEvent).createMachine({
      id: 'sender',
      on: { ALL: { actions: Array.from({ length: 60 }, (_, n) => sendTo(() => execution(`s${n}`), { type: 'ACT' })) } },
    })
    const runner = runnerOn(store, { machines: [machine, sender], grace: 0.2 })
    await Promise.all(Array.from({ length: 60 }, (_, n) => runner.create('slow', { id: `s${n}` })))
    await runner.create('sender', { id: 'all' })
    keepRunning(runner)
    await runner.send('all', { type: 'ALL' })
    await runner.settled()
    expect(await store.pendingOutbox()).toEqual([])
    expect((await stored(store, 'harel.sweep')).version).toBeLessThan(60)
  })

  test('a runner that is closed in the midst of a sweep ends its run, and leaves what it has not begun', async () => {
    const { store } = await setUp()
    const slow = () => new Promise((resolve) => setTimeout(resolve, 100))
    const machine = setup({ ...anyEvent, actions: { slow: slow as () => void } }).createMachine({
      id: 'slow',
      on: { ACT: { actions: 'slow' } },
    })
    const maker = runnerOn(store, { machines: [machine] })
    await Promise.all(Array.from({ length: 20 }, (_, n) => maker.create('slow', { id: `s${n}` })))
    const createdTime = '2020-01-01T00:00:00Z'
    await store.commit(newExecution({ id: 'sender', definitionId: 'other' }), {
      emits: Array.from({ length: 20 }, (_, n) => ({
        targetId: `s${n}`,
        event: newEvent({ kind: 'ACT', createdTime }),
      })),
    })
    const runner = runnerOn(store, { machines: [machine], concurrency: 2 })
    const running = runner.run()
    await until(async () => (await store.pendingOutbox()).length < 20)
    await runner.close()
    await running
    const left = (await store.pendingOutbox()).length
    expect(left).toBeGreaterThan(5)
    keepRunning(runnerOn(store, { machines: [machine] }))
    await until(async () => (await store.pendingOutbox()).length === 0)
    for (let n = 0; n < 20; n++) expect(await stored(store, `s${n}`)).toMatchObject({ version: 2 })
  })

  test('a restart among many executions looks at those that have something to do, and at no other', async () => {
    const { store: base, clock } = await setUp()
    const [waiting, due] = [800, 40]
    const waiter = createMachine({ id: 'waiter', initial: 'a', states: { a: { after: { 1e9: 'b' } }, b: {} } })
    const maker = runnerOn(base, { machines: [waiter, counter], clock: clock.read })
    await Promise.all(Array.from({ length: waiting }, (_, n) => maker.create('waiter', { id: `w${n}` })))
    await Promise.all(Array.from({ length: due }, (_, n) => maker.create('counter', { id: `c${n}` })))
    await maker.close()
    clock.now += 100
    const { store, calls, rows } = counting(base)
    const runner = runnerOn(store, { machines: [waiter, counter], clock: clock.read, pageSize: 16 })
    await sweepUp(clock, runner, 12)
    for (let n = 0; n < due; n++) expect(await stored(base, `c${n}`)).toMatchObject({ activePath: 'b' })
    expect(rows()).toBe(due)
    // Each timer: a load and a commit. Each of the rounds: the shared record, and its commits.
    expect(calls.get('load')).toBeLessThanOrEqual(due + 12)
    expect(calls.get('commit')).toBeLessThanOrEqual(due + 13)
    expect(calls.get('listExecutions')).toBeUndefined()
  })

  test('the same timer is fired once, by however many runners at once (B80)', async () => {
    const { store, clock } = await setUp()
    const keys: string[] = []
    const act = () => void keys.push(currentEffect().idempotencyKey)
    const machine = setup({ actions: { act } }).createMachine({
      id: 'timed',
      initial: 'a',
      states: { a: { after: { 1000: { target: 'a', reenter: true, actions: 'act' } } } },
    })
    const runners = Array.from({ length: 4 }, () => runnerOn(store, { machines: [machine], clock: clock.read }))
    await runners[0]?.create('timed', { id: 't' })
    for (let n = 0; n < 3; n++) {
      clock.now += 5
      await Promise.all(runners.map((runner) => runner.sweep()))
      clock.now += 5
      await Promise.all(runners.map((runner) => runner.sweep()))
    }
    // Armed anew at each firing, for a second later.
    expect((await stored(store, 't')).version).toBe(1 + new Set(keys).size)
    expect(new Set(keys).size).toBe(6)
  })

  test('a timer that is armed again for the very moment at which it fires, fires again', async () => {
    const { store, clock } = await setUp()
    const machine = setup({ types: { context: {} as { n: number } } }).createMachine({
      id: 'loop',
      context: { n: 0 },
      initial: 'a',
      states: {
        a: {
          after: {
            0: [
              {
                guard: ({ context }) => context.n < 3,
                target: 'a',
                reenter: true,
                actions: assign({ n: ({ context }) => context.n + 1 }),
              },
              { target: 'b' },
            ],
          },
        },
        b: {},
      },
    })
    const runner = runnerOn(store, { machines: [machine], clock: clock.read, grace: 0.001 })
    await runner.create('loop', { id: 'l' })
    // On a busy machine its steps take longer than `grace`, so that sweeps leave it alone for a while.
    await until(async () => {
      clock.now += 0.2
      await runner.sweep()
      await runner.settled()
      return (await stored(store, 'l')).activePath === 'b'
    })
    expect(await contextOf(store, 'l')).toEqual({ n: 3 })
  })
})

test('a store that is away for a while is waited for, and nothing is lost (weakness 55)', async () => {
  const base = await openStore()
  let away = false
  const store = new Proxy(base, {
    get(target, key) {
      const member: unknown = Reflect.get(target, key, target)
      if (typeof member !== 'function') return member
      return async (...given: unknown[]) => {
        if (away) throw Object.assign(new Error('away'), { retryable: true })
        return member.apply(target, given)
      }
    },
  })
  const runner = runnerOn(store, { machines: [counter], grace: 0.1 })
  await runner.create('counter', { id: 'c' })
  keepRunning(runner)
  away = true
  await base.commit(newExecution({ id: 'sender', definitionId: 'other' }), {
    emits: [{ targetId: 'c', event: newEvent({ kind: 'INC' }) }],
  })
  await until(() => runner.warnings.includes('a sweep failed and will be made again'))
  await expect(runner.send('c', { type: 'INC' })).rejects.toThrow('away')
  away = false
  await until(async () => ((await contextOf(base, 'c')) as { n: number }).n === 1)
})

test('what a process leaves behind is picked up by an idle one within seconds, with the options as they come', async () => {
  const store = await openStore()
  const runner = runnerOn(store, { machines: [counter] })
  await runner.create('counter', { id: 'c' })
  keepRunning(runner)
  // Long enough for its sweeps to have become rare.
  await sleep(4000)
  const start = performance.now()
  const event = newEvent({ kind: 'INC', createdTime: new Date().toISOString() })
  await store.commit(newExecution({ id: 'sender', definitionId: 'other' }), { emits: [{ targetId: 'c', event }] })
  await until(async () => (await store.pendingOutbox()).length === 0)
  expect(await contextOf(store, 'c')).toEqual({ n: 1 })
  expect(performance.now() - start).toBeLessThan(8000)
})

test('idle processes come at random moments', async () => {
  const clock = new TestClock()
  const pauses = [0, 1].map(async (random) =>
    runnerOn(await openStore(), { machines: [counter], clock: clock.read, random: () => random }).sweep(),
  )
  const [least = 0, most = 0] = await Promise.all(pauses)
  expect(most).toBeGreaterThan(least)
})

test('run ends within seconds of its signal, though a machine sends itself events for ever', async () => {
  const store = await openStore()
  const restless = setup(anyEvent).createMachine({
    id: 'restless',
    on: { TICK: { actions: sendTo(({ self }) => self, { type: 'TICK' }) } },
  })
  const runner = runnerOn(store, { machines: [restless] })
  await runner.create('restless', { id: 'r' })
  await runner.send('r', { type: 'TICK' })
  const start = performance.now()
  await runner.run({ signal: AbortSignal.timeout(200) })
  expect(performance.now() - start).toBeLessThan(8000)
})

describe('rows that the store cannot read', () => {
  /** A row before and behind two that are damaged, in either queue. */
  async function setUp() {
    const file = freshFile()
    const warnings: string[] = []
    const store = await openStore(async () =>
      asyncStore(SqliteStore.open(file, { onWarning: (message) => warnings.push(message) })),
    )
    const clock = new TestClock()
    const runner = runnerOn(store, { machines: [counter], clock: clock.read, maxAttempts: 3 })
    await runner.create('counter', { id: 'c' })
    const db = new DatabaseSync(file)
    onTestFinished(() => db.close())
    const sender = newExecution({ id: 'sender', definitionId: 'other' })
    const inc = () => store.commit(sender, { emits: [{ targetId: 'c', event: newEvent({ kind: 'INC' }) }] })
    await inc()
    db.exec(`INSERT INTO harel_outbox (target_id, event) VALUES ('c', '{"kind":"SECRET'), ('c', '[]')`)
    db.exec(`INSERT INTO harel_spawns (parent_id, child_id, root_path, context) VALUES ('sender', 'k', '', '{')`)
    await inc()
    return { store, clock, runner, db, warnings }
  }

  test('are parked at once, and hold up nobody', async () => {
    const { store, clock, runner, warnings } = await setUp()
    await sweepUp(clock, runner)
    expect(await contextOf(store, 'c')).toEqual({ n: 2 })
    const parked = await all(runner.parked())
    expect(parked.map(({ kind, executionId, attempts, work }) => ({ kind, executionId, attempts, work }))).toEqual(
      expect.arrayContaining([
        { kind: 'unreadable', executionId: '', attempts: 1, work: { kind: 'unreadable', queue: 'outbox', seq: 2 } },
        { kind: 'unreadable', executionId: '', attempts: 1, work: { kind: 'unreadable', queue: 'outbox', seq: 3 } },
        { kind: 'unreadable', executionId: '', attempts: 1, work: { kind: 'unreadable', queue: 'spawns', seq: 1 } },
      ]),
    )
    expect(parked).toHaveLength(3)
    for (const { error, since } of parked) {
      expect(error).toMatch(/^CorruptRecord: (outbox entry [23]|spawn 1) cannot be read: /)
      expect(since).toBeGreaterThan(0)
    }
    expect(warnings).toEqual([])
    expect(runner.warnings.filter((message) => message.includes('entry 2 of the outbox'))).toEqual([
      'entry 2 of the outbox is parked after one attempt',
    ])
    expect(JSON.stringify([parked, runner.warnings])).not.toContain('SECRET')
  })

  test('are delivered once when they have been repaired, parked or not', async () => {
    const { store, clock, runner, db } = await setUp()
    await sweepUp(clock, runner, 1)
    const repair = db.prepare('UPDATE harel_outbox SET event = ? WHERE seq = ?')
    repair.run(JSON.stringify({ id: 'repaired-2', kind: 'INC' }), 2)
    await sweepUp(clock, runner)
    expect((await all(runner.parked())).map(({ work }) => work)).not.toContainEqual(expect.objectContaining({ seq: 2 }))
    repair.run(JSON.stringify({ id: 'repaired-3', kind: 'INC' }), 3)
    await sweepUp(clock, runner, 20)
    expect(await contextOf(store, 'c')).toEqual({ n: 4 })
    for (const { id } of await all(runner.parked())) await runner.unpark(id)
    await sweepUp(clock, runner, 3)
    expect((await all(runner.parked())).map(({ work }) => work)).not.toContainEqual(expect.objectContaining({ seq: 3 }))
    expect(await contextOf(store, 'c')).toEqual({ n: 4 })
  })

  test('are removed when they are given up, but not what has been repaired since', async () => {
    const { store, clock, runner, db } = await setUp()
    await sweepUp(clock, runner)
    db.prepare('UPDATE harel_outbox SET event = ? WHERE seq = 3').run(JSON.stringify({ id: 'repaired', kind: 'INC' }))
    for (const { id } of await all(runner.parked())) await runner.discard(id)
    expect(db.prepare('SELECT seq FROM harel_outbox').all()).toEqual([{ seq: 3 }])
    expect(db.prepare('SELECT seq FROM harel_spawns').all()).toEqual([])
    await sweepUp(clock, runner, 20)
    expect(await contextOf(store, 'c')).toEqual({ n: 3 })
    expect(await all(runner.parked())).toEqual([])
  })
})
