/** Writes to a file until it is killed. */
import { SqliteStore } from '@harel/store-sqlite'
import { runWriter } from '@harel/store-testing/faults'

await runWriter(({ address = '', ...options }) => SqliteStore.open(address, options))
