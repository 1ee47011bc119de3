import { RedisStore } from '@harel/store-redis'
import { canonical } from '@harel-tooling/canonical'
import { withServer } from '@harel-tooling/test-servers/vitest'
import { describe, expect, test } from 'vitest'
import { type ClientOptions, clientFor, dumpOf, freshPrefix, storeOn } from './database.js'
import { readByPython, restore } from './python.js'

/** Options of a caller's client that change how replies look, or what is asked. */
const clients: { name: string; options: ClientOptions }[] = [
  { name: 'as it is', options: {} },
  { name: 'that speaks RESP2', options: { protocol: 2 } },
  { name: 'that maps replies as RESP3 does', options: { protocol: 3, replyMapping: 'resp3' } },
  { name: 'that gives numbers as texts', options: { stringNumbers: true } },
  { name: 'with a prefix of its own', options: { keyPrefix: 'a*?[b]\\:' } },
  { name: 'that pipelines by itself', options: { enableAutoPipelining: true } },
  { name: 'that pipelines by itself, with a prefix', options: { enableAutoPipelining: true, keyPrefix: 'x:' } },
  {
    name: 'with all of these',
    options: { stringNumbers: true, replyMapping: 'resp3', keyPrefix: 'y:', enableAutoPipelining: true },
  },
]

withServer('redis', ({ url }) => {
  describe.each([
    { name: 'scenario', ns: 'chk-' },
    { name: 'runner', ns: 'run-' },
  ] as const)('the keys that Python has written ($name)', ({ name, ns }) => {
    test.each(clients)('are read exactly as Python reads them by a client $name', async ({ options }) => {
      const client = clientFor(url, options)
      const prefix = freshPrefix()
      await restore(client, name, prefix)
      const before = await dumpOf(client, `${prefix}:`)
      const warnings: string[] = []
      await using store = storeOn(client, { prefix, onWarning: (message) => warnings.push(message) })
      expect(await canonical(store, ns)).toEqual(readByPython(name))
      expect(warnings).toEqual([])
      // What was written is the index alone.
      const {
        [`${prefix}:index:ids`]: ids,
        [`${prefix}:index:complete`]: complete,
        ...after
      } = await dumpOf(client, `${prefix}:`)
      expect([ids, complete]).toEqual([expect.anything(), '1'])
      expect(after).toEqual(before)
    })

    test('are read exactly by a store with a connection of its own', async () => {
      const prefix = freshPrefix()
      await restore(clientFor(url), name, prefix)
      await using store = await RedisStore.connect(url, { prefix })
      expect(await canonical(store, ns)).toEqual(readByPython(name))
    })
  })
})
