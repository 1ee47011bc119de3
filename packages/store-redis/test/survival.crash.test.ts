import { RedisStore } from '@harel/store-redis'
import { describeSurvival } from '@harel/store-testing/faults'
import { startServer, type TestServer } from '@harel-tooling/test-servers'
import { withServer } from '@harel-tooling/test-servers/vitest'
import { afterAll, beforeAll, describe, test } from 'vitest'

// This file kills its server, so it has one of its own; without any, it says so like the others.
withServer('redis', () => {
  let server: TestServer
  beforeAll(async () => {
    server = await startServer('redis', { own: true, config: { appendonly: 'yes', appendfsync: 'always' } })
  })
  afterAll(() => server.stop())

  describeSurvival({ describe, test }, 'RedisStore', {
    capabilities: { shared: true },
    open: ({ address = '', ...options }) => RedisStore.connect(address, options),
    address: () => server.url,
    speaks: 'tcp',
    server: { kill: () => server.kill(), restart: () => server.restart() },
    program: new URL('programs/faults-writer.ts', import.meta.url),
  })
})
