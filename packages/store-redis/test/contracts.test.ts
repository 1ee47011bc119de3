import { RedisStore } from '@harel/store-redis'
import { withServer } from '@harel-tooling/test-servers/vitest'
import { Redis } from 'ioredis'
import { describeContracts } from './contracts.js'

withServer('redis', ({ url }) => {
  describeContracts('RedisStore', {
    open: (options) => RedisStore.connect(url, options),
    client: () => new Redis(url),
  })

  describeContracts('RedisStore with an index by filters', {
    filterIndex: true,
    client: () => new Redis(url),
    model: { milliseconds: 1000 },
  })
})
