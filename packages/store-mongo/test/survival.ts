import { MongoStore } from '@harel/store-mongo'
import { describeSurvival } from '@harel/store-testing/faults'
import { startServer, type TestServer } from '@harel-tooling/test-servers'
import { withServer } from '@harel-tooling/test-servers/vitest'
import { afterAll, beforeAll, describe, test } from 'vitest'

/** Every scenario of faults, at this length. Their server is killed, so it is one of their own; without any, they say so. */
export function describeFaults(scale: number): void {
  withServer('mongo', () => {
    let server: TestServer
    beforeAll(async () => {
      server = await startServer('mongo', { own: true })
    })
    afterAll(() => server.stop())

    describeSurvival(
      { describe, test },
      'MongoStore',
      {
        capabilities: { shared: true },
        open: ({ address = '', ...options }) => MongoStore.connect(address, options),
        address: () => server.url,
        speaks: 'tcp',
        server: { kill: () => server.kill(), restart: () => server.restart() },
        program: new URL('programs/faults-writer.ts', import.meta.url),
      },
      { scale },
    )
  })
}
