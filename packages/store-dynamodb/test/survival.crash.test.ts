import { DynamoStore } from '@harel/store-dynamodb'
import { describeSurvival } from '@harel/store-testing/faults'
import { startServer, type TestServer } from '@harel-tooling/test-servers'
import { withServer } from '@harel-tooling/test-servers/vitest'
import { afterAll, beforeAll, describe, test } from 'vitest'
import { configFor } from './database.js'

// This file kills its server, so it has one of its own; without any, it says so like the others.
withServer('dynamodb', () => {
  let server: TestServer
  beforeAll(async () => {
    server = await startServer('dynamodb', { own: true, flavour: 'dynoxide' })
  })
  afterAll(() => server?.stop())

  describeSurvival(
    { describe, test },
    'DynamoStore',
    {
      capabilities: { shared: true },
      open: ({ address = '', ...options }) => DynamoStore.connect(configFor(address), options),
      address: () => server.url,
      speaks: 'http',
      server: { kill: () => server.kill(), restart: () => server.restart() },
      program: new URL('programs/faults-writer.ts', import.meta.url),
    },
    { scale: 0.02 },
  )
})
