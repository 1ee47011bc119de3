import { inspect } from 'node:util'
import { runInNewContext } from 'node:vm'
import { describe, expect, test, vi } from 'vitest'
import { asyncStore } from '../src/async-store.js'
import { CheckedStore, type StoreOptions, SyncCheckedStore } from '../src/checked-store.js'
import { InvalidArgument, NotSerializable, StoreConflict, StoreError, StoreUnavailable } from '../src/errors.js'
import { timers } from '../src/iterate.js'
import type { ExecutionStore } from '../src/protocol.js'
import { type Execution, newEvent, newExecution } from '../src/records.js'
import { MapBackend, remote, wrapped } from './map-backend.js'

const kinds: [string, (backend: MapBackend, options?: StoreOptions) => ExecutionStore][] = [
  ['a synchronous backend', (backend, options) => asyncStore(new SyncCheckedStore(backend, options))],
  ['an asynchronous backend', (backend, options) => new CheckedStore(remote(backend), options)],
]

const event = newEvent({ id: 'e', kind: 'k' })

/** Every method, called as it should be. */
const calls: [Exclude<keyof ExecutionStore, symbol>, (store: ExecutionStore) => Promise<unknown>][] = [
  ['load', (store) => store.load('x')],
  ['loadForEvent', (store) => store.loadForEvent('x', 'e')],
  ['save', (store) => store.save(newExecution({ definitionId: 'd' }))],
  ['commit', (store) => store.commit(newExecution({ definitionId: 'd' }))],
  ['isProcessed', (store) => store.isProcessed('x', 'e')],
  ['pendingOutbox', (store) => store.pendingOutbox()],
  ['ackOutbox', (store) => store.ackOutbox(1)],
  ['pendingSpawns', (store) => store.pendingSpawns()],
  ['ackSpawn', (store) => store.ackSpawn([1])],
  ['dueTimers', (store) => store.dueTimers(0)],
  ['deleteTimer', (store) => store.deleteTimer('x', 'p', 0)],
  ['readTrace', (store) => store.readTrace('x')],
  ['appendTrace', (store) => store.appendTrace('x', {})],
  ['listExecutions', (store) => store.listExecutions()],
  ['idsWithPrefix', (store) => store.idsWithPrefix('')],
  ['publishDefinition', (store) => store.publishDefinition({ id: 'd', version: '1', definition: {} })],
  ['loadDefinition', (store) => store.loadDefinition('d', '1')],
  ['purge', (store) => store.purge('x', 0)],
]

describe.each(kinds)('a store on %s', (_, open) => {
  const opened = (options?: StoreOptions) => {
    const backend = new MapBackend()
    return { backend, store: open(backend, options) }
  }

  test('hands out timers that are nothing but what the protocol says, and not the rows of the backend', async () => {
    const { backend, store } = opened()
    const row = { executionId: 'x', path: 'p', fireAt: 1, _id: 'internal' }
    vi.spyOn(backend, 'dueTimers').mockReturnValue([row])
    const [timer] = await store.dueTimers(9)
    expect(timer).toEqual({ executionId: 'x', path: 'p', fireAt: 1 })
    expect(timer).not.toBe(row)
  })

  test('stores what the objects were when the method was called', async () => {
    const { store } = opened()
    const execution = newExecution({ definitionId: 'd', id: 'x', context: { list: [1] } })
    const changes = {
      emits: [{ targetId: 'x' as string | null, event: newEvent({ id: 'e', kind: 'k', data: { n: 1 } }) }],
      processedEventId: 'e',
      timers: [{ action: 'schedule' as const, path: 'p', fireAt: 1 }],
      spawns: [{ childId: 'c', rootPath: '', context: { n: 1 } }],
      trace: { n: 1 },
    }
    const pending = store.commit(execution, changes)
    execution.context.list = 'later'
    execution.id = 'later'
    for (const emit of changes.emits) Object.assign(emit, { targetId: null }).event.data.n = 2
    for (const timer of changes.timers) timer.fireAt = 2
    for (const spawn of changes.spawns) spawn.context.n = 2
    changes.trace.n = 2
    changes.processedEventId = 'later'
    const [seq] = await pending

    expect((await store.load('x'))?.context).toEqual({ list: [1] })
    expect(await store.load('later')).toBe(undefined)
    expect(await store.pendingOutbox()).toEqual([{ seq, targetId: 'x', event: { ...event, data: { n: 1 } } }])
    expect(await store.isProcessed('x', 'e')).toBe(true)
    expect(await store.dueTimers(9)).toEqual([{ executionId: 'x', path: 'p', fireAt: 1 }])
    expect(await store.pendingSpawns()).toMatchObject([
      { parentId: 'x', childId: 'c', rootPath: '', context: { n: 1 } },
    ])
    expect(await store.readTrace('x')).toEqual([{ n: 1, index: 0 }])
  })

  test('raises the version once the commit has succeeded, and returns the seqs', async () => {
    const { store } = opened()
    const execution = newExecution({ definitionId: 'd', id: 'x' })
    expect(
      await store.commit(execution, {
        emits: [
          { targetId: null, event },
          { targetId: 'y', event },
        ],
      }),
    ).toEqual([1, 2])
    expect(execution.version).toBe(1)
    expect(await store.save(execution)).toBe(undefined)
    expect(execution.version).toBe(2)
    expect(await store.load('x')).toEqual(execution)
  })

  test('tells of a conflict what was held and what was found, and leaves the version', async () => {
    const { store } = opened()
    const first = newExecution({ definitionId: 'd', id: 'x' })
    await store.commit(first)
    await store.commit(first)
    const stale = { ...first, version: 1 }
    await expect(store.commit(stale)).rejects.toMatchObject({ executionId: 'x', expected: 1, found: 2 })
    await expect(store.commit({ ...stale, id: 'y' })).rejects.toMatchObject({
      executionId: 'y',
      expected: 1,
      found: null,
    })
    await expect(store.save(stale)).rejects.toBeInstanceOf(StoreConflict)
    expect(stale.version).toBe(1)
  })

  test('refuses a commit before the database sees it, and leaves the version', async () => {
    const { backend, store } = opened()
    const seen = vi.spyOn(backend, 'commit')
    const execution = newExecution({ definitionId: 'd', context: { a: Number.NaN } })
    await expect(store.commit(execution)).rejects.toBeInstanceOf(NotSerializable)
    await expect(store.commit(Object.freeze({ ...execution, context: {} }))).rejects.toBeInstanceOf(InvalidArgument)
    expect(seen).not.toHaveBeenCalled()
    expect(execution.version).toBe(0)
  })

  test('turns whatever else is thrown into StoreUnavailable, and says nothing of it but as the cause (B102)', async () => {
    const failure = new TypeError('CANARY: connect ECONNREFUSED u:S3cr3t!pw@db')
    const broken = wrapped(new MapBackend(), () => {
      throw failure
    })
    for (const [name, call] of calls) {
      const error = await call(open(broken)).catch((reason: unknown) => reason)
      expect(error, name).toBeInstanceOf(StoreUnavailable)
      expect(error, name).toMatchObject({ retryable: true, cause: failure })
      expect(String(error)).not.toContain('CANARY')
    }
    await expect(open(broken).close()).rejects.toBeInstanceOf(StoreUnavailable)
  })

  test('hands on the errors that are its own', async () => {
    const failure = new NotSerializable('a', 'b')
    const broken = wrapped(new MapBackend(), () => {
      throw failure
    })
    for (const [name, call] of calls) await expect(call(open(broken)), name).rejects.toBe(failure)
  })

  test('rejects when an argument is bad, and never throws', async () => {
    const { backend, store } = opened()
    const seen = vi.spyOn(backend, 'load')
    const loose = store as unknown as Record<string, (...args: unknown[]) => Promise<unknown>>
    for (const [name] of calls) {
      const pending = loose[name]?.(null, null)
      expect(pending).toBeInstanceOf(Promise)
      await expect(pending, name).rejects.toBeInstanceOf(InvalidArgument)
    }
    expect(seen).not.toHaveBeenCalled()
  })

  test('says StoreClosed to every call after it was closed, and closes its backend once', async () => {
    const { backend, store } = opened()
    const closing = vi.spyOn(backend, 'close')
    await store.close()
    await store.close()
    await store[Symbol.asyncDispose]()
    expect(closing).toHaveBeenCalledTimes(1)
    for (const [name, call] of calls) await expect(call(store), name).rejects.toMatchObject({ code: 'STORE_CLOSED' })
  })

  test('is closed also when its backend failed to close', async () => {
    const { backend, store } = opened()
    vi.spyOn(backend, 'close').mockImplementation(() => {
      throw new Error('disk')
    })
    await expect(store.close()).rejects.toBeInstanceOf(StoreUnavailable)
    await expect(store.load('x')).rejects.toMatchObject({ code: 'STORE_CLOSED' })
  })

  test('takes a mark for nothing where there is no execution', async () => {
    const { backend, store } = opened()
    backend.processed.add('x\0e')
    expect(await store.loadForEvent('x', 'e')).toEqual({ execution: undefined, processed: false })
    await store.commit(newExecution({ definitionId: 'd', id: 'x' }))
    expect(await store.loadForEvent('x', 'e')).toMatchObject({ execution: { id: 'x' }, processed: true })
  })

  test('never stops at unreadable rows, and says which they are', async () => {
    const warnings: string[] = []
    const { backend, store } = opened({ onWarning: (message) => warnings.push(message) })
    const good = JSON.stringify({ id: 'e', kind: 'k' })
    backend.outbox = Array.from({ length: 5000 }, (_row, seq) => ({
      seq,
      targetId: null,
      event: seq % 2500 === 2499 ? good : 'x',
    }))
    backend.spawns = [0, 1, 2, 3].map((seq) => ({
      seq,
      parentId: 'p',
      childId: 'c',
      rootPath: '',
      context: seq === 1 ? '[]' : '{}',
    }))

    const reading = vi.spyOn(backend, 'pendingOutbox')
    expect((await store.pendingOutbox({ limit: 1 })).map(({ seq }) => seq)).toEqual([2499])
    expect(reading.mock.calls.length).toBeLessThan(30)
    expect((await store.pendingOutbox({ limit: 1, after: 2499 })).map(({ seq }) => seq)).toEqual([4999])
    expect((await store.pendingOutbox()).map(({ seq }) => seq)).toEqual([2499, 4999])
    expect((await store.pendingSpawns({ limit: 2 })).map(({ seq }) => seq)).toEqual([0, 2])
    expect((await store.pendingSpawns({ limit: 1, after: 0 })).map(({ seq }) => seq)).toEqual([2])
    expect(warnings).toContain('outbox entry 4998 cannot be read: its text is not JSON')
    expect(warnings).toContain('spawn 1 cannot be read: its text is not a JSON object')
    await store.ackOutbox([0, 1])
    expect(backend.outbox).toHaveLength(4998)
  })

  test('never stops at timers that nobody could delete, and says which they are', async () => {
    const warnings: string[] = []
    const { backend, store } = opened({ onWarning: (message) => warnings.push(message) })
    const strange = ['', 'x'.repeat(1025), '\ud800', 'a\0b']
    backend.timers = Array.from({ length: 1000 }, (_, n) => ({
      executionId: 'e',
      path: n % 100 === 99 ? `p${n}` : (strange[n % strange.length] ?? ''),
      fireAt: n,
    }))
    const fired: number[] = []
    for await (const { executionId, path, fireAt } of timers(store, 1000, 2)) {
      await store.deleteTimer(executionId, path, fireAt)
      fired.push(fireAt)
    }
    expect(fired).toEqual([99, 199, 299, 399, 499, 599, 699, 799, 899, 999])
    expect(await store.dueTimers(1000)).toEqual([])
    expect(warnings).toContain(
      'timer "" of execution "e" cannot be read: its id, path or time is none that a store takes',
    )
  })

  test('warns of a rounded number and refuses to write it, unless it was opened for that', async () => {
    const warnings: string[] = []
    const { backend, store } = opened({ onWarning: (message) => warnings.push(message) })
    vi.spyOn(backend, 'load').mockReturnValue('{"id":"x","definition_id":"d","context":{"n":9007199254740993}}')
    const loaded = (await store.load('x')) as Execution
    expect(warnings).toHaveLength(1)
    await expect(store.commit({ ...loaded })).rejects.toBeInstanceOf(NotSerializable)
    expect(loaded.version).toBe(0)

    const lossy = open(backend, { numbers: 'lossy' })
    await lossy.commit((await lossy.load('x')) as Execution)
    expect(warnings).toHaveLength(1)
  })

  test('remembers the rounded numbers of trace steps', async () => {
    const { backend, store } = opened({ onWarning: () => {} })
    backend.traces.set('x', [{ index: 0, entry: '{"n":NaN,"index":7}' }])
    const [step] = await store.readTrace('x')
    expect(step).toEqual({ n: Number.NaN, index: 0 })
    await expect(store.appendTrace('y', step ?? {})).rejects.toBeInstanceOf(NotSerializable)
  })

  test('counts the trace itself', async () => {
    const { store } = opened()
    await store.appendTrace('x', { index: 5, a: 1 })
    await store.commit(newExecution({ definitionId: 'd', id: 'x' }), { trace: { index: 'no' } })
    expect(await store.readTrace('x')).toEqual([{ a: 1, index: 0 }, { index: 1 }])
  })

  test('returns the definition that was published first, with or without a time', async () => {
    const { store } = opened()
    const record = { id: 'd', version: '1', definition: [1, null, 'a'], publishedAt: 5 }
    expect(await store.publishDefinition(record)).toEqual(record)
    expect(await store.publishDefinition({ ...record, definition: 2 })).toEqual(record)
    expect(await store.publishDefinition({ id: 'd', version: '2', definition: null })).toEqual({
      id: 'd',
      version: '2',
      definition: null,
    })
    expect(await store.loadDefinition('d', '1')).toEqual(record)
    expect(await store.loadDefinition('d', '3')).toBe(undefined)
  })

  test('shows nothing of its backend', async () => {
    const { backend, store } = opened()
    Object.assign(backend, { url: 'postgres://u:S3cr3t!pw@db' })
    await store.commit(newExecution({ definitionId: 'd', context: { pin: 'CANARY' } }))
    expect(inspect(store, { depth: 9, showHidden: true })).not.toMatch(/S3cr3t|CANARY/)
  })
})

test('a store that shares its objects returns the very one that was committed, until it is purged', () => {
  const backend = new MapBackend()
  const store = new SyncCheckedStore(
    Object.assign(backend, { capabilities: { ...backend.capabilities, identity: true } }),
  )
  const execution = newExecution({ definitionId: 'd', id: 'x' })
  store.commit(execution)
  expect(store.load('x')).toBe(execution)
  expect(store.loadForEvent('x', 'e').execution).toBe(execution)
  expect(store.purge('x', 7)).toBe(false)
  expect(store.load('x')).toBe(execution)
  expect(store.purge('x', 1)).toBe(true)
  expect(store.load('x')).toBe(undefined)
})

test('a synchronous store throws, and is closed by the end of its block', () => {
  const backend = new MapBackend()
  const closing = vi.spyOn(backend, 'close')
  {
    using store = new SyncCheckedStore(backend)
    expect(() => store.load('')).toThrow(InvalidArgument)
    expect(store.pendingOutbox({ limit: 1 })).toEqual([])
  }
  expect(closing).toHaveBeenCalledTimes(1)
})

test('a commit is not over before its promise is', async () => {
  const store = new CheckedStore(remote(new MapBackend()))
  const execution = newExecution({ definitionId: 'd' })
  const pending = store.commit(execution)
  expect(execution.version).toBe(0)
  await pending
  expect(execution.version).toBe(1)
})

test('a backend may answer with the promises of another realm', async () => {
  const ForeignPromise: PromiseConstructor = runInNewContext('Promise')
  const backend = wrapped(new MapBackend(), (_, call) => ForeignPromise.resolve(call()))
  const store = new CheckedStore(remote(backend))
  const execution = newExecution({ definitionId: 'd', id: 'x' })
  await store.commit(execution)
  expect(await store.load('x')).toEqual(execution)
  const direct = new CheckedStore(backend as never)
  expect(await direct.load('x')).toEqual(execution)
  const broken = new CheckedStore(wrapped(backend, () => ForeignPromise.reject(new Error('no'))) as never)
  await expect(broken.load('x')).rejects.toBeInstanceOf(StoreError)
})

describe.each([
  ['one write more than the database takes', { maxCommitWrites: 3 }, 'the commit has 4 writes, at most 3 are allowed'],
  [
    'a payload of one byte more',
    { maxExecutionBytes: 600 },
    /^the commit has \d+ bytes of payload, at most 600 are allowed$/,
  ],
])('a commit with %s', (_, limit, message) => {
  test('is refused before the backend is asked, and leaves the version alone', async () => {
    const backend = new MapBackend()
    Object.assign(backend.capabilities, limit)
    const store = new CheckedStore(remote(backend))
    const emits = Array.from({ length: 3 }, () => ({ targetId: null, event: newEvent({ kind: 'k' }) }))
    // Short in characters, and too long in bytes.
    const execution = newExecution({ definitionId: 'd', context: { text: 'ü'.repeat(100) } })
    await expect(store.commit(execution, { emits })).rejects.toMatchObject({
      code: 'COMMIT_TOO_LARGE',
      message: expect.stringMatching(message),
    })
    expect(execution.version).toBe(0)
    expect(backend.executions.size).toBe(0)
  })
})

test('a loop of calls on a synchronous store keeps no timer waiting', async () => {
  const store = asyncStore(new SyncCheckedStore(new MapBackend()))
  let fired = false
  setTimeout(() => {
    fired = true
  }, 5)
  const end = performance.now() + 2000
  while (!fired && performance.now() < end) await store.load('x')
  expect(fired).toBe(true)
})
