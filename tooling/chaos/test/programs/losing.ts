/** `npm run chaos` with a store that loses something in the rounds of one seed, beside one that does not. */
import { AsyncSqliteStore } from '@harel/store-sqlite'
import type { OpenForFaults } from '@harel/store-testing/faults'
import { onFile } from '../../src/backend.ts'
import { backends } from '../../src/backends/index.ts'
import { chaos } from '../../src/chaos.ts'

const open: OpenForFaults = async ({ address = '', ...options }) => {
  const store = await AsyncSqliteStore.open(address, options)
  const commit = store.commit.bind(store)
  store.commit = async (execution, changes) => {
    if (!execution.id.startsWith('faults-8-') || execution.version !== 3) return commit(execution, changes)
    execution.version++
    return [1, 2]
  }
  return store
}

const losing = async () => onFile(open, import.meta.filename)
process.exitCode = await chaos(process.argv.slice(2), { ...backends, losing })
