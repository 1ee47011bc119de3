/** RedisStore beside the same writes as a bare script, BullMQ and Python harel, on one server. */
import { RedisStore } from '@harel/store-redis'
import { startServer, type TestServer } from '@harel-tooling/test-servers'
import { Queue } from 'bullmq'
import { Redis } from 'ioredis'
import { type Goal, measureCommits } from '../commits.ts'
import { versionOf } from '../machine.ts'
import type { Backend, Measure } from '../settings.ts'
import { BYTES, commitOf, nextEventId, type Subject, subject, turns, wireEvent } from '../workload.ts'
import { bareScript } from './redis-by-hand.ts'
import { pythonCommits } from './redis-python.ts'

/** Enough that all concurrent commits are of different executions. */
const EXECUTIONS = 1024

let started: Promise<TestServer> | undefined
/** Makes every write durable before it is acknowledged. It ends with this process. */
const server = (): Promise<TestServer> => (started ??= startServer('redis', { own: true }))

const subjects = (): (() => Subject) =>
  turns(Array.from({ length: EXECUTIONS }, (_, n) => subject({ id: `execution-${n}` }, BYTES)))

type Variant = 'RedisStore' | 'bare script' | 'BullMQ add'

const GOALS: readonly Goal<Variant>[] = [
  { at: 1, variant: 'RedisStore', beside: 'bare script', target: { max: 1.3 } },
  { at: 256, variant: 'RedisStore', beside: 'bare script', target: { min: 0.85 } },
]

const commit: Measure = {
  name: 'redis-commit',
  run: async (settings, onProgress) => {
    const { url } = await server()
    await using store = await RedisStore.connect(url, { prefix: 'store' })
    const client = new Redis(url)
    const queue = new Queue('bench', { connection: { url } })
    try {
      const write = await bareScript(client, 'bare')
      const [ours, bare] = [subjects(), subjects()]
      const variants: Record<Variant, () => Promise<unknown>> = {
        RedisStore: () => store.commit(...commitOf(ours(), nextEventId())),
        'bare script': () => write(bare()),
        // A job for the event alone: BullMQ keeps no state.
        'BullMQ add': () => queue.add('event', wireEvent(nextEventId())),
      }
      return await measureCommits('redis', variants, GOALS, settings, onProgress)
    } finally {
      await queue.close()
      client.disconnect()
    }
  },
}

const python: Measure = {
  name: 'redis-python',
  run: async (settings, onProgress) => {
    const { url } = await server()
    await using store = await RedisStore.connect(url, { prefix: 'beside_python' })
    const commits = pythonCommits(url, 'python')
    try {
      const [ours, theirs] = [subjects(), subjects()]
      const variants = {
        RedisStore: () => store.commit(...commitOf(ours(), nextEventId())),
        'Python harel': () => commits.commit(theirs()),
      }
      return await measureCommits('redis', variants, [], settings, onProgress)
    } finally {
      commits.end()
    }
  },
}

export const redis: Backend = {
  measures: [commit, python],
  async describe() {
    const { url, describe } = await server()
    const client = new Redis(url)
    try {
      const settings = ['appendonly', 'appendfsync', 'save', 'io-threads']
      const values = await Promise.all(settings.map((name) => client.config('GET', name)))
      const told = (values as string[][]).map(([name, value]) => `${name} ${value || 'off'}`)
      return [`${describe()}, ${told.join(', ')}`, ['ioredis', 'bullmq'].map(versionOf).join(', ')]
    } finally {
      client.disconnect()
    }
  },
}
