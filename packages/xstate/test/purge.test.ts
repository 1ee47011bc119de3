import { type ExecutionStore, newExecution } from '@harel/store-base'
import type { PurgeFinishedOptions } from '@harel/xstate'
import { describe, expect, test } from 'vitest'
import { setup } from 'xstate'
import { counting, openStore, runnerOn, stored, stores, TestClock, withMethods } from './helpers.js'

const lamp = setup({ types: { events: {} as { type: string } } }).createMachine({ id: 'lamp' })

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

  test('what has lost its root is a root itself', async () => {
    const { store, runner } = await setUp()
    await save(store, 'gone:child', 'gone', 'DONE')
    await save(store, 'gone:child:leaf', 'gone:child', 'DONE')
    await expect(runner.purge('gone:child:leaf')).rejects.toThrow('it is a child of "gone:child"')
    expect(await runner.purge('gone:child')).toBe(true)
    expect(await store.idsWithPrefix('')).toEqual([])
  })
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
