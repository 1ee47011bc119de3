/** Writes to a server until it is killed. */
import { PostgresStore } from '@harel/store-postgres'
import { runWriter } from '@harel/store-testing/faults'

await runWriter(({ address = '', ...options }) => PostgresStore.connect(address, options))
