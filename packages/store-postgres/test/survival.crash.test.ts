import { PostgresStore } from '@harel/store-postgres'
import { describeSurvival } from '@harel/store-testing/faults'
import { type StartOptions, startServer, type TestServer } from '@harel-tooling/test-servers'
import { withServer } from '@harel-tooling/test-servers/vitest'
import { afterAll, beforeAll, describe, test } from 'vitest'

// This file kills its server, so it has one of its own; without any, it says so like the others.
withServer('postgres', ({ version }) => {
  let server: TestServer
  const flavour = version.split('.', 1).join() as NonNullable<StartOptions<'postgres'>['flavour']>
  beforeAll(async () => {
    server = await startServer('postgres', { own: true, flavour })
  })
  afterAll(() => server.stop())

  describeSurvival({ describe, test }, 'PostgresStore', {
    capabilities: { shared: true },
    open: ({ address = '', ...options }) => PostgresStore.connect(address, options),
    address: () => server.url,
    speaks: 'tcp',
    server: { kill: () => server.kill(), restart: () => server.restart() },
    program: new URL('programs/faults-writer.ts', import.meta.url),
  })
})
