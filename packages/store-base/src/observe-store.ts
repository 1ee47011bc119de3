import { decodeExecution } from './decode.js'
import { prepareCommit } from './prepare.js'
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
  const report = async (step: Step, data: string) => onStep(step, decodeExecution(data))
  const commit = async (execution: Execution, changes?: CommitChanges): Promise<number[]> => {
    const step = changes?.step
    if (step === undefined) return store.commit(execution, changes)
    // Now, and as it is written: the caller's object may change meanwhile, and not every one can be cloned.
    const { data } = prepareCommit(execution, {}, 'lossy')
    const seqs = await store.commit(execution, changes)
    // Not waited for: a slow observer must not hold back the caller, whose commit is done.
    void report(step, data).catch(onError)
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
