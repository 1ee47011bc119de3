import { type DueTimer, type RedisStore, timers } from '@harel/store-redis'
import { withServer } from '@harel-tooling/test-servers/vitest'
import type { Redis } from 'ioredis'
import { beforeEach, describe, expect, test } from 'vitest'
import { execution } from './commits.js'
import { clientFor, dumpOf, freshPrefix, observe, storeOn } from './database.js'

const byBytes = (a: string, b: string) => Buffer.compare(Buffer.from(a), Buffer.from(b))

withServer('redis', ({ url }) => {
  let client: Redis
  let prefix: string
  let store: RedisStore

  beforeEach(() => {
    client = clientFor(url)
    prefix = freshPrefix()
    store = storeOn(client, { prefix })
  })

  /** Arms a timer as Python does. */
  const arm = (id: string, path: string, fireAt: number) => client.zadd(`${prefix}:timers`, fireAt, `${id}\0${path}`)
  const due = (executionId: string, path: string, fireAt: number): DueTimer => ({ executionId, path, fireAt })

  describe('due timers', () => {
    const ids = ['a', 'a:b', 'B', 'ab', 'aé', 'a\u{10ffff}', 'a\uffff', 'a\x01', 'a ']

    test('that are due at the same time come in the order of the bytes of id and path, page by page', async () => {
      const expected: DueTimer[] = []
      for (const id of ids) {
        for (const path of ['P', 'p', 'é']) {
          await arm(id, path, 5)
          expected.push(due(id, path, 5))
        }
      }
      expected.sort((a, b) => byBytes(`${a.executionId}\0${a.path}`, `${b.executionId}\0${b.path}`))
      expect(await store.dueTimers(5)).toEqual(expected)
      for (const limit of [1, 2, 5]) {
        const found: DueTimer[] = []
        for await (const timer of timers(store, 5, limit)) found.push(timer)
        expect(found).toEqual(expected)
      }
    })

    test('go on behind one that is gone, or that was armed for another time', async () => {
      for (let n = 0; n < 6; n++) await arm(`e${n}`, 'P', n < 3 ? 1 : 2)
      const [first, second] = await store.dueTimers(9, { limit: 2 })
      expect([first, second]).toEqual([due('e0', 'P', 1), due('e1', 'P', 1)])
      await store.deleteTimer('e1', 'P', 1)
      await arm('e0', 'P', 7)
      const behind = await store.dueTimers(9, { limit: 2, after: due('e1', 'P', 1) })
      expect(behind).toEqual([due('e2', 'P', 1), due('e3', 'P', 2)])
      expect(await store.dueTimers(9, { after: due('e5', 'P', 2) })).toEqual([due('e0', 'P', 7)])
      expect(await store.dueTimers(2, { after: due('e5', 'P', 2) })).toEqual([])
      expect(await store.dueTimers(9, { after: due('e5', 'P', 1.5), limit: 1 })).toEqual([due('e3', 'P', 2)])
    })

    test('of one moment, ten thousand of them, are paged through at the same small cost', async () => {
      const count = 10_000
      const changes = Array.from({ length: count }, (_, n) => ({
        action: 'schedule' as const,
        path: `p${n}`,
        fireAt: 0.1,
      }))
      await store.commit(execution('a'), { timers: changes })
      const found: string[] = []
      for await (const { path } of timers(store, 1, 250)) found.push(path)
      expect(found).toEqual(changes.map(({ path }) => path).sort(byBytes))
      const { commands, called } = await observe(client, prefix, () =>
        store.dueTimers(1, { limit: 100, after: due('a', 'p5000', 0.1) }),
      )
      expect(commands).toEqual(['evalsha'])
      expect(called.length).toBeLessThan(20)
    })

    test('are read without writing anything', async () => {
      for (let n = 0; n < 10; n++) await arm('a', `p${n}`, 1)
      const { called } = await observe(client, prefix, () => store.dueTimers(1, { after: due('a', 'p4', 1) }))
      expect(new Set(called)).toEqual(new Set(['zcount', 'zrange']))
    })

    test('keep their times to the last digit', async () => {
      const times = [-1e300, -1.5, 0, 5e-324, 0.1 + 0.2, 1767225600.123456, 2 ** 53 - 1, 1e300]
      const changes = times.map((fireAt, n) => ({ action: 'schedule' as const, path: `p${n}`, fireAt }))
      await store.commit(execution('a'), { timers: changes })
      expect((await store.dueTimers(1e308)).map(({ fireAt }) => fireAt)).toEqual(times)
      for (const { path, fireAt } of changes) {
        expect(await store.dueTimers(1e308, { limit: 1 })).toEqual([due('a', path, fireAt)])
        await store.deleteTimer('a', path, fireAt)
      }
      expect(await store.dueTimers(1e308)).toEqual([])
    })
  })

  describe('deleteTimer', () => {
    test('leaves a timer that was armed again meanwhile', async () => {
      const held = execution('a')
      await store.commit(held, { timers: [{ action: 'schedule', path: 'P', fireAt: 1 }] })
      await store.commit(held, { timers: [{ action: 'schedule', path: 'P', fireAt: 2 }] })
      await store.deleteTimer('a', 'P', 1)
      expect(await store.dueTimers(9)).toEqual([due('a', 'P', 2)])
      await store.deleteTimer('a', 'P', 2)
      expect(await store.dueTimers(9)).toEqual([])
    })

    test('is one script: nothing comes between its look and its deletion (weakness 7)', async () => {
      await arm('a', 'P', 1)
      const { commands } = await observe(client, prefix, () => store.deleteTimer('a', 'P', 1))
      expect(commands.at(-1)).toBe('evalsha')
      expect(commands).not.toContain('zscore')
    })

    test('leaves no key behind', async () => {
      await store.commit(execution('a'), { timers: [{ action: 'schedule', path: 'P', fireAt: 1 }] })
      await store.deleteTimer('a', 'P', 1)
      expect(Object.keys(await dumpOf(client, `${prefix}:`))).toEqual([`${prefix}:exe:a`, `${prefix}:index:ids`])
    })
  })
})
