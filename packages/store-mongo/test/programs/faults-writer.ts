/** Writes to a server until it is killed. */
import { MongoStore } from '@harel/store-mongo'
import { runWriter } from '@harel/store-testing/faults'

await runWriter(({ address = '', ...options }) => MongoStore.connect(address, options))
