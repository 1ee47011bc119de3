import { RqliteStore } from '@harel/store-rqlite'
import { describeSurvival } from '@harel/store-testing/faults'
import { startServer, type TestServer } from '@harel-tooling/test-servers'
import { withServer } from '@harel-tooling/test-servers/vitest'
import { afterAll, beforeAll, describe, test } from 'vitest'

// This file kills its server, so it has one of its own; without any, it says so like the others.
withServer('rqlite', () => {
  let server: TestServer
  beforeAll(async () => {
    server = await startServer('rqlite', { own: true })
  })
  afterAll(() => server.stop())

  describeSurvival(
    { describe, test },
    'RqliteStore',
    {
      capabilities: { shared: true },
      open: ({ address = '', ...options }) => RqliteStore.connect(address, options),
      address: () => server.url,
      speaks: 'http',
      server: { kill: () => server.kill(), restart: () => server.restart() },
      program: new URL('programs/faults-writer.ts', import.meta.url),
    },
    { scale: 0.05 },
  )
})
