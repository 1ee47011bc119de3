/** Writes to a server until it is killed. */
import { RqliteStore } from '@harel/store-rqlite'
import { runWriter } from '@harel/store-testing/faults'

await runWriter(({ address = '', ...options }) => RqliteStore.connect(address, options))
