import type { ListQuery, RedisStore } from '@harel/store-redis'
import { withServer } from '@harel-tooling/test-servers/vitest'
import type { Redis } from 'ioredis'
import { beforeEach, describe, expect, test } from 'vitest'
import { INDEX } from '../src/scripts.js'
import { execution } from './commits.js'
import { clientFor, freshPrefix, interrupted, listed, observe, storeOn } from './database.js'
import { payload } from './python.js'

withServer('redis', ({ url }) => {
  let client: Redis
  let prefix: string
  let store: RedisStore

  beforeEach(() => {
    client = clientFor(url)
    prefix = freshPrefix()
    store = storeOn(client, { prefix, filterIndex: true })
  })

  const python = (id: string, version: number, fields?: Record<string, unknown>) =>
    client.set(`${prefix}:exe:${id}`, payload(id, version, fields))
  const idsOf = async (query: ListQuery, from = store) => (await listed(from, query)).map(({ id }) => id)

  const queries: ListQuery[] = [
    { status: 'FAILED' },
    { status: ['DONE', 'FAILED'] },
    { definitionId: 'rare' },
    { rootsOnly: true },
    { definitionId: 'rare', status: ['RUNNING', 'FAILED'], rootsOnly: true },
  ]

  describe('with filterIndex a page', () => {
    test.each(queries)('of %j asks for no execution that does not pass, however many there are', async (query) => {
      for (let n = 0; n < 1500; n++) void store.save(execution(`e${n + 10_000}`, { parentId: 'p' }))
      for (const id of ['a', 'e10700', 'f']) {
        await store.save(execution(`${id}-rare`, { definitionId: 'rare', status: 'FAILED' }))
      }
      expect(await idsOf(query)).toEqual(['a-rare', 'e10700-rare', 'f-rare'])
      const { commands, called } = await observe(client, prefix, () => idsOf(query))
      expect(commands).toEqual(['evalsha', 'evalsha'])
      expect(new Set(called)).toEqual(new Set(['get', 'zrangebylex', 'getrange']))
      expect(called.filter((command) => command === 'getrange')).toHaveLength(3)
    })

    test('goes on behind the one before in the order of bytes, across statuses and kinds', async () => {
      const ids = ['a', 'b', 'ü', '\uffff', '\u{10000}', 'z ', 'z!']
      for (const [n, id] of ids.entries()) {
        await store.save(
          execution(id, { status: n % 2 === 0 ? 'DONE' : 'RUNNING', ...(n % 3 === 0 && { parentId: 'p' }) }),
        )
      }
      const all = ['a', 'b', 'z ', 'z!', 'ü', '\uffff', '\u{10000}']
      for (const limit of [1, 2, 3, 100]) expect(await idsOf({ definitionId: 'd', limit })).toEqual(all)
      expect(await idsOf({ status: 'DONE', limit: 1 })).toEqual(['a', 'z!', 'ü', '\u{10000}'])
    })

    test('holds no execution of a definition whose name is a part of another one', async () => {
      for (const definitionId of ['d', 'd RUNNING root ', 'dd', 'RUNNING root']) {
        await store.save(execution(`of ${definitionId}`, { definitionId }))
      }
      for (const definitionId of ['d', 'd RUNNING root ', 'dd', 'RUNNING root']) {
        expect(await idsOf({ definitionId })).toEqual([`of ${definitionId}`])
      }
    })
  })

  describe('the index by filters', () => {
    test('is made of what is there, whoever wrote it, what cannot be read included', async () => {
      const plain = storeOn(client, { prefix })
      await plain.save(execution('mine', { status: 'FAILED' }))
      await python('ü of Python, whose payload begins in another way', 3, { status: 'FAILED', parent_id: 'p' })
      await client.set(`${prefix}:exe:damaged`, '{"version":1,')
      const warnings: string[] = []
      const reader = storeOn(client, { prefix, filterIndex: true, onWarning: (text) => warnings.push(text) })
      const failed = ['mine', 'ü of Python, whose payload begins in another way']
      expect(await idsOf({ status: 'FAILED' }, reader)).toEqual(failed)
      expect(await idsOf({ status: 'FAILED', rootsOnly: true }, reader)).toEqual(['mine'])
      expect(warnings.join()).toContain('damaged')
    })

    test('is kept by all stores of the prefix from then on, through changes and purges', async () => {
      const plain = storeOn(client, { prefix })
      expect(await idsOf({ status: 'FAILED' })).toEqual([])
      const held = execution('a')
      await plain.save(held)
      await plain.save(Object.assign(held, { status: 'FAILED' }))
      expect(await idsOf({ status: 'FAILED' })).toEqual(['a'])
      expect(await idsOf({ status: 'RUNNING' })).toEqual([])
      await plain.purge('a', held.version)
      expect(await idsOf({ status: 'FAILED' })).toEqual([])
      expect(await client.exists(`${prefix}:index:filters`, `${prefix}:index:places`)).toBe(0)
    })

    test('is kept by nobody before a store wants it', async () => {
      const plain = storeOn(client, { prefix })
      await plain.save(execution('a'))
      expect(await idsOf({ status: 'RUNNING' }, plain)).toEqual(['a'])
      await plain.reindex()
      expect(await client.keys(`${prefix}:index:*`)).toEqual(
        expect.not.arrayContaining([expect.stringMatching(/filters|places|kept/)]),
      )
    })

    test('shows nothing under filters that Python has changed, and all again after reindex', async () => {
      for (const id of ['a', 'b', 'c', 'd']) await store.save(execution(id))
      expect(await idsOf({ status: 'RUNNING', limit: 1 })).toEqual(['a', 'b', 'c', 'd'])
      await python('b', 2, { status: 'DONE' })
      await client.del(`${prefix}:exe:c`)
      expect(await idsOf({ status: 'RUNNING', limit: 1 })).toEqual(['a', 'd'])
      expect(await store.reindex()).toEqual({ stored: 3, added: 0, removed: 1, moved: 1 })
      expect(await idsOf({ status: 'DONE' })).toEqual(['b'])
      expect(await store.reindex()).toEqual({ stored: 3, added: 0, removed: 0, moved: 0 })
    })

    test('is made anew after everything was deleted', async () => {
      await store.save(execution('a'))
      expect(await idsOf({ status: 'RUNNING' })).toEqual(['a'])
      await client.del(...(await client.keys(`${prefix}:*`)))
      await store.save(execution('b'))
      expect(await idsOf({ status: 'RUNNING' })).toEqual(['b'])
    })

    test('has an execution that is committed while it is made where that commit has left it', async () => {
      const plain = storeOn(client, { prefix })
      const held = execution('a')
      await plain.save(held)
      await python('p', 1)
      let isDone = false
      const changing = interrupted(client, INDEX, async () => {
        await plain.save(Object.assign(held, { status: 'FAILED' }))
        await plain.save(execution('p', { version: 1, status: 'FAILED' }))
        isDone = true
      })
      const maker = storeOn(changing, { prefix, filterIndex: true })
      expect(await idsOf({ status: 'FAILED' }, maker)).toEqual(['a', 'p'])
      expect(isDone).toBe(true)
      expect(await idsOf({ status: 'RUNNING' }, maker)).toEqual([])
    })

    test('is made anew when everything is deleted while it is made', async () => {
      await storeOn(client, { prefix }).save(execution('a'))
      const emptied = interrupted(client, INDEX, async () => {
        await client.del(...(await client.keys(`${prefix}:*`)))
        await storeOn(client, { prefix }).save(execution('b'))
      })
      const maker = storeOn(emptied, { prefix, filterIndex: true })
      expect(await idsOf({ status: 'RUNNING' }, maker)).toEqual(['b'])
    })

    test('that is made beside writers who create, change and purge is exact', async () => {
      let isDone = false
      const write = async (name: string) => {
        for (let n = 0; !isDone; n++) {
          const held = execution(`${name}${n % 7}`)
          await store.save(held)
          await store.save(Object.assign(held, { status: 'FAILED' }))
          if (n % 3 === 0) await store.save(execution(`${name}-kept-${n}`, { status: 'DONE' }))
          await store.purge(held.id, 2)
        }
      }
      const writers = ['a', 'b', 'c'].map(write)
      for (let n = 0; n < 10; n++) {
        await client.del(`${prefix}:index:filters`, `${prefix}:index:places`, `${prefix}:index:kept`)
        await idsOf({ status: 'FAILED' })
      }
      isDone = true
      await Promise.all(writers)
      expect(await store.reindex()).toMatchObject({ added: 0, removed: 0, moved: 0 })
      const plain = storeOn(client, { prefix })
      expect(await idsOf({ status: 'DONE' })).toEqual(await idsOf({ status: 'DONE' }, plain))
    })
  })
})
