/** Writes to a server until it is killed. */
import { RedisStore } from '@harel/store-redis'
import { runWriter } from '@harel/store-testing/faults'

await runWriter(({ address = '', ...options }) => RedisStore.connect(address, options))
