import type { CommitChanges, ExecutionStore } from './protocol.js'
import type { Execution, Step } from './records.js'

/**
 * The same store, which reports each commit that carries a `step` after it has returned: the step and a copy of the
 * execution as committed. What the callback throws, or its promise rejects with, goes to `onError` (default:
 * `console.error`) and never to the caller of `commit`.
 */
export function observeStore<S extends ExecutionStore>(
  store: S,
  onStep: (step: Step, execution: Execution) => void | Promise<void>,
  onError: (error: unknown) => void = (error) => console.error('an observer of commits failed:', error),
): S {
  const commit = async (execution: Execution, changes?: CommitChanges): Promise<number[]> => {
    const step = changes?.step
    if (step === undefined) return store.commit(execution, changes)
    const picture = structuredClone(execution)
    const seqs = await store.commit(execution, changes)
    try {
      await onStep(step, { ...picture, version: execution.version })
    } catch (error) {
      onError(error)
    }
    return seqs
  }
  return new Proxy(store, {
    get(target, key) {
      if (key === 'commit') return commit
      const member: unknown = Reflect.get(target, key, target)
      // Bound, because private members of the store are not reachable through the proxy.
      return typeof member === 'function' ? member.bind(target) : member
    },
  })
}
