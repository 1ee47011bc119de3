import { describe, expect, test, vi } from 'vitest'
import { asyncStore } from '../src/async-store.js'
import { CheckedStore, SyncCheckedStore } from '../src/checked-store.js'
import { NotSerializable } from '../src/errors.js'
import { keepVersions } from '../src/keep-versions.js'
import { observeStore } from '../src/observe-store.js'
import type { ExecutionStore } from '../src/protocol.js'
import { type Execution, newExecution, type Step } from '../src/records.js'
import { MapBackend, remote } from './map-backend.js'

const step: Step = { cause: 'event', fromStatus: 'PENDING', toStatus: 'RUNNING' }

const kinds: [string, (backend: MapBackend) => ExecutionStore][] = [
  ['a synchronous store behind promises', (backend) => asyncStore(new SyncCheckedStore(backend))],
  ['an asynchronous store', (backend) => new CheckedStore(remote(backend))],
]

describe.each(kinds)('an observer of %s', (_, open) => {
  const opened = (
    onStep: (step: Step, execution: Execution) => void | Promise<void>,
    onError?: (error: unknown) => void,
  ) => {
    const backend = new MapBackend()
    return { backend, store: observeStore(open(backend), onStep, onError) }
  }

  test('sees each commit with a step after it is stored, before the caller goes on', async () => {
    const seen: unknown[] = []
    const { backend, store } = opened((told, execution) => {
      seen.push([told, execution, backend.executions.get('x')?.version])
    })
    const execution = newExecution({ definitionId: 'd', id: 'x', context: { n: 1 } })
    await store.commit(execution, { step })
    expect(seen).toEqual([[step, execution, 1]])
    expect(execution.version).toBe(1)
  })

  test('sees the execution as it was committed, and a copy of it', async () => {
    const seen: Execution[] = []
    const { store } = opened((_step, execution) => void seen.push(execution))
    const execution = newExecution({ definitionId: 'd', id: 'x', context: { list: [1] } })
    const pending = store.commit(execution, { step })
    execution.context.list = 'later'
    await pending
    expect(seen[0]).toMatchObject({ version: 1, context: { list: [1] } })
    expect(seen[0]?.context).not.toBe(execution.context)
  })

  test('sees no commit without a step, no save, and none that failed', async () => {
    const onStep = vi.fn()
    const { store } = opened(onStep)
    const execution = newExecution({ definitionId: 'd', id: 'x' })
    await store.commit(execution)
    await store.save(execution)
    await expect(store.commit({ ...execution, version: 1 }, { step })).rejects.toMatchObject({ code: 'STORE_CONFLICT' })
    await expect(store.commit({ ...execution, context: { a: 1n as never } }, { step })).rejects.toBeInstanceOf(
      NotSerializable,
    )
    await expect(store.commit(null as never, { step })).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
    await expect(store.commit(execution, null as never)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
    expect(onStep).not.toHaveBeenCalled()
  })

  test('that throws or rejects is reported, and the commit returns as if nothing was', async () => {
    const failures = [new Error('thrown'), new Error('rejected')]
    const observers = [
      () => {
        throw failures[0]
      },
      () => Promise.reject(failures[1]),
    ]
    for (const [index, observer] of observers.entries()) {
      const onError = vi.fn()
      const { store } = opened(observer, onError)
      const execution = newExecution({ definitionId: 'd' })
      expect(await store.commit(execution, { step })).toEqual([])
      await new Promise(setImmediate)
      expect(onError).toHaveBeenCalledExactlyOnceWith(failures[index])
    }
  })

  test('that fails is shown on the console when nobody else wants to know', async () => {
    const shown = vi.spyOn(console, 'error').mockImplementation(() => {})
    const failure = new Error('thrown')
    const { store } = opened(() => Promise.reject(failure))
    await store.commit(newExecution({ definitionId: 'd' }), { step })
    await new Promise(setImmediate)
    expect(shown).toHaveBeenCalledExactlyOnceWith('an observer of commits failed:', failure)
    shown.mockRestore()
  })

  test('that never ends holds nobody back', async () => {
    const { store } = opened(() => new Promise(() => {}))
    expect(await store.commit(newExecution({ definitionId: 'd' }), { step })).toEqual([])
  })

  test('needs no object that can be cloned', async () => {
    const onStep = vi.fn()
    const { store } = opened(onStep)
    const proxy = new Proxy(newExecution({ definitionId: 'd', id: 'x' }), {})
    await store.commit(Object.assign(proxy, { helper: () => 1 }), { step })
    expect(onStep).toHaveBeenCalledWith(step, newExecution({ definitionId: 'd', id: 'x', version: 1 }))
  })

  test('leaves everything else of the store as it is', async () => {
    const { backend, store } = opened(() => {})
    expect(store.capabilities).toEqual(backend.capabilities)
    await store.commit(newExecution({ definitionId: 'd', id: 'x' }), { step, trace: { a: 1 } })
    const { load } = store
    expect(await load('x')).toMatchObject({ id: 'x', version: 1 })
    expect(await store.readTrace('x')).toEqual([{ a: 1, index: 0 }])
    expect((await store.listExecutions()).items).toHaveLength(1)
    await store[Symbol.asyncDispose]()
    await expect(store.load('x')).rejects.toMatchObject({ code: 'STORE_CLOSED' })
  })
})

test('an observed store keeps its class and its private members', async () => {
  class Special extends CheckedStore {
    readonly #secret = 'mine'
    reveal() {
      return this.#secret
    }
  }
  const store = observeStore(new Special(remote(new MapBackend())), () => {})
  expect(store).toBeInstanceOf(Special)
  expect(store.reveal()).toBe('mine')
})

describe('kept versions', () => {
  test('go back to what they were before the first commit, whether commits failed or not', () => {
    const base = new SyncCheckedStore(new MapBackend())
    const { store, restoreVersions } = keepVersions(base)
    const [one, two, untouched] = ['x', 'y', 'z'].map((id) => newExecution({ definitionId: 'd', id })) as [
      Execution,
      Execution,
      Execution,
    ]
    base.commit(two)
    store.commit(one)
    store.save(one)
    store.save(two)
    base.commit(untouched)
    expect(() => store.commit({ ...two, version: 7 })).toThrow('is stored')
    expect([one.version, two.version]).toEqual([2, 2])
    restoreVersions()
    expect([one.version, two.version, untouched.version]).toEqual([0, 1, 1])
  })

  test('are kept of a store that works as before', async () => {
    const { store } = keepVersions(new CheckedStore(remote(new MapBackend())))
    const execution = newExecution({ definitionId: 'd', id: 'x' })
    expect(await store.commit(execution, { trace: {} })).toEqual([])
    const { load } = store
    expect(await load('x')).toEqual(execution)
    expect(store.capabilities.paging).toBe('key')
    await expect(store.commit(null as never)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
  })
})
