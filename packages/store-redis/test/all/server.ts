import { canonical } from '@harel-tooling/canonical'
import { startServer, type TestServer } from '@harel-tooling/test-servers'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { execution, parts } from '../commits.js'
import { describeContracts } from '../contracts.js'
import { clientFor, freshPrefix, storeOn } from '../database.js'
import { readByPython, restore } from '../python.js'

/** The contracts and what servers differ in, on one kind of server. */
export function describeServer(flavour: 'redis7' | 'redis8' | 'valkey9'): void {
  describe(flavour, () => {
    let server: TestServer
    beforeAll(async () => {
      server = await startServer('redis', { own: true, flavour })
      console.log(server.describe())
    })
    afterAll(() => server?.stop())

    describeContracts(`RedisStore on ${flavour}`, { client: () => new Redis(server.url) })

    const unlike = {
      replyMapping: 'resp3',
      stringNumbers: true,
      enableAutoPipelining: true,
      keyPrefix: 'x[*]:',
    } as const
    describeContracts(`RedisStore on ${flavour} and a client with other options`, {
      client: () => new Redis(server.url, unlike),
    })

    test.each(['scenario', 'runner'] as const)(
      'what Python has written is read as Python reads it (%s)',
      async (name) => {
        const client = clientFor(server.url)
        const prefix = freshPrefix()
        await restore(client, name, prefix)
        const ns = name === 'scenario' ? 'chk-' : 'run-'
        expect(await canonical(storeOn(client, { prefix }), ns)).toEqual(readByPython(name))
      },
    )

    test('scripts that were flushed, and a restart, need no attention (B59)', async () => {
      const client = clientFor(server.url)
      const store = storeOn(client)
      const held = execution('a')
      await store.commit(held, parts('a'))
      await client.script('FLUSH')
      await store.commit(held, parts('a'))
      await server.kill()
      await server.restart()
      await store.commit(held, parts('a'))
      expect([(await store.load('a'))?.version, (await store.pendingOutbox()).length]).toEqual([3, 6])
      expect(await store.purge('a', 3)).toBe(true)
    })
  })
}
