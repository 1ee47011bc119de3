import { type ChainableCommander, type Cluster, Redis } from 'ioredis'
import { onTestFinished } from 'vitest'

type Database = Redis | Cluster

/** A name under which nothing is stored yet. */
export const freshPrefix = (): string => `t_${Math.random().toString(36).slice(2)}`

/** A client past the stores, which goes with the test. */
export function clientFor(url: string): Redis {
  const client = new Redis(url)
  onTestFinished(() => client.disconnect())
  return client
}

/** All keys that begin so, in their order. */
export async function keysOf(client: Database, beginning: string): Promise<string[]> {
  const keyPrefix = String(client.options.keyPrefix ?? '')
  const keys = new Set<string>()
  for (const node of client.isCluster ? (client as Cluster).nodes('master') : [client as Redis]) {
    let cursor = '0'
    do {
      const [next, found] = await node.scan(cursor, 'MATCH', `${keyPrefix}${beginning}*`, 'COUNT', 10_000)
      for (const key of found) keys.add(key.slice(keyPrefix.length))
      cursor = String(next)
    } while (cursor !== '0')
  }
  return [...keys].sort()
}

async function together(client: Database, queue: (pipeline: ChainableCommander) => void): Promise<unknown[]> {
  const pipeline = client.pipeline()
  queue(pipeline)
  return ((await pipeline.exec()) ?? []).map(([error, result]) => {
    if (error !== null) throw error
    return result
  })
}

type Read = (pipeline: ChainableCommander, key: string) => unknown

/** The keys that begin so, with their types, and whether they go by themselves. */
async function typesOf(client: Database, beginning: string) {
  const keys = await keysOf(client, beginning)
  const answers = await together(client, (pipeline) => {
    for (const key of keys) pipeline.type(key).ttl(key)
  })
  return keys.map((key, index) => ({
    key,
    type: String(answers[2 * index]),
    expires: Number(answers[2 * index + 1]) >= 0,
  }))
}

async function read<T extends { key: string; type: string }>(
  client: Database,
  keys: readonly T[],
  reads: Record<string, Read>,
) {
  const answers = await together(client, (pipeline) => {
    for (const { key, type } of keys) (reads[type] ?? reads.other)?.(pipeline, key)
  })
  return keys.map((key, index) => ({ ...key, answer: answers[index] }))
}

/** How many entries the keys have that begin so; those that go by themselves are left out. */
export async function sizesOf(client: Database, beginning: string): Promise<{ key: string; size: number }[]> {
  const keys = (await typesOf(client, beginning)).filter(({ expires }) => !expires)
  const sized = await read(client, keys, {
    hash: (pipeline, key) => pipeline.hlen(key),
    set: (pipeline, key) => pipeline.scard(key),
    zset: (pipeline, key) => pipeline.zcard(key),
    list: (pipeline, key) => pipeline.llen(key),
    other: (pipeline, key) => pipeline.exists(key),
  })
  return sized.map(({ key, answer }) => ({ key, size: Number(answer) }))
}

/** Everything under the keys that begin so; of those that go by themselves only the names. */
export async function dumpOf(client: Database, beginning: string): Promise<Record<string, unknown>> {
  const contents = await read(client, await typesOf(client, beginning), {
    hash: (pipeline, key) => pipeline.hgetall(key),
    set: (pipeline, key) => pipeline.smembers(key),
    zset: (pipeline, key) => pipeline.call('zrange', key, 0, -1, 'WITHSCORES'),
    list: (pipeline, key) => pipeline.lrange(key, 0, -1),
    other: (pipeline, key) => pipeline.get(key),
  })
  return Object.fromEntries(contents.map(({ key, answer }) => [key, answer]))
}
