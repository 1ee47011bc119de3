import { CorruptRecord, InvalidArgument, newEvent, type RedisStore, StoreConflict } from '@harel/store-redis'
import { withServer } from '@harel-tooling/test-servers/vitest'
import type { Redis } from 'ioredis'
import { beforeEach, describe, expect, test } from 'vitest'
import { execution, parts, shapes } from './commits.js'
import { clientFor, dumpOf, freshPrefix, observe, storeOn } from './database.js'

withServer('redis', ({ url }) => {
  let client: Redis
  let prefix: string
  let store: RedisStore

  beforeEach(() => {
    client = clientFor(url)
    prefix = freshPrefix()
    store = storeOn(client, { prefix })
  })

  const dump = () => dumpOf(client, `${prefix}:`)

  describe('a commit', () => {
    test.each(shapes('a'))(
      'with $name is one EVALSHA, the first one and later ones (weakness 34)',
      async ({ changes }) => {
        // The script becomes known to the server, which is checked for the first time.
        await store.save(execution('other'))
        const held = execution('a')
        const { commands } = await observe(client, prefix, async () => {
          await store.commit(held, changes)
          await store.commit(held, changes)
        })
        expect(commands).toEqual(['evalsha', 'evalsha'])
      },
    )

    test.each(shapes('a'))(
      'with $name that is refused changes nothing and uses up no number (weakness 30)',
      async ({ changes }) => {
        const held = execution('a')
        await store.commit(held, parts('a'))
        await store.commit(held, parts('a'))
        const before = await dump()
        for (const version of [0, 1, 3]) {
          await expect(store.commit({ ...held, version }, changes)).rejects.toThrow(StoreConflict)
        }
        await expect(store.commit(execution('none', { version: 1 }), changes)).rejects.toThrow(StoreConflict)
        expect(await dump()).toEqual(before)
        expect(await store.commit(held, parts('a'))).toEqual([5, 6])
      },
    )

    test('that another one has forestalled is refused in one EVALSHA, without a look at the execution', async () => {
      await store.commit(execution('a'), parts('a'))
      const { commands } = await observe(client, prefix, () =>
        expect(store.commit(execution('a'), parts('a'))).rejects.toThrow(StoreConflict),
      )
      expect(commands).toEqual(['evalsha'])
    })

    test('of eight thousand events, three thousand children and a thousand timers is stored in their order', async () => {
      const emits = Array.from({ length: 8000 }, (_, n) => ({ targetId: 'b', event: newEvent({ kind: `k${n}` }) }))
      const spawns = Array.from({ length: 3000 }, (_, n) => ({ childId: `c${n}`, rootPath: '', context: { n } }))
      const timers = Array.from({ length: 1000 }, (_, n) => ({ action: 'schedule' as const, path: `p${n}`, fireAt: n }))
      const seqs = await store.commit(execution('a'), { emits, spawns, timers })
      expect(seqs).toEqual(emits.map((_, n) => n + 1))
      expect((await store.pendingOutbox()).map(({ event }) => event)).toEqual(emits.map(({ event }) => event))
      expect((await store.pendingSpawns()).map(({ childId }) => childId)).toEqual(spawns.map(({ childId }) => childId))
      expect((await store.dueTimers(2000)).map(({ path }) => path)).toEqual(timers.map(({ path }) => path))
    })
  })

  test('a commit may have more writes than a function of JavaScript takes arguments', async () => {
    const timers = Array.from({ length: 100_000 }, (_, n) => ({
      action: 'schedule' as const,
      path: `p${n}`,
      fireAt: n,
    }))
    await store.commit(execution('a'), { timers })
    expect(await store.dueTimers(1e6, { limit: 2 })).toHaveLength(2)
    expect(await client.zcard(`${prefix}:timers`)).toBe(100_000)
  })

  describe('a key that holds something else than it should', () => {
    const kinds: {
      kind: string
      first?: true
      filtered?: true
      key: (prefix: string) => string
      wrong: 'string' | 'list' | 'text'
    }[] = [
      { kind: 'the execution', key: (p) => `${p}:exe:a`, wrong: 'list' },
      { kind: 'the index of ids', first: true, key: (p) => `${p}:index:ids`, wrong: 'string' },
      { kind: 'the ids with other writers', first: true, key: (p) => `${p}:index:mixed`, wrong: 'string' },
      { kind: 'the index by filters', filtered: true, key: (p) => `${p}:index:filters`, wrong: 'string' },
      { kind: 'the places in that', filtered: true, key: (p) => `${p}:index:places`, wrong: 'string' },
      { kind: 'the processed events', key: (p) => `${p}:processed:a`, wrong: 'string' },
      { kind: 'the outbox', key: (p) => `${p}:outbox`, wrong: 'string' },
      { kind: 'the counter of the outbox', key: (p) => `${p}:outbox:seq`, wrong: 'list' },
      { kind: 'the counter of the outbox, a text,', key: (p) => `${p}:outbox:seq`, wrong: 'text' },
      { kind: 'the spawns', key: (p) => `${p}:spawns`, wrong: 'string' },
      { kind: 'the counter of the spawns', key: (p) => `${p}:spawns:seq`, wrong: 'list' },
      { kind: 'the counter of the spawns, a text,', key: (p) => `${p}:spawns:seq`, wrong: 'text' },
      { kind: 'the timers', key: (p) => `${p}:timers`, wrong: 'string' },
      { kind: 'the paths of timers', key: (p) => `${p}:index:timers:a`, wrong: 'string' },
      { kind: 'the trace', key: (p) => `${p}:trace:a`, wrong: 'string' },
      { kind: 'the counter of the trace', key: (p) => `${p}:trace:seq:a`, wrong: 'list' },
      { kind: 'the counter of the trace, a text,', key: (p) => `${p}:trace:seq:a`, wrong: 'text' },
    ]

    test.each(kinds)(
      '($kind) makes a commit fail before anything is written (B46, weakness 6)',
      async ({ first, filtered, key, wrong }) => {
        const held = execution('a')
        if (filtered) await storeOn(client, { prefix, filterIndex: true }).reindex()
        if (!first) await store.commit(held)
        const { version } = held
        await client.del(key(prefix))
        if (wrong === 'list') await client.rpush(key(prefix), '1')
        else await client.set(key(prefix), wrong === 'text' ? 'x1' : '1')
        const before = await dump()
        const error = await store.commit(held, parts('a')).catch((reason: unknown) => reason)
        expect(error).toBeInstanceOf(CorruptRecord)
        expect(String(error)).toContain(JSON.stringify(key(prefix)))
        expect(held.version).toBe(version)
        expect(await dump()).toEqual(before)
      },
    )

    test.each(kinds)(
      '($kind) makes a purge fail before anything is removed, or is removed whole',
      async ({ key, wrong }) => {
        const held = execution('a')
        await store.commit(held, parts('a'))
        await client.del(key(prefix))
        if (wrong === 'list') await client.rpush(key(prefix), '1')
        else await client.set(key(prefix), wrong === 'text' ? 'x1' : '1')
        const before = await dump()
        const outcome = await store.purge('a', 1).catch((reason: unknown) => reason)
        if (outcome !== true) expect(outcome).toBeInstanceOf(CorruptRecord)
        if (outcome === true) expect(await client.exists(`${prefix}:exe:a`, `${prefix}:processed:a`)).toBe(0)
        else expect(await dump()).toEqual(before)
      },
    )

    test('makes readers fail with the same error', async () => {
      for (const key of ['exe:a', 'processed:a', 'trace:a']) await client.zadd(`${prefix}:${key}`, 1, 'x')
      for (const key of ['outbox', 'spawns', 'timers', 'index:ids', 'definition_versions']) {
        await client.set(`${prefix}:${key}`, 'x')
      }
      const calls = {
        load: () => store.load('a'),
        loadForEvent: () => store.loadForEvent('a', 'e'),
        isProcessed: () => store.isProcessed('a', 'e'),
        readTrace: () => store.readTrace('a'),
        appendTrace: () => store.appendTrace('a', {}),
        pendingOutbox: () => store.pendingOutbox(),
        ackOutbox: () => store.ackOutbox(1),
        pendingSpawns: () => store.pendingSpawns({ limit: 1 }),
        ackSpawn: () => store.ackSpawn(1),
        dueTimers: () => store.dueTimers(1),
        deleteTimer: () => store.deleteTimer('a', 'P', 1),
        listExecutions: () => store.listExecutions(),
        idsWithPrefix: () => store.idsWithPrefix(''),
        publishDefinition: () => store.publishDefinition({ id: 'D', version: '1', definition: 1 }),
        loadDefinition: () => store.loadDefinition('D', '1'),
      }
      for (const [name, call] of Object.entries(calls)) await expect(call(), name).rejects.toThrow(CorruptRecord)
    })
  })

  describe('an execution "seq:a", whose trace and the counter of the trace of "a" are one key in the layout of Python', () => {
    test('has everything but a trace', async () => {
      const { trace, ...others } = parts('seq:a')
      const held = execution('seq:a')
      await store.commit(held, others)
      await store.commit(held, others)
      for (const refused of [() => store.commit(held, { trace }), () => store.appendTrace('seq:a', trace)]) {
        await expect(refused()).rejects.toThrow(InvalidArgument)
      }
      expect(held.version).toBe(2)
      expect(await store.readTrace('seq:a')).toEqual([])
    })

    test('leaves the trace of "a" alone, also when either is purged', async () => {
      const trace = { event: 'Tick' }
      const a = execution('a')
      await store.commit(a, { trace })
      await store.commit(execution('seq:a'))
      expect(await store.readTrace('seq:a')).toEqual([])
      expect(await store.purge('seq:a', 1)).toBe(true)
      await store.commit(a, { trace })
      expect((await store.readTrace('a')).map(({ index }) => index)).toEqual([0, 1])
    })

    test('shows a trace that Python has given it, and keeps it when "a" is purged', async () => {
      await client.rpush(`${prefix}:trace:seq:a`, '{"event": "Tick", "index": 0}')
      expect(await store.readTrace('seq:a')).toEqual([{ event: 'Tick', index: 0 }])
      await store.save(execution('a'))
      await expect(store.commit(execution('a', { version: 1 }), { trace: {} })).rejects.toThrow(CorruptRecord)
      expect(await store.purge('a', 1)).toBe(true)
      expect(await store.readTrace('seq:a')).toEqual([{ event: 'Tick', index: 0 }])
      expect(await store.purge('seq:a', 1)).toBe(false)
      expect(await store.readTrace('seq:a')).toEqual([])
    })
  })

  describe('what users store', () => {
    test('is never decoded by the script where the payload begins with the version (B09)', async () => {
      await client.set(`${prefix}:exe:a`, '{"version":7,"commit_token":"x","id":"a", this is no JSON')
      const held = execution('a', { version: 7 })
      const { called } = await observe(client, prefix, () => store.commit(held))
      expect(held.version).toBe(8)
      expect(called).not.toContain('get')
    })

    test('keeps its empty lists, its objects and all its digits, in payloads and in queues (B09)', async () => {
      const context = {
        list: [],
        object: {},
        nested: [[], {}],
        digits: 0.12345678901234568,
        large: 1.7976931348623157e308,
      }
      const held = execution('a', { context })
      const event = newEvent({ kind: 'k', data: context })
      await store.commit(held, {
        emits: [{ targetId: 'b', event }],
        spawns: [{ childId: 'c', rootPath: '', context }],
        trace: context,
      })
      const text = JSON.stringify(context)
      await store.commit(held)
      expect(await client.get(`${prefix}:exe:a`)).toContain(`"context":${text}`)
      expect(JSON.parse((await client.hget(`${prefix}:outbox`, '1')) ?? '').e).toContain(text)
      expect(await client.hget(`${prefix}:spawns`, '1')).toContain(`"x":${text}`)
      expect(await client.lrange(`${prefix}:trace:a`, 0, -1)).toEqual([`${text.slice(0, -1)}, "index": 0}`])
      expect((await store.pendingOutbox())[0]?.event.data).toEqual(context)
      expect((await store.pendingSpawns())[0]?.context).toEqual(context)
    })

    test('keeps integers of seventeen digits that Python has stored, while all around it is committed', async () => {
      const payload = '{"id":"p","definition_id":"d","context":{"n":12345678901234567,"list":[]},"version":3}'
      const spawn = '{"p": "p", "c": "c", "r": "", "x": {"n": 12345678901234567, "list": []}}'
      await client.set(`${prefix}:exe:p`, payload)
      await client.hset(`${prefix}:spawns`, '1', spawn)
      await client.set(`${prefix}:spawns:seq`, '1')
      await store.commit(execution('a'), parts('p'))
      await store.commit(execution('b'), parts('b'))
      expect(await client.get(`${prefix}:exe:p`)).toBe(payload)
      expect(await client.hget(`${prefix}:spawns`, '1')).toBe(spawn)
      await expect(store.commit(execution('p', { version: 2 }))).rejects.toMatchObject({ expected: 2, found: 3 })
    })
  })
})
