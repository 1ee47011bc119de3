import { RedisStore } from '@harel/store-redis'
import { startServer } from '@harel-tooling/test-servers'
import { Redis } from 'ioredis'
import type { Backend } from '../backend.js'

/** A server has so many, unless it is told otherwise. */
const DATABASES = 16

export const redis: Backend = {
  name: 'Redis',
  refresh: async (store) => store instanceof RedisStore && store.reindex(),
  start: async () => {
    const server = await startServer('redis', { own: true })
    console.log(server.describe())
    let databases = 0
    return {
      make: async () => {
        const url = `${server.url}/${databases++ % DATABASES}`
        return {
          url,
          open: (options) => RedisStore.connect(url, options),
          [Symbol.asyncDispose]: async () => {
            const client = new Redis(url)
            await client.flushdb().finally(() => client.disconnect())
          },
        }
      },
      [Symbol.asyncDispose]: () => server.stop(),
    }
  },
}
