/** DynamoStore beside transactions by hand, on one server; and the requests that its commits take. */
import { DynamoDBClient } from '@aws-sdk/client-dynamodb'
import { DynamoStore } from '@harel/store-dynamodb'
import { startServer, type TestServer } from '@harel-tooling/test-servers'
import { type Goal, measureCommits } from '../commits.ts'
import { versionOf } from '../machine.ts'
import { compare } from '../report.ts'
import type { Backend, Measure } from '../settings.ts'
import { BYTES, commitOf, nextEventId, type Subject, subject, turns } from '../workload.ts'
import { transactions } from './dynamodb-by-hand.ts'

/** Enough that all concurrent commits are of different executions. */
const EXECUTIONS = 512

let started: Promise<TestServer> | undefined
/** Of its own, without tables. It ends with this process. */
const server = (): Promise<TestServer> => (started ??= startServer('dynamodb', { own: true }))

const connect = (endpoint: string): DynamoDBClient =>
  new DynamoDBClient({
    endpoint,
    region: 'eu-central-1',
    credentials: { accessKeyId: 'key', secretAccessKey: 'secret' },
    // As many as are measured at once.
    requestHandler: { httpAgent: { keepAlive: true, maxSockets: 256 } },
  })

/** Executions that are stored, in turn. */
async function stored(store: DynamoStore, prefix: string): Promise<() => Subject> {
  const subjects = Array.from({ length: EXECUTIONS }, (_, n) => subject({ id: `${prefix}-${n}` }, BYTES))
  await Promise.all(subjects.map(({ execution }) => store.commit(execution)))
  return turns(subjects)
}

type Variant = 'DynamoStore' | 'transactions by hand'

const GOALS: readonly Goal<Variant>[] = [1, 16, 64, 256].map((at) => ({
  at,
  variant: 'DynamoStore',
  beside: 'transactions by hand',
  target: { max: 1.3 },
}))

/** The most requests of a commit with an event: those who wait for seqs at the same moment share one. */
const requestGoal = (atOnce: number) => ({ max: atOnce < 64 ? 2 : 1.2 })

const commit: Measure = {
  name: 'dynamodb-commit',
  async run(settings, onProgress) {
    const client = connect((await server()).url)
    const store = new DynamoStore(client)
    const byHand = connect((await server()).url)
    const by = transactions(byHand)
    const count = { requests: 0, commits: 0 }
    client.middlewareStack.add(
      (next) => (args) => {
        count.requests += 1
        return next(args)
      },
      { step: 'finalizeRequest', priority: 'low' },
    )
    try {
      const [ours, theirs] = [await stored(store, 'store'), await stored(store, 'hand')]
      const variants: Record<Variant, () => Promise<unknown>> = {
        DynamoStore: () => {
          count.commits += 1
          return store.commit(...commitOf(ours(), nextEventId()))
        },
        'transactions by hand': () => by(theirs()),
      }
      const results = []
      for (const [index, atOnce] of settings.concurrency.entries()) {
        Object.assign(count, { requests: 0, commits: 0 })
        const part = { ...settings, concurrency: [atOnce] }
        const progress = (done: number) => onProgress((index + done) / settings.concurrency.length)
        for (const result of await measureCommits('dynamodb', variants, GOALS, part, progress)) {
          const perCommit = compare(count.requests / count.commits, 'requests a commit', requestGoal(atOnce))
          const comparisons = result.variant === 'DynamoStore' ? [...result.comparisons, perCommit] : result.comparisons
          results.push({ ...result, comparisons })
        }
      }
      return results
    } finally {
      await store.close()
      client.destroy()
      byHand.destroy()
    }
  },
}

export const dynamodb: Backend = {
  measures: [commit],
  async describe() {
    const { describe } = await server()
    return [
      `${describe()}, which is not AWS: ratios and requests count, speeds do not`,
      versionOf('@aws-sdk/client-dynamodb'),
    ]
  },
}
