import { newEvent, outbox, type RedisStore } from '@harel/store-redis'
import { withServer } from '@harel-tooling/test-servers/vitest'
import type { Redis } from 'ioredis'
import { beforeEach, describe, expect, test } from 'vitest'
import { execution } from './commits.js'
import { clientFor, freshPrefix, observe, storeOn } from './database.js'
import { outboxEntry, spawnEntry } from './python.js'

const numbers = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, n) => from + n)

withServer('redis', ({ url }) => {
  let client: Redis
  let prefix: string
  let store: RedisStore

  beforeEach(() => {
    client = clientFor(url)
    prefix = freshPrefix()
    store = storeOn(client, { prefix })
  })

  let sent = 0
  /** Adds so many events to the outbox. */
  const emit = (count: number) => {
    sent += 1
    const emits = numbers(1, count).map(() => ({ targetId: 'b', event: newEvent({ kind: 'k', data: { a: 1 } }) }))
    return store.commit(execution(`sender-${sent}`), { emits })
  }
  const seqsOf = async (page?: { limit?: number; after?: number }) =>
    (await store.pendingOutbox(page)).map(({ seq }) => seq)
  /** How many bytes the client receives meanwhile. */
  const received = async (work: () => Promise<unknown>): Promise<number> => {
    const before = client.stream.bytesRead
    await work()
    return client.stream.bytesRead - before
  }

  describe('a page of a long queue', () => {
    const LENGTH = 20_000

    test('is read without the rest of it, from the beginning and from behind (weakness 27)', async () => {
      await emit(LENGTH)
      const entry = (await client.hstrlen(`${prefix}:outbox`, '1')) as number
      for (const after of [0, 10_000, LENGTH - 50]) {
        const expected = numbers(after + 1, Math.min(after + 100, LENGTH))
        const bytes = await received(async () => expect(await seqsOf({ limit: 100, after })).toEqual(expected))
        expect(bytes).toBeLessThan(110 * (entry + 20))
      }
    })

    test('costs the same few questions while a relay works it off', async () => {
      await emit(LENGTH)
      await seqsOf({ limit: 100 })
      for (let start = 0; start < 2000; start += 100) {
        const { commands, called } = await observe(client, prefix, async () => {
          expect(await seqsOf({ limit: 100 })).toEqual(numbers(start + 1, start + 100))
        })
        expect([commands, called]).toEqual([['hlen', 'get', 'hmget'], []])
        await store.ackOutbox(numbers(start + 1, start + 100))
      }
    })

    test('is found behind a gap of a million numbers, and behind one that is stuck', async () => {
      await emit(1)
      await client.incrby(`${prefix}:outbox:seq`, 1_000_000)
      await emit(5000)
      const first = 1_000_002
      const { commands } = await observe(client, prefix, async () => {
        expect(await seqsOf({ limit: 10 })).toEqual([1, ...numbers(first, first + 8)])
      })
      // A look at all numbers, in parts.
      expect(commands.length).toBeLessThan(12)
      await store.ackOutbox(numbers(first, first + 1999))
      const again = await observe(client, prefix, async () => {
        expect(await seqsOf({ limit: 10 })).toEqual([1, ...numbers(first + 2000, first + 2008)])
      })
      expect(again.commands).toEqual(['hlen', 'get', 'hmget'])
    })

    test('goes on where others have acknowledged what was known', async () => {
      await emit(LENGTH)
      await seqsOf({ limit: 10 })
      const gone = numbers(1, LENGTH).filter((seq) => seq % 10 !== 0)
      for (let start = 0; start < gone.length; start += 1000) {
        await client.hdel(`${prefix}:outbox`, ...gone.slice(start, start + 1000).map(String))
      }
      expect(await seqsOf({ limit: 150 })).toEqual(numbers(1, 150).map((n) => 10 * n))
      expect(await seqsOf({ limit: 1000, after: 15_000 })).toEqual(numbers(1501, 2000).map((n) => 10 * n))
    })

    test('has what was added meanwhile, in its place at the end', async () => {
      await emit(5000)
      await seqsOf({ limit: 10 })
      await emit(7)
      expect(await seqsOf({ limit: 100, after: 4990 })).toEqual(numbers(4991, 5007))
      await store.ackOutbox(numbers(1, 5000))
      expect(await seqsOf({ limit: 100 })).toEqual(numbers(5001, 5007))
    })
  })

  describe('entries of Python', () => {
    /** As Python does it: the number is taken some time before the entry is written. */
    const take = (queue: 'outbox' | 'spawns') => client.incr(`${prefix}:${queue}:seq`)

    test('are read among ours, ascending', async () => {
      await emit(2)
      const seq = await take('outbox')
      await client.hset(`${prefix}:outbox`, seq, outboxEntry('zür ich "\\', 'python'))
      await emit(1)
      const entries = await store.pendingOutbox()
      expect(entries.map((entry) => entry.seq)).toEqual([1, 2, 3, 4])
      expect(entries[2]).toMatchObject({ targetId: 'zür ich "\\', event: { id: 'python', kind: 'k', data: {} } })
      await client.hset(`${prefix}:spawns`, await take('spawns'), spawnEntry('p ü', 'c'))
      const spawn = { seq: 1, parentId: 'p ü', childId: 'c', rootPath: '', context: { text: 'ünï' } }
      expect(await store.pendingSpawns()).toEqual([spawn])
    })

    test.each([10, 5000])('that come late under a lower number are in the next sweep (%i others)', async (others) => {
      const late = await take('outbox')
      await emit(others)
      expect(await seqsOf({ limit: 3 })).toEqual([2, 3, 4])
      await client.hset(`${prefix}:outbox`, late, outboxEntry('b', 'late'))
      expect(await seqsOf({ limit: 3 })).toEqual([1, 2, 3])
    })

    test('that come late are seen at the end of a sweep, while others acknowledge', async () => {
      const late = await take('outbox')
      await emit(5000)
      await seqsOf({ limit: 3 })
      await client.hset(`${prefix}:outbox`, late, outboxEntry('b', 'late'))
      // Another process: as many as before, and not those that are known.
      await client.hdel(`${prefix}:outbox`, '4000')
      for await (const _entry of outbox(store)) {
        // to the end
      }
      expect(await seqsOf({ limit: 3 })).toEqual([1, 2, 3])
    })

    test('that come late are seen at last by a relay that never gets to the end', async () => {
      const late = await take('outbox')
      await emit(5000)
      await seqsOf({ limit: 3 })
      await client.hset(`${prefix}:outbox`, late, outboxEntry('b', 'late'))
      await client.hdel(`${prefix}:outbox`, '4000')
      let sweeps = 0
      while (!(await seqsOf({ limit: 3 })).includes(late)) sweeps += 1
      expect(sweeps).toBeLessThan(100)
    })

    test('under names that are no numbers are left alone', async () => {
      await client.hset(`${prefix}:outbox`, 'x', outboxEntry('b', 'x'))
      await emit(2)
      expect(await seqsOf()).toEqual([1, 2])
      expect(await seqsOf({ limit: 1, after: 1 })).toEqual([2])
    })
  })

  test.each([300, 5000])(
    'two relays deliver everything at least once, and nothing out of order (%i)',
    async (count) => {
      await emit(count)
      const delivered: number[] = []
      const relay = async (own: RedisStore) => {
        for (;;) {
          const page = await own.pendingOutbox({ limit: 50 })
          if (page.length === 0) return
          const seqs = page.map(({ seq }) => seq)
          expect(seqs).toEqual(seqs.toSorted((a, b) => a - b))
          delivered.push(...seqs)
          await own.ackOutbox(seqs)
        }
      }
      await Promise.all([relay(store), relay(storeOn(clientFor(url), { prefix }))])
      expect(new Set(delivered)).toEqual(new Set(numbers(1, count)))
      expect(await client.hlen(`${prefix}:outbox`)).toBe(0)
    },
  )
})
