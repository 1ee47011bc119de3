import {
  type Client,
  type ExecutionSummary,
  executions,
  type ListQuery,
  type RedisOptions,
  RedisStore,
} from '@harel/store-redis'
import { type ChainableCommander, type Cluster, Redis, type RedisOptions as RedisClientOptions } from 'ioredis'
import { onTestFinished } from 'vitest'
import type { Script } from '../src/lua.js'

/** A name under which nothing is stored yet. */
export const freshPrefix = (): string => `t_${Math.random().toString(36).slice(2)}`

export type ClientOptions = Omit<RedisClientOptions, 'replyMapping'> & { replyMapping?: 'legacy' | 'resp3' }

/** A client, which goes with the test. */
export function clientFor(url: string, options: ClientOptions = {}): Redis {
  const client = new Redis(url, options)
  client.on('error', () => {})
  onTestFinished(() => client.disconnect())
  return client as Redis
}

/** A store on a client, under a prefix of its own unless another one is given. */
export function storeOn(client: Client, options: RedisOptions = {}): RedisStore {
  const store = new RedisStore(client, { prefix: freshPrefix(), ...options })
  onTestFinished(() => store.close())
  return store
}

/** A client that lets something else happen before it sends a script for the first time. */
export function interrupted(client: Redis, { digest }: Script, before: () => Promise<unknown>): Redis {
  let isDone = false
  const call = async (command: string, args: (string | number)[]) => {
    if (args[0] === digest && !isDone) {
      isDone = true
      await before()
    }
    return client.call(command, args)
  }
  return Object.create(client, { call: { value: call } })
}

/** Everything that a query finds, page by page. */
export async function listed(store: RedisStore, query: ListQuery = {}): Promise<ExecutionSummary[]> {
  const found: ExecutionSummary[] = []
  for await (const summary of executions(store, query)) found.push(summary)
  return found
}

/** All keys that begin so, in their order. */
export async function keysOf(client: Redis | Cluster, beginning: string): Promise<string[]> {
  const keyPrefix = String(client.options.keyPrefix ?? '')
  const keys = new Set<string>()
  for (const node of client.isCluster ? (client as Cluster).nodes('master') : [client as Redis]) {
    let cursor = '0'
    do {
      const [next, found] = await node.scan(cursor, 'COUNT', 10_000)
      for (const key of found) if (key.startsWith(keyPrefix + beginning)) keys.add(key.slice(keyPrefix.length))
      cursor = String(next)
    } while (cursor !== '0')
  }
  return [...keys].sort()
}

async function together(client: Redis | Cluster, queue: (pipeline: ChainableCommander) => void): Promise<unknown[]> {
  const pipeline = client.pipeline()
  queue(pipeline)
  return ((await pipeline.exec()) ?? []).map(([error, result]) => {
    if (error !== null) throw error
    return result
  })
}

/** The keys that begin so, with their types, and whether they go by themselves. */
async function typesOf(client: Redis | Cluster, beginning: string) {
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

type Read = (pipeline: ChainableCommander, key: string) => unknown

async function read(
  client: Redis | Cluster,
  beginning: string,
  reads: Record<string, Read>,
): Promise<{ key: string; answer: unknown }[]> {
  // Those that go by themselves are no part of what is stored.
  const keys = (await typesOf(client, beginning)).filter(({ expires }) => !expires)
  const answers = await together(client, (pipeline) => {
    for (const { key, type } of keys) (reads[type] ?? reads.other)?.(pipeline, key)
  })
  return keys.map(({ key }, index) => ({ key, answer: answers[index] }))
}

/** How many entries the keys have that begin so. */
export const sizesOf = (client: Redis | Cluster, beginning: string) =>
  read(client, beginning, {
    hash: (pipeline, key) => pipeline.hlen(key),
    set: (pipeline, key) => pipeline.scard(key),
    zset: (pipeline, key) => pipeline.zcard(key),
    list: (pipeline, key) => pipeline.llen(key),
    other: (pipeline, key) => pipeline.exists(key),
  })

/** Everything that is stored under the keys that begin so. */
export async function dumpOf(client: Redis | Cluster, beginning: string): Promise<Record<string, unknown>> {
  const contents = await read(client, beginning, {
    hash: (pipeline, key) => pipeline.hgetall(key),
    set: (pipeline, key) => pipeline.smembers(key),
    zset: (pipeline, key) => pipeline.call('zrange', key, 0, -1, 'WITHSCORES'),
    list: (pipeline, key) => pipeline.lrange(key, 0, -1),
    other: (pipeline, key) => pipeline.get(key),
  })
  return Object.fromEntries(contents.map(({ key, answer }) => [key, answer]))
}

export interface Observed {
  /** What the client has sent, in lower case. */
  readonly commands: string[]
  /** What scripts have called on keys of the prefix. */
  readonly called: string[]
}

/** What the server is asked by this client while something is done. */
export async function observe(client: Redis, prefix: string, work: () => Promise<unknown>): Promise<Observed> {
  const observed: Observed = { commands: [], called: [] }
  // As the server calls it: on the way there its address may have changed.
  const [, address] = / addr=(\S+)/.exec(await client.client('INFO')) ?? []
  const monitor = await client.monitor()
  const done = new Promise<void>((resolve) => {
    monitor.on('monitor', (_time: string, [command = '', first = '']: string[], source: string) => {
      if (source === 'lua' && first.startsWith(`${prefix}:`)) observed.called.push(command.toLowerCase())
      if (source !== address) return
      if (first === 'the end') resolve()
      else observed.commands.push(command.toLowerCase())
    })
  })
  await work()
  await client.echo('the end')
  await done
  monitor.disconnect()
  // More may come in until it has ended.
  return structuredClone(observed)
}
