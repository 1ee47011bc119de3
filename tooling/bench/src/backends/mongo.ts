/** MongoStore beside the allocation and the update that write the same document, on one server. */
import { MongoStore } from '@harel/store-mongo'
import { startServer, type TestServer } from '@harel-tooling/test-servers'
import { MongoClient } from 'mongodb'
import { type Goal, measureCommits } from '../commits.ts'
import { versionOf } from '../machine.ts'
import type { Backend, Measure } from '../settings.ts'
import { BYTES, commitOf, nextEventId, type Subject, subject, turns } from '../workload.ts'
import { allocationAndUpdate } from './mongo-by-hand.ts'

/** Enough that all concurrent commits are of different executions. */
const EXECUTIONS = 256

let started: Promise<TestServer> | undefined
/** Makes every write durable before it is acknowledged. It ends with this process. */
const server = (): Promise<TestServer> => (started ??= startServer('mongo', { own: true }))

/** Executions that are stored, in turn. */
async function stored(store: MongoStore): Promise<() => Subject> {
  const subjects = Array.from({ length: EXECUTIONS }, (_, n) => subject({ id: `execution-${n}` }, BYTES))
  await Promise.all(subjects.map(({ execution }) => store.commit(execution)))
  return turns(subjects)
}

type Variant = 'MongoStore' | 'allocation and pipeline' | 'allocation and $push'

const GOALS: readonly Goal<Variant>[] = [
  { at: 1, variant: 'MongoStore', beside: 'allocation and pipeline', target: { max: 1.3 } },
  { at: 1, variant: 'MongoStore', beside: 'allocation and $push', target: { max: 1.3 } },
]

const commit: Measure = {
  name: 'mongo-commit',
  run: async (settings, onProgress) => {
    const client = new MongoClient((await server()).url)
    try {
      const db = client.db('bench')
      await db.dropDatabase()
      const [store, piped, pushed] = ['store', 'piped', 'pushed'].map((prefix) => new MongoStore(db, { prefix }))
      if (store === undefined || piped === undefined || pushed === undefined) throw new Error('no stores')
      const [ours, theirs, others] = [await stored(store), await stored(piped), await stored(pushed)]
      const pipeline = allocationAndUpdate(db, 'piped', 'pipeline')
      const push = allocationAndUpdate(db, 'pushed', '$push')
      const variants: Record<Variant, () => Promise<unknown>> = {
        MongoStore: () => store.commit(...commitOf(ours(), nextEventId())),
        'allocation and pipeline': () => pipeline(theirs()),
        'allocation and $push': () => push(others()),
      }
      return await measureCommits('mongo', variants, GOALS, settings, onProgress)
    } finally {
      await client.close()
    }
  },
}

export const mongo: Backend = {
  measures: [commit],
  async describe() {
    const { describe } = await server()
    return [`${describe()}, writes wait for a majority and the journal`, versionOf('mongodb')]
  },
}
