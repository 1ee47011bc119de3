/** PostgresStore beside prepared calls by hand, LangGraph's checkpoints and queues of jobs, on one server. */
import { setTimeout as sleep } from 'node:timers/promises'
import { PostgresStore } from '@harel/store-postgres'
import { PostgresSaver } from '@langchain/langgraph-checkpoint-postgres'
import client from 'postgres'
import { storeContender } from '../contender.ts'
import { growthOf } from '../growth.ts'
import { versionOf } from '../machine.ts'
import { memoryOf } from '../memory.ts'
import { langgraph } from '../peers/langgraph.ts'
import { pythonStores } from '../peers/python.ts'
import { graphileWorker, pgBoss } from '../peers/queues.ts'
import { profileOf } from '../profile.ts'
import { restartOn } from '../restart.ts'
import { runnerOn } from '../runner.ts'
import { serverOf } from '../servers.ts'
import type { Backend } from '../settings.ts'
import { measuresOf, type Site } from '../site.ts'
import { batchesByHand, byHand } from './postgres-by-hand.ts'
import { FUNCTIONS } from './postgres-by-hand-sql.ts'
import { fillPostgres } from './postgres-fill.ts'

const POOL = 10

let databases = 0

/** Each has a pool of ten. */
async function openPeers(url: string) {
  const saver = PostgresSaver.fromConnString(url)
  await saver.setup()
  const queues = [await pgBoss(url), await graphileWorker(url)]
  const python = pythonStores(url)
  return {
    contenders: [langgraph(saver), ...queues, ...python.contenders],
    async [Symbol.asyncDispose]() {
      python.end()
      await saver.end()
      for (const queue of queues) await queue[Symbol.asyncDispose]()
    },
  }
}

export const site: Site = {
  backend: 'postgres',
  protocol: 'tcp',

  async database() {
    const { url } = await serverOf('postgres')
    const sql = client(url, { max: 1 })
    const name = `harel_bench_${process.pid}_${databases++}`
    await sql.unsafe(`CREATE DATABASE ${name}`)
    const database = new URL(url)
    database.pathname = `/${name}`
    return {
      url: database.href,
      async [Symbol.asyncDispose]() {
        // Some say that they have gone while they are still going.
        for (let waited = 0; waited < 50; waited++) {
          const [others] = await sql`SELECT count(*)::int AS count FROM pg_stat_activity WHERE datname = ${name}`
          if (others?.count === 0) break
          await sleep(100)
        }
        await sql.unsafe(`DROP DATABASE ${name} WITH (FORCE)`)
        await sql.end()
      },
    }
  },

  async open(url, peers) {
    const store = await PostgresStore.connect(url)
    const ungrouped = await PostgresStore.connect(url, { groupCommit: false })
    const sql = client(url, { max: POOL, onnotice: () => {} })
    const [there] = await sql`SELECT to_regproc('by_hand') IS NOT NULL AS there`
    if (there?.there !== true) await sql.unsafe(FUNCTIONS)
    const others = peers ? await openPeers(url) : undefined
    return {
      store,
      contenders: [
        storeContender('PostgresStore', store),
        storeContender('PostgresStore, one by one', ungrouped),
        { name: 'calls by hand', role: 'driver', does: byHand(sql) },
        { name: 'batches by hand', role: 'driver', does: batchesByHand(sql), from: 2 },
        ...(others?.contenders ?? []),
      ],
      async [Symbol.asyncDispose]() {
        await Promise.all([store.close(), ungrouped.close(), sql.end(), others?.[Symbol.asyncDispose]()])
      },
    }
  },

  goals: [
    { at: 1, variant: 'PostgresStore', beside: 'calls by hand', target: { max: 1.25 } },
    { at: 256, variant: 'PostgresStore', beside: 'calls by hand', target: { min: 3.5 } },
    { at: 256, variant: 'PostgresStore', beside: 'batches by hand', target: { min: 0.85 } },
  ],
}

export const postgres: Backend = {
  measures: [
    ...measuresOf(site),
    profileOf(site),
    growthOf(site, fillPostgres),
    memoryOf(site, 'PostgresStore', fillPostgres),
    ...runnerOn('postgres'),
    restartOn(site),
  ],
  async describe() {
    const { url, describe } = await serverOf('postgres')
    const sql = client(url, { max: 1 })
    try {
      const settings = ['fsync', 'synchronous_commit', 'full_page_writes', 'shared_buffers']
      const rows = await sql`SELECT name, current_setting(name) AS value FROM unnest(${settings}::text[]) name`
      const peers = ['@langchain/langgraph-checkpoint-postgres', 'pg-boss', 'graphile-worker']
      const versions = ['postgres', ...peers, 'xstate'].map(versionOf)
      return [`${describe()}, ${rows.map(({ name, value }) => `${name} ${value}`).join(', ')}`, versions.join(', ')]
    } finally {
      await sql.end()
    }
  },
}
