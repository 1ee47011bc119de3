import type { Execution } from './records.js'

/**
 * For a transaction of the caller's: the same store, and a function that gives each execution which was committed
 * through it the version that it had before, for when the transaction is rolled back.
 */
export function keepVersions<S extends { commit(execution: Execution, ...rest: never[]): unknown }>(
  store: S,
): { store: S; restoreVersions: () => void } {
  const versions = new Map<Execution, number>()
  const proxy = new Proxy(store, {
    get(target, key) {
      const member: unknown = Reflect.get(target, key, target)
      if (typeof member !== 'function') return member
      if (key !== 'commit' && key !== 'save') return member.bind(target)
      return (execution: Execution, ...rest: unknown[]): unknown => {
        if (typeof execution === 'object' && execution !== null && !versions.has(execution))
          versions.set(execution, execution.version)
        return member.call(target, execution, ...rest)
      }
    },
  })
  const restoreVersions = () => {
    for (const [execution, version] of versions) execution.version = version
  }
  return { store: proxy, restoreVersions }
}
