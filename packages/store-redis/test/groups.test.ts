import { CorruptRecord, type RedisStore, StoreConflict, StoreUnavailable } from '@harel/store-redis'
import { withServer } from '@harel-tooling/test-servers/vitest'
import type { Redis } from 'ioredis'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { execution, parts, shapes } from './commits.js'
import { clientFor, dumpOf, freshPrefix, observe, storeOn } from './database.js'

withServer('redis', ({ url }) => {
  let client: Redis
  let prefix: string
  let store: RedisStore

  beforeEach(async () => {
    client = clientFor(url)
    prefix = freshPrefix()
    store = storeOn(client, { prefix })
    // The script becomes known to the server, which is checked for the first time.
    await store.save(execution('first'))
  })

  const commandsOf = async (work: () => Promise<unknown>) => (await observe(client, prefix, work)).commands

  describe('commits of one turn of the event loop', () => {
    test('are one EVALSHA, and each is what it would be alone, whatever its shape', async () => {
      const all = shapes('a').map(({ changes }, index) => ({ held: execution(`e${index}`), changes }))
      const alone = storeOn(client)
      const expected: number[][] = []
      for (const { held, changes } of all) expected.push(await alone.commit({ ...held }, changes))
      let seqs: number[][] = []
      const commands = await commandsOf(async () => {
        seqs = await Promise.all(all.map(({ held, changes }) => store.commit(held, changes)))
      })
      expect(commands).toEqual(['evalsha'])
      expect(seqs).toEqual(expected)
      for (const { held, changes } of all) {
        expect(await store.load(held.id)).toEqual(held)
        expect(await store.readTrace(held.id)).toHaveLength('trace' in changes ? 1 : 0)
        expect(await store.isProcessed(held.id, 'a-event')).toBe('processedEventId' in changes)
      }
      const [together, apart] = await Promise.all([store, alone].map((each) => each.pendingSpawns()))
      expect(together).toEqual(apart)
    })

    test('share an EVALSHA up to sixty-four of them', async () => {
      const many = Array.from({ length: 130 }, (_, n) => execution(`e${n}`))
      const commands = await commandsOf(() => Promise.all(many.map((held) => store.commit(held))))
      expect(commands).toEqual(['evalsha', 'evalsha', 'evalsha'])
      expect(many.every(({ version }) => version === 1)).toBe(true)
    })

    test('share no EVALSHA where they are large together', async () => {
      const context = { text: 'x'.repeat(600_000) }
      const large = ['a', 'b', 'c'].map((id) => execution(id, { context }))
      const commands = await commandsOf(() => Promise.all(large.map((held) => store.commit(held))))
      expect(commands).toEqual(['evalsha', 'evalsha', 'evalsha'])
    })

    test('of one execution are carried out in their order: the first one is done, and the second one refused', async () => {
      const held = execution('a')
      const [first, second] = await Promise.allSettled([store.commit(held, parts('a')), store.commit({ ...held })])
      expect(first).toMatchObject({ status: 'fulfilled', value: [1, 2] })
      expect(second).toMatchObject({ status: 'rejected', reason: { expected: 0, found: 1 } })
    })

    test('are done but those that are refused or fail, which change nothing and use up no number', async () => {
      await client.set(`${prefix}:processed:wrong`, '1')
      await client.set(`${prefix}:exe:unreadable`, 'x')
      const outcomes = await Promise.allSettled(
        ['a', 'refused', 'wrong', 'unreadable', 'b'].map((id) =>
          store.commit(execution(id, { version: id === 'refused' ? 3 : 0 }), parts(id)),
        ),
      )
      expect(outcomes).toMatchObject([
        { value: [1, 2] },
        { reason: expect.any(StoreConflict) },
        { reason: expect.any(CorruptRecord) },
        { reason: expect.any(CorruptRecord) },
        { value: [3, 4] },
      ])
      expect(await client.zrange(`${prefix}:index:ids`, '0', '-1')).toEqual(['a', 'b', 'first'])
      expect((await store.dueTimers(9)).map(({ executionId }) => executionId)).toEqual(['a', 'b'])
      const left = Object.keys(await dumpOf(client, `${prefix}:`)).filter((key) => /refused|wrong|unreadable/.test(key))
      expect(left).toEqual([`${prefix}:exe:unreadable`, `${prefix}:processed:wrong`])
    })

    test('are done but one that breaks off in the middle of the script', async () => {
      await client.call('ACL', 'SETUSER', prefix, 'on', '>password', '~*', '+@all')
      onTestFinished(() => client.call('ACL', 'DELUSER', prefix).then(() => {}))
      const restricted = storeOn(clientFor(url, { username: prefix, password: 'password' }), { prefix })
      await restricted.save(execution('second'))
      // With it the script reads what another writer has stored.
      await client.call('ACL', 'SETUSER', prefix, '-get')
      await client.set(`${prefix}:exe:python`, '{"id":"python","version":0}')
      const outcomes = await Promise.allSettled(
        ['a', 'python', 'b'].map((id) => restricted.commit(execution(id), { processedEventId: 'e' })),
      )
      expect(outcomes).toMatchObject([{ value: [] }, { reason: expect.any(StoreUnavailable) }, { value: [] }])
      expect(await client.exists(`${prefix}:exe:a`, `${prefix}:exe:b`, `${prefix}:processed:python`)).toBe(2)
    })

    test('are carried out where the store is closed in the same turn', async () => {
      const held = execution('a')
      await Promise.all([store.commit(held), store.close()])
      expect((await storeOn(client, { prefix }).load('a'))?.version).toBe(1)
    })
  })
})
