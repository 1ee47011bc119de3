/** PostgresStore beside prepared calls by hand and LangGraph's checkpoints, on one server. */
import { PostgresStore } from '@harel/store-postgres'
import { startServer, type TestServer } from '@harel-tooling/test-servers'
import { PostgresSaver } from '@langchain/langgraph-checkpoint-postgres'
import client from 'postgres'
import { type Goal, measureCommits } from '../commits.ts'
import { stepsOf } from '../langgraph.ts'
import { versionOf } from '../machine.ts'
import type { Backend, Measure } from '../settings.ts'
import { BYTES, commitOf, nextEventId, type Subject, subject, turns } from '../workload.ts'
import { batchedCalls, FUNCTIONS, singleCalls } from './postgres-by-hand.ts'

/** Enough that all concurrent commits are of different executions. */
const EXECUTIONS = 1024
const POOL = 10

let started: Promise<TestServer> | undefined
/** It ends with this process. */
const server = (): Promise<TestServer> => (started ??= startServer('postgres'))

/** Runs `work` in a new database. */
async function inDatabase<T>(work: (url: string) => Promise<T>): Promise<T> {
  const { url } = await server()
  const sql = client(url, { max: 1 })
  const name = `harel_bench_${process.pid}`
  await sql.unsafe(`CREATE DATABASE ${name}`)
  try {
    const database = new URL(url)
    database.pathname = `/${name}`
    return await work(database.href)
  } finally {
    await sql.unsafe(`DROP DATABASE ${name} WITH (FORCE)`)
    await sql.end()
  }
}

/** Executions that are stored, in turn. */
async function stored(store: PostgresStore, prefix: string): Promise<() => Subject> {
  const subjects = Array.from({ length: EXECUTIONS }, (_, n) => subject({ id: `${prefix}-${n}` }, BYTES))
  await Promise.all(subjects.map(({ execution }) => store.commit(execution)))
  return turns(subjects)
}

type Variant = 'PostgresStore' | 'PostgresStore, one by one' | 'single calls' | 'batches by hand' | 'langgraph'

const GOALS: readonly Goal<Variant>[] = [
  { at: 1, variant: 'PostgresStore', beside: 'single calls', target: { max: 1.25 } },
  { at: 256, variant: 'PostgresStore', beside: 'single calls', target: { min: 3.5 } },
  { at: 256, variant: 'PostgresStore', beside: 'batches by hand', target: { min: 0.85 } },
]

const commit: Measure = {
  name: 'postgres-commit',
  run: (settings, onProgress) =>
    inDatabase(async (url) => {
      await using store = await PostgresStore.connect(url)
      await using ungrouped = await PostgresStore.connect(url, { groupCommit: false })
      const sql = client(url, { max: POOL, onnotice: () => {} })
      // Its pool is of ten, too.
      const saver = PostgresSaver.fromConnString(url)
      try {
        await Promise.all([sql.unsafe(FUNCTIONS), saver.setup()])
        const [call, batch] = [singleCalls(sql), batchedCalls(sql)]
        const [ours, ourOnes, ones, batched] = [
          await stored(store, 'grouped'),
          await stored(store, 'ungrouped'),
          await stored(store, 'single'),
          await stored(store, 'batched'),
        ]
        const variants: Record<Variant, () => Promise<unknown>> = {
          PostgresStore: () => store.commit(...commitOf(ours(), nextEventId())),
          'PostgresStore, one by one': () => ungrouped.commit(...commitOf(ourOnes(), nextEventId())),
          'single calls': () => call(ones()),
          'batches by hand': () => batch(batched()),
          langgraph: stepsOf(saver),
        }
        return await measureCommits('postgres', variants, GOALS, settings, onProgress)
      } finally {
        await Promise.all([sql.end(), saver.end()])
      }
    }),
}

export const postgres: Backend = {
  measures: [commit],
  async describe() {
    const { url, describe } = await server()
    const sql = client(url, { max: 1 })
    try {
      const settings = ['fsync', 'synchronous_commit', 'full_page_writes', 'shared_buffers']
      const rows = await sql`SELECT name, current_setting(name) AS value FROM unnest(${settings}::text[]) name`
      const versions = ['postgres', '@langchain/langgraph-checkpoint-postgres'].map(versionOf)
      return [`${describe()}, ${rows.map(({ name, value }) => `${name} ${value}`).join(', ')}`, versions.join(', ')]
    } finally {
      await sql.end()
    }
  },
}
