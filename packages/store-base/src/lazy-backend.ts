import type { StoreBackend } from './backend.js'
import { StoreClosed } from './errors.js'
import type { StoreCapabilities } from './protocol.js'

/**
 * A backend that is opened by the first call. Calls wait for it; after a failed attempt the next call tries again.
 *
 * @returns the backend, and `opened` to get at the real one, which rejects with `StoreClosed` after `close`
 */
export function lazyBackend<B extends StoreBackend>(
  capabilities: StoreCapabilities,
  open: () => Promise<B>,
): { backend: StoreBackend; opened: () => Promise<B> } {
  let opening: Promise<B> | undefined
  /** Once it is opened, until it is closed. */
  let target: B | undefined
  let closed = false
  const opened = async (): Promise<B> => {
    if (closed) throw new StoreClosed()
    opening ??= open().then(
      (backend) => {
        if (!closed) target = backend
        return backend
      },
      (error: unknown) => {
        opening = undefined
        throw error
      },
    )
    return opening
  }
  const close = async (): Promise<void> => {
    // In the way of a call, so that the calls before it reach the backend first.
    const last = opening && opened()
    closed = true
    target = undefined
    await (await last?.catch(() => undefined))?.close()
  }
  const call = (on: B, method: keyof StoreBackend, args: unknown[]): unknown =>
    Reflect.apply(on[method] as (...args: unknown[]) => unknown, on, args)
  const backend = new Proxy({ capabilities, close } as StoreBackend, {
    get(own, method: keyof StoreBackend) {
      if (method in own) return own[method]
      // An object with `then` would be taken for a promise.
      if (typeof method === 'symbol' || String(method) === 'then') return undefined
      const forward = (...args: unknown[]): unknown =>
        target === undefined ? opened().then((late) => call(late, method, args)) : call(target, method, args)
      return Object.assign(own, { [method]: forward })[method]
    },
  })
  return { backend, opened }
}
