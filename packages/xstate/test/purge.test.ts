import { CorruptRecord, type ExecutionStore, newExecution } from '@harel/store-base'
import type { ArchivedTree, PurgeFinishedOptions } from '@harel/xstate'
import { describe, expect, test } from 'vitest'
import { createMachine, setup } from 'xstate'
import {
  collectGarbage,
  counting,
  everythingIn,
  openStore,
  runnerOn,
  stored,
  stores,
  TestClock,
  withMethods,
} from './helpers.js'

const lamp = setup({ types: { events: {} as { type: string } } }).createMachine({ id: 'lamp' })

const inner = createMachine({ id: 'inner', initial: 'on', states: { on: { always: 'off' }, off: { type: 'final' } } })
const outer = setup({ actors: { inner } }).createMachine({
  id: 'outer',
  initial: 'waiting',
  states: { waiting: { invoke: { src: 'inner', id: 'kid', onDone: 'over' } }, over: { type: 'final' } },
})

describe.each(stores)('on $name', ({ open }) => {
  const setUp = async () => {
    const store = await openStore(open)
    const clock = new TestClock()
    return { store, clock, runner: runnerOn(store, { machines: [lamp], clock: clock.read }) }
  }

  const save = (store: ExecutionStore, id: string, parentId: string | null, status: 'DONE' | 'FAILED' | 'RUNNING') =>
    store.save(newExecution({ id, definitionId: 'lamp', parentId, status, finishedAt: status === 'DONE' ? 1 : null }))

  test('what has failed below a root that has ended does not keep its tree', async () => {
    const { store, runner } = await setUp()
    for (const id of ['r', 's']) {
      await save(store, id, null, 'DONE')
      await save(store, `${id}:failed`, id, 'FAILED')
      await save(store, `${id}:failed:done`, `${id}:failed`, 'DONE')
    }
    expect(await runner.purge('r')).toBe(true)
    expect(await runner.purgeFinished({ olderThan: 0 })).toEqual({ purged: ['s'], refused: [], nextCursor: null })
    expect(await store.idsWithPrefix('')).toEqual([])
  })

  test('what is still running below it does, and so does a root that has failed', async () => {
    const { store, runner } = await setUp()
    await save(store, 'r', null, 'DONE')
    await save(store, 'r:failed', 'r', 'FAILED')
    await save(store, 'r:failed:running', 'r:failed', 'RUNNING')
    await save(store, 'f', null, 'FAILED')
    await expect(runner.purge('r')).rejects.toMatchObject({
      message: '"r" is not purged: "r:failed:running" is RUNNING',
      members: ['r:failed:running'],
    })
    await expect(runner.purge('f')).rejects.toMatchObject({ message: '"f" is not purged: "f" is FAILED' })
    expect(await store.idsWithPrefix('')).toHaveLength(4)
  })

  test('a tree with a record that cannot be read is named by purgeFinished, and keeps no other from being removed', async () => {
    const { store, clock, runner } = await setUp()
    for (const id of ['a', 'b', 'c']) {
      await save(store, id, null, 'DONE')
      await save(store, `${id}:child`, id, 'DONE')
    }
    const damaged = withMethods(store, {
      load: async (id) => {
        if (id === 'b:child') throw new CorruptRecord(id, 'it was cut off')
        return store.load(id)
      },
    })
    const broken = runnerOn(damaged, { machines: [lamp], clock: clock.read })
    const report = { purged: ['a', 'c'], refused: [{ id: 'b', reason: expect.stringContaining('it was cut off') }] }
    expect(await broken.purgeFinished({ olderThan: 0, dryRun: true })).toMatchObject(report)
    expect(await broken.purgeFinished({ olderThan: 0 })).toMatchObject(report)
    expect(await store.idsWithPrefix('')).toEqual(['b', 'b:child'])
    await expect(broken.purge('b')).rejects.toMatchObject({ code: 'CORRUPT_RECORD' })
    expect(await runner.purge('b')).toBe(true)
  })

  test('one call of purgeFinished looks at a bounded number of trees, whatever becomes of them', async () => {
    const { store, runner } = await setUp()
    for (const id of ['a', 'b', 'c']) {
      await save(store, id, null, 'DONE')
      await save(store, `${id}:running`, id, 'RUNNING')
    }
    const first = await runner.purgeFinished({ olderThan: 0, limit: 2 })
    expect(first.refused.map(({ id }) => id)).toEqual(['a', 'b'])
    const second = await runner.purgeFinished({ olderThan: 0, limit: 2, cursor: first.nextCursor })
    expect([second.refused.map(({ id }) => id), second.nextCursor]).toEqual([['c'], null])
    const young = Array.from({ length: 100 }, () => ({ id: 'y', finishedAt: 1e12 }))
    let listings = 0
    const endless = withMethods(store, {
      listExecutions: async () => {
        listings += 1
        return { items: young as never[], nextCursor: 'more' }
      },
    })
    const report = await runnerOn(endless, { machines: [lamp] }).purgeFinished({ olderThan: 0 })
    expect([report, listings]).toEqual([{ purged: [], refused: [], nextCursor: 'more' }, 100])
  })

  test('a purge says how many stand in its way', async () => {
    const { store, runner } = await setUp()
    await save(store, 'r', null, 'RUNNING')
    for (const n of [1, 2]) await save(store, `r:${n}`, 'r', 'RUNNING')
    await expect(runner.purge('r')).rejects.toThrow('"r" is RUNNING, and 2 more of its tree are not finished')
  })

  test('what has lost its parent goes with the root that it was below, before that', async () => {
    const { store, runner } = await setUp()
    await save(store, 'r', null, 'DONE')
    await save(store, 'r:gone:leaf', 'r:gone', 'DONE')
    await save(store, 'r:gone:leaf:tip', 'r:gone:leaf', 'FAILED')
    await save(store, 'r:namesake', null, 'DONE')
    await save(store, 'r:namesake:child', 'r:namesake', 'DONE')
    await save(store, 'elsewhere', null, 'RUNNING')
    await save(store, 'r:adopted', 'elsewhere', 'RUNNING')
    const archived: string[] = []
    await runner.purge('r', { archive: ({ executions }) => void archived.push(...executions.map(({ id }) => id)) })
    expect(archived).toEqual(['r', 'r:gone:leaf', 'r:gone:leaf:tip'])
    expect(await store.idsWithPrefix('')).toEqual(['elsewhere', 'r:adopted', 'r:namesake', 'r:namesake:child'])
  })

  const tracedTree = async () => {
    const store = await openStore(open)
    const runner = runnerOn(store, { machines: [outer], trace: true })
    await runner.create('outer', { id: 'o' })
    await runner.settled()
    expect(await stored(store, 'o')).toMatchObject({ status: 'DONE' })
    return { store, runner }
  }

  test('archive is given each execution with its trace, and is waited for before anything is removed', async () => {
    const { store, runner } = await tracedTree()
    const executions = await Promise.all(['o', 'o:kid'].map((id) => stored(store, id)))
    const traces = { o: await store.readTrace('o'), 'o:kid': await store.readTrace('o:kid') }
    expect(traces.o.map(({ event_kind }) => event_kind)).toEqual(['xstate.init', 'xstate.done.actor.kid'])
    expect(traces['o:kid'].map(({ event_kind }) => event_kind)).toEqual(['xstate.init'])
    const archived: ArchivedTree[] = []
    const whole = await everythingIn(store)
    const archive = async (tree: ArchivedTree) => {
      await new Promise(setImmediate)
      expect(await everythingIn(store)).toEqual(whole)
      archived.push(tree)
    }
    expect(await runner.purge('o', { archive })).toBe(true)
    expect(archived).toEqual([{ rootId: 'o', executions, traces }])
    expect(await everythingIn(store)).toEqual({ executions: [], traces: [], outbox: [], spawns: [], timers: [] })
  })

  test.each([
    [
      'throws',
      () => {
        throw new Error('the disk is full')
      },
    ],
    ['rejects', () => Promise.reject(new Error('the disk is full'))],
  ])('an archive that %s leaves the tree whole', async (_, archive) => {
    const { store, runner } = await tracedTree()
    const whole = await everythingIn(store)
    await expect(runner.purge('o', { archive })).rejects.toThrow('the disk is full')
    await expect(runner.purgeFinished({ olderThan: 0, archive })).rejects.toThrow('the disk is full')
    expect(await everythingIn(store)).toEqual(whole)
  })

  test('what is changed before it is archived is neither archived nor removed', async () => {
    const { store, runner } = await tracedTree()
    let loads = 0
    const changing = withMethods(store, {
      readTrace: async (id) => {
        loads += 1
        if (loads === 1) await store.save(await stored(store, 'o:kid'))
        return store.readTrace(id)
      },
    })
    const archived: ArchivedTree[] = []
    const purging = runnerOn(changing, { machines: [outer] }).purge('o', {
      archive: (tree) => void archived.push(tree),
    })
    await expect(purging).rejects.toMatchObject({ code: 'STORE_CONFLICT', executionId: 'o:kid' })
    expect([archived, await store.idsWithPrefix('')]).toEqual([[], ['o', 'o:kid']])
    expect(await runner.purge('o')).toBe(true)
  })

  test('one call of purgeFinished removes all that its dry run has named, and calls by cursor miss none', async () => {
    const { store, clock, runner } = await setUp()
    const name = (kind: string, n: number) => `${String(n).padStart(3, '0')}-${kind}`
    const kindOf = (n: number) => (n % 7 === 0 ? 'young' : n % 11 === 0 ? 'held' : 'old')
    const fill = async () => {
      for (let n = 0; n < 260; n++) {
        const id = name(kindOf(n), n)
        if ((await store.load(id)) !== undefined) continue
        const finishedAt = kindOf(n) === 'young' ? clock.now : 1
        await store.save(newExecution({ id, definitionId: 'lamp', status: 'DONE', finishedAt }))
        if (kindOf(n) === 'held') await save(store, `${id}:running`, id, 'RUNNING')
      }
    }
    const numbers = Array.from({ length: 260 }, (_, n) => n)
    const named = (kind: string) => numbers.filter((n) => kindOf(n) === kind).map((n) => name(kind, n))
    await fill()
    const options = { olderThan: 10 }
    const dry = await runner.purgeFinished({ ...options, dryRun: true })
    expect([dry.purged, dry.refused.map(({ id }) => id), dry.nextCursor]).toEqual([named('old'), named('held'), null])
    expect(await runner.purgeFinished(options)).toEqual(dry)
    const kept = numbers.filter((n) => kindOf(n) !== 'old').flatMap((n) => name(kindOf(n), n))
    expect((await store.idsWithPrefix('')).filter((id) => !id.includes(':'))).toEqual(kept)
    // Calls by cursor, each with a removal at its end, at its beginning, or in between.
    for (const limit of [1, 9, 64]) {
      await fill()
      const [purged, refused]: [string[], string[]] = [[], []]
      let cursor: string | null = null
      do {
        const report = await runner.purgeFinished({ ...options, limit, cursor })
        purged.push(...report.purged)
        refused.push(...report.refused.map(({ id }) => id))
        cursor = report.nextCursor
      } while (cursor !== null)
      expect([purged, refused], `by ${limit}`).toEqual([named('old'), named('held')])
    }
  })

  test('what has lost its root is a root itself', async () => {
    const { store, runner } = await setUp()
    await save(store, 'gone:child', 'gone', 'DONE')
    await save(store, 'gone:child:leaf', 'gone:child', 'DONE')
    await expect(runner.purge('gone:child:leaf')).rejects.toThrow('it is a child of "gone:child"')
    expect(await runner.purge('gone:child')).toBe(true)
    expect(await store.idsWithPrefix('')).toEqual([])
  })
})

test('a purge holds no more than a few executions of a tree of 10,000 at once', async () => {
  const store = await openStore()
  const ids = Array.from({ length: 10_000 }, (_, n) => `r:${n}`)
  const child = { rootPath: '', finished: true, outcome: null, result: {}, submachine: true, key: '' }
  const children = Object.fromEntries(ids.map((id) => [id, child]))
  await store.save(newExecution({ id: 'r', definitionId: 'lamp', status: 'DONE', finishedAt: 1, children }))
  for (const id of ids) await store.save(newExecution({ id, definitionId: 'lamp', parentId: 'r', status: 'DONE' }))
  const loaded: WeakRef<object>[] = []
  let most = 0
  const look = async () => {
    await collectGarbage()
    most = Math.max(most, loaded.filter((held) => held.deref() !== undefined).length)
  }
  const watched = withMethods(store, {
    load: async (id) => {
      const execution = await store.load(id)
      if (execution !== undefined) loaded.push(new WeakRef(execution))
      if (loaded.length % 5000 === 0) await look()
      return execution
    },
    purge: async (id, version) => {
      if (id === 'r:0' || id === 'r') await look()
      return store.purge(id, version)
    },
  })
  const runner = runnerOn(watched, { machines: [lamp] })
  await runner.purgeFinished({ olderThan: 0, dryRun: true })
  expect(await runner.purge('r')).toBe(true)
  expect(await store.idsWithPrefix('')).toEqual([])
  expect(loaded.length).toBeGreaterThan(20_000)
  expect(most).toBeGreaterThan(0)
  expect(most).toBeLessThan(10)
})

test('a purge with an option that is misspelt or makes no sense removes nothing, and asks nothing of the store', async () => {
  const { store, calls } = counting(await openStore())
  const runner = runnerOn(store, { machines: [lamp] })
  await runner.create('lamp', { id: 'r' })
  await runner.terminate('r')
  calls.clear()
  const bad: (readonly [options: object | null | undefined, argument: string])[] = [
    [undefined, 'options'],
    [null, 'options'],
    [{}, 'options.olderThan'],
    ...[Number.NaN, Number.POSITIVE_INFINITY, undefined, null, -5, '7', new Date()].map(
      (olderThan) => [{ olderThan }, 'options.olderThan'] as const,
    ),
    [{ olderThen: 10 }, 'options'],
    [{ olderThan: 0, olderThen: 10 }, 'options'],
    ...[0, -1, 1.5, Number.NaN, '3', null].map((limit) => [{ olderThan: 0, limit }, 'options.limit'] as const),
    [{ olderThan: 0, of: 'tree' }, 'options.of'],
    [{ olderThan: 0, statuses: 'DONE' }, 'options.statuses'],
    [{ olderThan: 0, statuses: ['DONE', 'FAILED'] }, 'options.statuses[1]'],
    [{ olderThan: 0, cursor: 7 }, 'options.cursor'],
    [{ olderThan: 0, dryRun: 'yes' }, 'options.dryRun'],
    [{ olderThan: 0, archive: 'file' }, 'options.archive'],
    [{ olderThan: 0, signal: {} }, 'options.signal'],
  ]
  for (const [options, argument] of bad) {
    const refused = { code: 'INVALID_ARGUMENT', argument }
    await expect(runner.purgeFinished(options as PurgeFinishedOptions), argument).rejects.toMatchObject(refused)
  }
  await expect(runner.purge('r', { archiv: () => {} } as object)).rejects.toMatchObject({ argument: 'options' })
  await expect(runner.purge('r', { archive: 'file' as never })).rejects.toMatchObject({ argument: 'options.archive' })
  await expect(runner.purge(5 as never)).rejects.toMatchObject({ argument: 'id' })
  expect([...calls]).toEqual([])
  expect(await stored(store, 'r')).toMatchObject({ status: 'CANCELLED' })
})
