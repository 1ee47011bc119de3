import { type ExecutionStore, executions, newEvent, newExecution, StoreConflict } from '@harel/store-base'
import { canonical } from '@harel-tooling/canonical'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { backends } from '../src/backends/index.js'
import { PythonStore } from '../src/python.js'
import { expected, play, scenario, withoutOrphans } from '../src/scenario.js'

const NS = 'chk-'
const ranks = { ranks: true }
/** In milliseconds. A busy machine takes minutes. */
const LONG = 1_800_000

/** As `add` of `driver.py`. */
async function add(store: ExecutionStore, id: string, by: string): Promise<boolean> {
  const held = await store.load(id)
  if (held === undefined) return expect.unreachable(id)
  held.context[by] = Number(held.context[by] ?? 0) + 1
  const event = newEvent({ id: `${id}:${held.version + 1}`, kind: 'Added' })
  try {
    await store.commit(held, { emits: [{ targetId: id, event }], processedEventId: event.id })
    return true
  } catch (error) {
    if (error instanceof StoreConflict) return false
    throw error
  }
}

describe.each(backends)('on $name', ({ start, purgesWhatItSent, refresh }) => {
  const expectedByPython = purgesWhatItSent ? withoutOrphans() : expected
  let server: Awaited<ReturnType<typeof start>>
  beforeAll(async () => {
    server = await start()
  })
  afterAll(() => server[Symbol.asyncDispose]())

  const setUp = async (prefix = 'harel') => {
    const database = await server.make()
    onTestFinished(() => database[Symbol.asyncDispose]())
    return {
      open: (options: { traceMax?: number } = {}) => database.open({ prefix, ...options }),
      startPython: () => new PythonStore(database.url, prefix),
    }
  }

  test.each(['harel', 'other'])('Python reads exactly what we have written (prefix %s)', async (prefix) => {
    const { open, startPython } = await setUp(prefix)
    await play(scenario, open)
    await using python = startPython()
    expect(await python.canonical(NS)).toEqual(expectedByPython)
    await using store = await open()
    expect(await canonical(store, NS, ranks)).toEqual(expected)
  })

  test.each(['harel', 'other'])('we read exactly what Python has written (prefix %s)', async (prefix) => {
    const { open, startPython } = await setUp(prefix)
    await using python = startPython()
    await python.play(scenario)
    await using store = await open()
    expect(await canonical(store, NS, ranks)).toEqual(expectedByPython)
    expect(await python.canonical(NS)).toEqual(expectedByPython)
  })

  test.each(['sync', 'async'] as const)("Python's %s contracts hold on a database of ours in use", async (twin) => {
    const { open, startPython } = await setUp()
    await play(scenario, open)
    await using python = startPython()
    await python.contracts('py-', twin)
    await using store = await open()
    expect(await canonical(store, NS, ranks)).toEqual(expected)
  })

  test('every execution that one side has written, the other goes on with', async () => {
    const { open, startPython } = await setUp()
    await play(scenario, open)
    await using python = startPython()
    await using store = await open()
    for (const id of await store.idsWithPrefix(NS)) {
      const before = await store.load(id)
      expect(await python.add(id, 'python')).toBe(true)
      expect(await add(store, id, 'us')).toBe(true)
      expect(await python.add(id, 'python')).toBe(true)
      expect(await store.load(id)).toEqual({
        ...before,
        version: (before?.version ?? 0) + 3,
        context: { ...before?.context, python: 2, us: 1 },
      })
    }
  })

  test('2,000 commits in turns each go on from what the other side has just written', { timeout: LONG }, async () => {
    const { open, startPython } = await setUp()
    const ids = ['a', 'b', 'c']
    await using store = await open()
    await using python = startPython()
    for (const id of ids) await store.save(newExecution({ id, definitionId: 'd' }))
    for (let n = 0; n < 1000; n++) {
      const id = ids[n % ids.length] ?? ''
      expect(await add(store, id, 'us')).toBe(true)
      expect(await python.add(id, 'python')).toBe(true)
    }
    const stored = await Promise.all(ids.map((id) => store.load(id)))
    expect(stored.map((held) => [held?.version, held?.context])).toEqual([
      [669, { us: 334, python: 334 }],
      [667, { us: 333, python: 333 }],
      [667, { us: 333, python: 333 }],
    ])
  })

  test('2,000 commits of both at once on the same executions lose no update', { timeout: LONG }, async () => {
    const { open, startPython } = await setUp()
    const ids = ['a', 'b', 'c']
    await using store = await open()
    await using python = startPython()
    for (const id of ids) await store.save(newExecution({ id, definitionId: 'd' }))
    const repeat = async (addTo: (id: string) => Promise<boolean>) => {
      for (let done = 0, n = 0; done < 1000; n++) {
        // Who has lost an update may be refused for ever.
        expect(n).toBeLessThan(20_000)
        if (await addTo(ids[n % ids.length] ?? '')) done++
      }
    }
    await Promise.all([repeat((id) => add(store, id, 'us')), repeat((id) => python.add(id, 'python'))])

    const counted = { us: 0, python: 0 }
    const queued = await store.pendingOutbox()
    for (const id of ids) {
      const { version = 0, context } = (await store.load(id)) ?? {}
      const [us, byPython] = [Number(context?.us), Number(context?.python)]
      expect(us + byPython).toBe(version - 1)
      counted.us += us
      counted.python += byPython
      // One event and one mark for each commit, whoever made it, in the order of the versions.
      const events = Array.from({ length: version - 1 }, (_, n) => `${id}:${n + 2}`)
      expect(queued.filter(({ targetId }) => targetId === id).map(({ event }) => event.id)).toEqual(events)
      for (const event of events) expect(await store.isProcessed(id, event)).toBe(true)
    }
    expect(counted).toEqual({ us: 1000, python: 1000 })
  })

  test('Python drives a machine of its own to the end, while our store lists, traces and purges', async () => {
    const { open, startPython } = await setUp()
    await using store = await open()
    await using python = startPython()
    const ended: string[] = []
    const drive = async () => {
      for (const id of Array.from({ length: 20 }, (_, n) => `run-${n}`)) {
        expect(await python.create(id)).toEqual(['RUNNING', 'Packing'])
        if (id.endsWith('5')) {
          expect(await python.wait(31)).toBe(1)
        } else {
          expect(await python.send(id, 'Pay', { amount: 2.5 })).toEqual(['RUNNING', 'Checks'])
          expect(await python.send(id, 'Go')).toEqual(['RUNNING', 'Delivery'])
          expect(await python.send(id, 'Go')).toEqual(['DONE', 'Delivered'])
        }
        ended.push(id)
      }
    }
    const seen = { statuses: new Set<string>(), traces: new Map<string, unknown[]>(), purged: 0 }
    const watch = async () => {
      await refresh?.(store)
      for await (const { id, status } of executions(store, { limit: 5 })) {
        seen.statuses.add(status)
        const [before = [], trace] = [seen.traces.get(id), await store.readTrace(id)]
        expect(trace.slice(0, before.length)).toEqual(before)
        seen.traces.set(id, trace)
      }
      for (const root of ended.splice(0)) {
        const tree = [...(await store.idsWithPrefix(`${root}:`)), root]
        expect(tree).toHaveLength(root.endsWith('5') ? 1 : 4)
        for (const id of tree) {
          expect(await store.purge(id, (await store.load(id))?.version ?? 0)).toBe(true)
          expect(await store.readTrace(id)).toEqual([])
        }
        seen.purged += tree.length
      }
    }
    let driving = true
    const driven = drive().finally(() => {
      driving = false
    })
    while (driving) await watch()
    await driven
    await watch()

    expect(seen.purged).toBe(18 * 4 + 2)
    expect(seen.statuses).toEqual(new Set(['RUNNING', 'DONE']))
    const nothing = { executions: {}, outbox: [], spawns: [], timers: [], trace: {} }
    expect(await canonical(store, '')).toMatchObject(nothing)
    expect(await python.canonical('')).toMatchObject(nothing)
  })

  test("what Python's runner has left in the middle, we read exactly", async () => {
    const { open, startPython } = await setUp()
    await using store = await open()
    await using python = startPython()
    await python.create('run-packing')
    for (const id of ['run-checks', 'run-done']) {
      await python.create(id)
      await python.send(id, 'Pay', { amount: 2.5 })
    }
    for (const _ of ['Delivery', 'Delivered']) await python.send('run-done', 'Go')
    await refresh?.(store)
    expect(await canonical(store, 'run-')).toEqual(await python.canonical('run-'))
    const traced = (await store.readTrace('run-done')).map((step) => step.event_kind)
    expect(traced).toEqual(['Start', 'Pay', 'Finished', 'Finished', 'Finished', 'Go'])
  })
})
