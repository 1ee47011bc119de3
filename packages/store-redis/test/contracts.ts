import type { StoreCapabilities } from '@harel/store-base'
import { type Client, RedisStore } from '@harel/store-redis'
import { describeStore, type ModelOptions, type OpenOptions, type Probes } from '@harel/store-testing'
import type { Redis } from 'ioredis'
import { afterAll, describe, test } from 'vitest'
import { sizesOf } from './database.js'

const capabilities: StoreCapabilities = {
  durable: true,
  shared: true,
  identity: false,
  ordered: true,
  paging: 'key',
  maxCommitWrites: 500_000,
  maxExecutionBytes: 256 * 1024 * 1024,
  dedupe: 'forever',
  atomicPurge: true,
  transactions: false,
}

export interface Subject {
  /** Opens a store; absent: one on `client`. */
  open?: (options: OpenOptions) => Promise<RedisStore>
  /** A client of the caller's, ended when the tests are done. */
  client: () => Client
  hashTag?: boolean
  filterIndex?: boolean
  model?: ModelOptions
}

/** Runs all contracts under two prefixes, with a look at what is stored. */
export function describeContracts(name: string, subject: Subject): void {
  const { open, client: connect, hashTag = false, filterIndex = false, model } = subject
  let connected: Client | undefined
  const client = (): Client => {
    connected ??= connect()
    return connected
  }
  afterAll(() => connected?.disconnect())
  const onClient = async (options: OpenOptions) => new RedisStore(client(), { ...options, hashTag, filterIndex })

  describeStore({ describe, test }, name, {
    capabilities,
    open: open ?? onClient,
    probes: (prefix) => probesOn(() => client() as Redis, prefix, hashTag),
    ...(model && { model }),
  })
}

function probesOn(client: () => Redis, prefix: string, hashTag: boolean): Probes {
  const beginning = hashTag ? `{${prefix}}` : prefix
  return {
    executionText: async (id) => (await client().get(`${beginning}:exe:${id}`)) ?? undefined,
    insertExecutionText: async (id, _version, text) => {
      await client().set(`${beginning}:exe:${id}`, text)
      await using store = new RedisStore(client(), { prefix, hashTag })
      await store.reindex()
    },
    insertOutboxText: async (targetId, text) => {
      const seq = await client().incr(`${beginning}:outbox:seq`)
      // As Python writes it.
      await client().hset(
        `${beginning}:outbox`,
        String(seq),
        `{"t": ${JSON.stringify(targetId)}, "e": ${JSON.stringify(text)}}`,
      )
    },
    rows: async () => {
      const counts: Record<string, number> = {}
      for (const { key, answer } of await sizesOf(client(), `${beginning}:`)) {
        if (key.endsWith(':seq')) continue
        const kind = key
          .split(':')
          .slice(1, key.includes(':index:') ? 3 : 2)
          .join(':')
        counts[kind] = (counts[kind] ?? 0) + Number(answer)
      }
      return counts
    },
  }
}
