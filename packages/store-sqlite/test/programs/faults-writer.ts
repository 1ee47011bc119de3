/** Writes to a file until it is killed. */
import { AsyncSqliteStore } from '@harel/store-sqlite'
import { runWriter } from '@harel/store-testing/faults'

await runWriter(({ address = '', ...options }) => AsyncSqliteStore.open(address, options))
