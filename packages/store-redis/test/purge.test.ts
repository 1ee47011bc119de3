import { newEvent, type RedisStore, StoreConflict } from '@harel/store-redis'
import { withServer } from '@harel-tooling/test-servers/vitest'
import type { Redis } from 'ioredis'
import { beforeEach, describe, expect, test } from 'vitest'
import { PURGE } from '../src/purge-script.js'
import { execution, parts } from './commits.js'
import { clientFor, dumpOf, freshPrefix, interrupted, storeOn } from './database.js'
import { outboxEntry, payload, spawnEntry } from './python.js'

withServer('redis', ({ url }) => {
  let client: Redis
  let prefix: string
  let store: RedisStore

  beforeEach(() => {
    client = clientFor(url)
    prefix = freshPrefix()
    store = storeOn(client, { prefix })
  })

  const dump = async () => JSON.stringify(await dumpOf(client, `${prefix}:`))
  const emitTo = (targetId: string | null, id: string) => ({ targetId, event: newEvent({ kind: 'k', id }) })

  /** A store that lets something else happen between its look for what is to go and the purge itself. */
  const purgingBehind = (before: () => Promise<unknown>): RedisStore =>
    storeOn(interrupted(client, PURGE, before), { prefix })

  describe('a purge', () => {
    test.each(['victim', 'a*[b]?\\', 'order:1:é😀', 'quo"te\\n'])(
      'leaves no key and no entry with the id (%s)',
      async (id) => {
        const held = execution(id)
        await store.commit(held, parts(id))
        await store.commit(held, { ...parts(id), timers: [{ action: 'schedule', path: 'R', fireAt: 9 }] })
        await store.appendTrace(id, { more: true })
        await store.commit(execution('other'), { emits: [emitTo(id, 'to-it'), emitTo('other', 'to-self')] })
        await store.save(execution(`${id}x`))
        expect(await store.purge(id, 2)).toBe(true)
        const left = await dumpOf(client, `${prefix}:`)
        const kept = ['exe:other', `exe:${id}x`, 'index:ids', 'outbox', 'outbox:seq', 'spawns:seq']
        expect(Object.keys(left)).toEqual(kept.map((key) => `${prefix}:${key}`).sort())
        expect(left[`${prefix}:index:ids`]).not.toContain(id)
        expect((await store.pendingOutbox()).map(({ event }) => event.kind)).toEqual(['Tock', 'Tock', 'k'])
      },
    )

    test('finds what Python has written for the execution, and leaves what is for others', async () => {
      await client.set(`${prefix}:exe:p ü`, payload('p ü', 4))
      await client.sadd(`${prefix}:processed:p ü`, 'e')
      await client.rpush(`${prefix}:trace:p ü`, '{"index": 0}')
      await client.set(`${prefix}:trace:seq:p ü`, '1')
      for (const path of ['A', '@ttl']) await client.zadd(`${prefix}:timers`, 5, `p ü\0${path}`)
      await client.zadd(`${prefix}:timers`, 5, 'p üx\0A')
      await client.hset(`${prefix}:outbox`, {
        1: outboxEntry('p ü', 'a'),
        2: outboxEntry('p üx', 'b'),
        3: outboxEntry(null, 'p ü'),
      })
      await client.hset(`${prefix}:spawns`, { 1: spawnEntry('p ü', 'c'), 2: spawnEntry('c', 'p ü') })
      expect(await store.purge('p ü', 3)).toBe(false)
      expect(await store.purge('p ü', 4)).toBe(true)
      expect(await dumpOf(client, `${prefix}:`)).toEqual({
        [`${prefix}:timers`]: ['p üx\0A', '5'],
        [`${prefix}:outbox`]: { 2: outboxEntry('p üx', 'b'), 3: outboxEntry(null, 'p ü') },
        [`${prefix}:spawns`]: { 2: spawnEntry('c', 'p ü') },
      })
    })

    test('finds the timers that Python has armed before or after we have written', async () => {
      const armedBy = async (id: string, commits: ('ours' | 'python')[]) => {
        for (const [n, writer] of commits.entries()) {
          if (writer === 'ours') {
            await store.commit(execution(id, { version: n }), {
              timers: [{ action: 'schedule', path: `p${n}`, fireAt: 1 }],
            })
            continue
          }
          await client.set(`${prefix}:exe:${id}`, payload(id, n + 1))
          await client.zadd(`${prefix}:timers`, 1, `${id}\0p${n}`)
        }
        expect(await store.purge(id, commits.length)).toBe(true)
        expect(await dump()).not.toContain(id)
      }
      await armedBy('one', ['python', 'ours', 'ours'])
      await armedBy('two', ['ours', 'python'])
      await armedBy('three', ['ours', 'python', 'ours', 'ours'])
      await armedBy('four', ['ours', 'ours'])
    })

    test('of one that only we have written does not look through the timers of all others (weakness 32)', async () => {
      const held = execution('a')
      await store.commit(held, parts('a'))
      const scanned: string[] = []
      const watched = Object.create(client, { zscan: { value: (key: string) => scanned.push(key) } })
      expect(await storeOn(watched, { prefix }).purge('a', 1)).toBe(true)
      expect(scanned).toEqual([])
    })

    test('removes what is sent to the execution until the very moment', async () => {
      await store.save(execution('victim'))
      const sender = execution('sender')
      await store.commit(sender, { emits: [emitTo('victim', 'early')] })
      const emits = [emitTo('victim', 'late'), emitTo('victim2', 'kept'), emitTo('victim', 'later')]
      const purging = purgingBehind(() => store.commit(sender, { emits }))
      expect(await purging.purge('victim', 1)).toBe(true)
      expect((await store.pendingOutbox()).map(({ event }) => event.id)).toEqual(['kept'])
    })

    test('that a commit overtakes changes nothing', async () => {
      const held = execution('a')
      await store.commit(held, parts('a'))
      const purging = purgingBehind(() => store.commit(held, parts('a')))
      expect(await purging.purge('a', 1)).toBe(false)
      expect((await store.load('a'))?.version).toBe(2)
      expect(await store.pendingSpawns()).toHaveLength(2)
      expect(await store.readTrace('a')).toHaveLength(2)
    })

    test('takes all of an execution that came into being meanwhile, or nothing', async () => {
      const purging = purgingBehind(() => store.commit(execution('a'), parts('a')))
      expect(await purging.purge('a', 1)).toBe(true)
      expect(await dump()).not.toContain('a-')
      expect(await store.pendingSpawns()).toEqual([])
      expect(await store.dueTimers(9)).toEqual([])
    })

    test('beside writers of the same execution wins or loses, and leaves nothing half', async () => {
      for (let n = 0; n < 20; n++) {
        // No random event id begins so.
        const id = `purged-${n}.`
        await store.save(execution(id))
        const writing = (async () => {
          const held = execution(id, { version: 1 })
          while (held.version < 10) await store.commit(held, parts(id))
        })().catch((error: unknown) => error)
        let version = 1
        while (!(await store.purge(id, version))) version = (await store.load(id))?.version ?? 0
        if ((await writing) !== undefined) expect(await writing).toBeInstanceOf(StoreConflict)
        expect(await dump()).not.toContain(id)
      }
    })

    test('of thousands of entries leaves none', async () => {
      const emits = Array.from({ length: 5000 }, (_, n) => emitTo(n % 2 ? 'a' : 'b', `${n}`))
      const spawns = Array.from({ length: 3000 }, (_, n) => ({ childId: `c${n}`, rootPath: '', context: {} }))
      const timers = Array.from({ length: 3000 }, (_, n) => ({ action: 'schedule' as const, path: `p${n}`, fireAt: 1 }))
      await store.commit(execution('a'), { emits, spawns, timers })
      expect(await store.purge('a', 1)).toBe(true)
      expect(await client.hlen(`${prefix}:outbox`)).toBe(2500)
      expect(await client.exists(`${prefix}:spawns`, `${prefix}:timers`, `${prefix}:index:timers:a`)).toBe(0)
    })
  })
})
