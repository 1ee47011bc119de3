import type { ListQuery, RedisStore } from '@harel/store-redis'
import { withServer } from '@harel-tooling/test-servers/vitest'
import type { Redis } from 'ioredis'
import { beforeEach, describe, expect, test } from 'vitest'
import { execution } from './commits.js'
import { clientFor, freshPrefix, listed, observe, storeOn } from './database.js'
import { payload } from './python.js'

withServer('redis', ({ url }) => {
  let client: Redis
  let prefix: string
  let store: RedisStore

  beforeEach(() => {
    client = clientFor(url)
    prefix = freshPrefix()
    store = storeOn(client, { prefix })
  })

  const python = (id: string, version: number, fields?: Record<string, unknown>) =>
    client.set(`${prefix}:exe:${id}`, payload(id, version, fields))
  const ids = async (query: ListQuery = {}) => (await listed(store, query)).map(({ id }) => id)

  describe('executions of Python', () => {
    test('are listed at once where only Python has written before', async () => {
      for (const id of ['b', 'a', 'ä']) await python(id, 1)
      expect(await ids()).toEqual(['a', 'b', 'ä'])
    })

    test('are found by a prefix of their ids at once where only Python has written before', async () => {
      for (const id of ['b1', 'a', 'b2']) await python(id, 1)
      expect(await store.idsWithPrefix('b')).toEqual(['b1', 'b2'])
    })

    test('that are created later appear when they are committed here, or with reindex', async () => {
      await store.save(execution('mine'))
      expect(await ids()).toEqual(['mine'])
      for (const id of ['p1', 'p2']) await python(id, 1)
      expect(await ids()).toEqual(['mine'])
      const held = await store.load('p2')
      if (held !== undefined) await store.save(held)
      expect(await ids()).toEqual(['mine', 'p2'])
      expect(await store.reindex()).toEqual({ stored: 3, added: 1, removed: 0, moved: 0 })
      expect(await ids()).toEqual(['mine', 'p1', 'p2'])
      expect(await store.reindex()).toEqual({ stored: 3, added: 0, removed: 0, moved: 0 })
    })

    test('are listed as they are now, whoever wrote them last', async () => {
      await store.save(execution('a', { status: 'RUNNING', activePath: 'A' }))
      await python('a', 2, { status: 'DONE', active_path: 'B', outcome: 'ok', parent_id: 'p', finished_at: 5.5 })
      const summary = { id: 'a', definitionId: 'd', status: 'DONE', outcome: 'ok', activePath: 'B' }
      expect(await listed(store)).toMatchObject([{ ...summary, version: 2, parentId: 'p', finishedAt: 5.5 }])
      expect(await ids({ status: 'RUNNING' })).toEqual([])
      expect(await ids({ status: 'DONE' })).toEqual(['a'])
      expect(await ids({ rootsOnly: true })).toEqual([])
      const held = await store.load('a')
      if (held !== undefined) await store.save({ ...held, status: 'CANCELLED' })
      expect(await listed(store)).toMatchObject([{ status: 'CANCELLED', version: 3, activePath: 'B' }])
    })

    test('that Python has purged are not listed nor found, and reindex forgets them (B46)', async () => {
      for (const id of ['a', 'b', 'c', 'd']) await store.save(execution(id))
      expect(await ids()).toEqual(['a', 'b', 'c', 'd'])
      await client.del(`${prefix}:exe:b`, `${prefix}:exe:d`)
      expect(await ids()).toEqual(['a', 'c'])
      expect((await store.listExecutions({ limit: 2 })).nextCursor).toBeNull()
      expect(await store.idsWithPrefix('')).toEqual(['a', 'c'])
      expect(await client.zcard(`${prefix}:index:ids`)).toBe(4)
      expect(await store.reindex()).toEqual({ stored: 2, added: 0, removed: 2, moved: 0 })
      expect(await client.zcard(`${prefix}:index:ids`)).toBe(2)
    })

    test('with long contexts and long errors are listed with what they say', async () => {
      const long = `,"history":${'x'.repeat(5000)}`
      await python('a', 1, { error: long, context: { long } })
      await store.save(execution('b', { error: long, outcome: 'o', finishedAt: 1.5 }))
      await store.save(execution('c', { activePath: 'ü'.repeat(5000), parentId: 'p' }))
      expect(await listed(store)).toMatchObject([
        { id: 'a', status: 'RUNNING', outcome: null },
        { id: 'b', outcome: 'o', finishedAt: 1.5 },
        { id: 'c', activePath: 'ü'.repeat(5000), parentId: 'p' },
      ])
    })
  })

  describe('reindex', () => {
    test('finds thousands of executions, beside keys that are none of them (weakness 40)', async () => {
      const many = Array.from({ length: 2500 }, (_, n) => `e${n}`)
      await client.mset(...many.flatMap((id) => [`${prefix}:exe:${id}`, payload(id, 1)]))
      await client.mset(`${prefix}:exex:a`, '1', `${prefix}x:exe:a`, '1', `${prefix}:processed:exe:a`, '1')
      expect(await store.reindex()).toEqual({ stored: 2500, added: 2500, removed: 0, moved: 0 })
      expect(await store.idsWithPrefix('')).toEqual(many.toSorted())
    })

    test('looks behind the prefix of the client, whatever characters that has (B35, B36)', async () => {
      const keyPrefix = 'a*?[b]\\:'
      const other = clientFor(url, { keyPrefix })
      await client.mset(`${keyPrefix}${prefix}:exe:a`, payload('a', 1), `axb\\:${prefix}:exe:b`, payload('b', 1))
      await client.set(`${prefix}:exe:c`, payload('c', 1))
      expect(await storeOn(other, { prefix }).reindex()).toEqual({ stored: 1, added: 1, removed: 0, moved: 0 })
      expect(await client.zrange(`${keyPrefix}${prefix}:index:ids`, '0', '-1')).toEqual(['a'])
    })

    test('beside writers that create and purge leaves the index exact', async () => {
      let isDone = false
      const write = async (name: string) => {
        for (let n = 0; !isDone; n++) {
          await store.save(execution(`${name}${n % 7}`))
          if (n % 3 === 0) await store.save(execution(`${name}-kept-${n}`))
          await store.purge(`${name}${n % 7}`, 1)
        }
      }
      const writers = ['a', 'b', 'c'].map(write)
      for (let n = 0; n < 20; n++) await store.reindex()
      isDone = true
      await Promise.all(writers)
      const indexed = await client.zrange(`${prefix}:index:ids`, '0', '-1')
      expect(await store.reindex()).toEqual({ stored: indexed.length, added: 0, removed: 0, moved: 0 })
    })
  })

  test('the few ids with a prefix among many are found without a look at the others (weakness 42)', async () => {
    for (let n = 0; n < 2000; n++) void store.save(execution(`e${n + 10_000}`))
    for (const id of ['f1', 'f2']) await store.save(execution(id))
    // The first one finds out whether the index is complete.
    expect(await store.idsWithPrefix('g')).toEqual([])
    const { commands, called } = await observe(client, prefix, async () => {
      expect(await store.idsWithPrefix('f')).toEqual(['f1', 'f2'])
    })
    expect(commands).toEqual(['zrangebylex', 'evalsha'])
    expect(called).toEqual(['getrange', 'getrange'])
  })

  describe('a page', () => {
    test('costs two questions and no whole payload, the first one and the last one (weakness 38)', async () => {
      const count = 3000
      for (let n = 0; n < count; n++) void store.save(execution(`e${n + 10_000}`))
      await store.save(execution('e0'))
      let cursor = (await store.listExecutions({ limit: 10 })).nextCursor
      const pageFrom = async (from: string | null) => {
        const { commands, called } = await observe(client, prefix, async () => {
          cursor = (await store.listExecutions({ limit: 10, cursor: from })).nextCursor
        })
        return [...commands, ...called]
      }
      const first = await pageFrom(null)
      expect(first).toEqual(['zrangebylex', 'evalsha', ...Array.from({ length: 11 }, () => 'getrange')])
      for (let n = 0; n < 2; n++) cursor = (await store.listExecutions({ limit: 1000, cursor })).nextCursor
      expect(await pageFrom(cursor)).toEqual(first)
    })

    test('of a filter that few pass is filled from behind the many that do not', async () => {
      for (let n = 0; n < 1300; n++) void store.save(execution(`e${n + 10_000}`))
      for (const id of ['e10700', 'e11299', 'f']) {
        const held = (await store.load(id)) ?? execution(id)
        await store.save({ ...held, status: 'FAILED' })
      }
      expect(await ids({ status: 'FAILED', limit: 2 })).toEqual(['e10700', 'e11299', 'f'])
      expect((await store.listExecutions({ status: 'FAILED', limit: 3 })).nextCursor).toBeNull()
    })
  })
})
