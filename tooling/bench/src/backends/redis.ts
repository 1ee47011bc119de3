/** RedisStore beside the same writes as a bare script, BullMQ and Python harel, on one server. */
import { RedisStore } from '@harel/store-redis'
import { Redis } from 'ioredis'
import { storeContender } from '../contender.ts'
import { growthOf } from '../growth.ts'
import { versionOf } from '../machine.ts'
import { memoryOf } from '../memory.ts'
import { langgraphOnRedis } from '../peers/langgraph-redis.ts'
import { pythonStores } from '../peers/python.ts'
import { bullmq } from '../peers/queues.ts'
import { profileOf } from '../profile.ts'
import { restartOn } from '../restart.ts'
import { runnerOn } from '../runner.ts'
import { serverOf } from '../servers.ts'
import type { Backend } from '../settings.ts'
import { measuresOf, type Site } from '../site.ts'
import { byHand } from './redis-by-hand.ts'
import { fillRedis } from './redis-fill.ts'

export const site: Site = {
  backend: 'redis',
  protocol: 'tcp',

  async database() {
    const { url } = await serverOf('redis')
    return {
      url,
      async [Symbol.asyncDispose]() {
        const client = new Redis(url)
        await client.flushall()
        client.disconnect()
      },
    }
  },

  async open(url, peers) {
    const store = await RedisStore.connect(url)
    const client = new Redis(url)
    const queue = bullmq(url)
    const python = pythonStores(url)
    const saver = peers ? await langgraphOnRedis() : undefined
    return {
      store,
      contenders: [
        storeContender('RedisStore', store),
        { name: 'bare scripts', role: 'driver', does: await byHand(client) },
        ...(saver ? [saver, queue, ...python.contenders] : []),
      ],
      async [Symbol.asyncDispose]() {
        python.end()
        client.disconnect()
        await Promise.all([store.close(), queue[Symbol.asyncDispose](), saver?.[Symbol.asyncDispose]()])
      },
    }
  },

  goals: [
    { at: 1, variant: 'RedisStore', beside: 'bare scripts', target: { max: 1.3 } },
    { at: 256, variant: 'RedisStore', beside: 'bare scripts', target: { min: 0.85 } },
  ],
}

const PACKAGES = ['ioredis', 'bullmq', '@langchain/langgraph-checkpoint-redis', 'xstate']

export const redis: Backend = {
  measures: [
    ...measuresOf(site),
    profileOf(site),
    growthOf(site, fillRedis),
    memoryOf(site, 'RedisStore', fillRedis),
    ...runnerOn('redis'),
    restartOn(site),
  ],
  async describe() {
    const { url, describe } = await serverOf('redis')
    const client = new Redis(url)
    try {
      const settings = ['appendonly', 'appendfsync', 'save', 'io-threads']
      const values = await Promise.all(settings.map((name) => client.config('GET', name)))
      const told = (values as string[][]).map(([name, value]) => `${name} ${value || 'off'}`)
      return [
        `${describe()}, ${told.join(', ')}`,
        PACKAGES.map(versionOf).join(', '),
        // It is started only where peers are measured.
        'for langgraph: another such server with the same settings, and with modules for JSON and search',
      ]
    } finally {
      client.disconnect()
    }
  },
}
