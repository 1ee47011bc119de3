import { describe, expect, test, vi } from 'vitest'
import type { StoreBackend } from '../src/backend.js'
import { CheckedStore } from '../src/checked-store.js'
import { lazyBackend } from '../src/lazy-backend.js'
import { newExecution } from '../src/records.js'
import { MapBackend, remote } from './map-backend.js'

function lazy() {
  const real = new MapBackend()
  const open = vi.fn<() => Promise<StoreBackend>>(async () => remote(real))
  const { backend, opened } = lazyBackend(real.capabilities, open)
  return { real, open, opened, store: new CheckedStore(backend) }
}

describe('a backend that is opened when it is needed', () => {
  test('is opened by the first call and once for all', async () => {
    const { open, store, real } = lazy()
    expect(store.capabilities).toBe(real.capabilities)
    expect(open).not.toHaveBeenCalled()
    const execution = newExecution({ definitionId: 'd', id: 'x' })
    await Promise.all([store.commit(execution), store.load('y')])
    expect(await store.load('x')).toEqual(execution)
    expect(open).toHaveBeenCalledTimes(1)
  })

  test('is opened anew after an attempt that failed, whose error the calls get that waited for it (B44)', async () => {
    const { open, store } = lazy()
    open.mockRejectedValueOnce(new Error('ECONNREFUSED'))
    const calls = await Promise.allSettled([store.load('x'), store.load('y')])
    expect(calls.map((call) => call.status === 'rejected' && call.reason.code)).toEqual([
      'STORE_UNAVAILABLE',
      'STORE_UNAVAILABLE',
    ])
    expect(open).toHaveBeenCalledTimes(1)
    expect(await store.load('x')).toBe(undefined)
    expect(open).toHaveBeenCalledTimes(2)
  })

  test('is closed with the store, also while it is being opened', async () => {
    const { real, store, opened } = lazy()
    const closing = vi.spyOn(real, 'close')
    const pending = opened()
    await store.close()
    await pending
    expect(closing).toHaveBeenCalledTimes(1)
    await expect(opened()).rejects.toMatchObject({ code: 'STORE_CLOSED' })
  })

  test('is closed when it has got the calls that came before', async () => {
    const { real, store, opened } = lazy()
    await opened()
    const order: string[] = []
    vi.spyOn(real, 'load').mockImplementation(() => void order.push('load'))
    vi.spyOn(real, 'close').mockImplementation(() => void order.push('close'))
    await Promise.all([store.load('x'), store.close()])
    expect(order).toEqual(['load', 'close'])
  })

  test('is not opened to be closed, nor waited for in vain', async () => {
    const unused = lazy()
    await unused.store.close()
    expect(unused.open).not.toHaveBeenCalled()
    const failing = lazy()
    failing.open.mockRejectedValueOnce(new Error('ECONNREFUSED'))
    const call = failing.store.load('x').catch(() => 'failed')
    await failing.store.close()
    expect(await call).toBe('failed')
  })
})
