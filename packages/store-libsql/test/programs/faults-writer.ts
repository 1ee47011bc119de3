/** Writes to a database until it is killed. */
import { LibsqlStore } from '@harel/store-libsql'
import { runWriter } from '@harel/store-testing/faults'

await runWriter(({ address: url = '', ...options }) => LibsqlStore.connect({ url }, options))
