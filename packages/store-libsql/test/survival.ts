import { LibsqlStore } from '@harel/store-libsql'
import { describeSurvival } from '@harel/store-testing/faults'
import { startServer, type TestServer } from '@harel-tooling/test-servers'
import { withServer } from '@harel-tooling/test-servers/vitest'
import { afterAll, beforeAll, describe, test } from 'vitest'

const WAYS = [
  { way: 'HTTP', speaks: 'http', over: (url: string) => url },
  { way: 'a web socket', speaks: 'tcp', over: (url: string) => url.replace(/^http/, 'ws') },
] as const

/** Every scenario of faults, at this length. Their server is killed, so it is one of their own; without any, they say so. */
export function describeServerFaults(scale: number, ways: readonly (typeof WAYS)[number]['way'][]): void {
  withServer('libsql', () => {
    let server: TestServer
    beforeAll(async () => {
      server = await startServer('libsql', { own: true })
    }, 60_000)
    afterAll(() => server.stop())

    describe.each(WAYS.filter(({ way }) => ways.includes(way)))('over $way', ({ speaks, over }) => {
      describeSurvival(
        { describe, test },
        'LibsqlStore',
        {
          capabilities: { shared: true },
          open: ({ address = '', ...options }) => LibsqlStore.connect({ url: address }, options),
          address: () => over(server.url),
          speaks,
          server: { kill: () => server.kill(), restart: () => server.restart() },
          program: new URL('programs/faults-writer.ts', import.meta.url),
        },
        { scale },
      )
    })
  })
}
