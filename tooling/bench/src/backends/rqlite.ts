/** RqliteStore beside requests by hand, on one node. */
import { RqliteStore } from '@harel/store-rqlite'
import { startServer, type TestServer } from '@harel-tooling/test-servers'
import { type Goal, measureCommits } from '../commits.ts'
import { measureInTurns, timesLonger } from '../measure.ts'
import { compare, resultsOf } from '../report.ts'
import type { Backend, Measure } from '../settings.ts'
import { BYTES, commitOf, nextEventId, type Subject, subject, turns } from '../workload.ts'
import { batchedRequests, singleRequests } from './rqlite-by-hand.ts'

/** Enough that all concurrent commits are of different executions. */
const EXECUTIONS = 1024

let started: Promise<TestServer> | undefined
/** It ends with this process. */
const server = (): Promise<TestServer> => (started ??= startServer('rqlite'))

/** Executions that are stored, in turn. */
async function stored(store: RqliteStore, prefix: string): Promise<() => Subject> {
  const subjects = Array.from({ length: EXECUTIONS }, (_, n) => subject({ id: `${prefix}-${n}` }, BYTES))
  await Promise.all(subjects.map(({ execution }) => store.commit(execution)))
  return turns(subjects)
}

/** What commits the next execution. */
const commits = (store: RqliteStore, next: () => Subject) => () => store.commit(...commitOf(next(), nextEventId()))

type Variant = 'RqliteStore' | 'RqliteStore, one by one' | 'single requests' | 'batches by hand'

const GOALS: readonly Goal<Variant>[] = [
  { at: 1, variant: 'RqliteStore', beside: 'single requests', target: { max: 1.3 } },
  { at: 256, variant: 'RqliteStore', beside: 'batches by hand', target: { min: 0.85 } },
]

const commit: Measure = {
  name: 'rqlite-commit',
  async run(settings, onProgress) {
    const { url } = await server()
    await using store = await RqliteStore.connect(url)
    await using ungrouped = await RqliteStore.connect(url, { groupCommit: false })
    const [single, batched] = [singleRequests(url), batchedRequests(url)]
    const [ones, batches] = [await stored(store, 'single'), await stored(store, 'batched')]
    const variants: Record<Variant, () => Promise<unknown>> = {
      RqliteStore: commits(store, await stored(store, 'grouped')),
      'RqliteStore, one by one': commits(ungrouped, await stored(store, 'ungrouped')),
      'single requests': () => single(ones()),
      'batches by hand': () => batched(batches()),
    }
    return await measureCommits('rqlite', variants, GOALS, settings, onProgress)
  },
}

/** What sharing a request brings. */
const group: Measure = {
  name: 'rqlite-group',
  async run({ seconds }, onProgress) {
    const { url } = await server()
    await using store = await RqliteStore.connect(url)
    const [run, single] = [commits(store, await stored(store, 'shared')), singleRequests(url)]
    const ones = await stored(store, 'alone')
    const concurrency = { 'at 64': 64, 'single requests': 64, 'at 256': 256, 'one at a time': 1 }
    const timings = await measureInTurns(
      {
        'at 64': { run, concurrency: concurrency['at 64'] },
        'single requests': { run: () => single(ones()), concurrency: concurrency['single requests'] },
        'at 256': { run, concurrency: concurrency['at 256'] },
        'one at a time': { run, concurrency: concurrency['one at a time'] },
      },
      { seconds, turnMs: 100, onProgress },
    )
    const comparisons = {
      'at 64': [
        compare(timesLonger(timings['single requests'], timings['at 64']), '× the speed of single requests', {
          min: 3,
        }),
      ],
      'at 256': [
        compare(timesLonger(timings['one at a time'], timings['at 256']), '× the speed one at a time', { min: 8 }),
      ],
    }
    return resultsOf('rqlite', `commit, ${BYTES} B, shared`, timings, { concurrency, comparisons })
  },
}

export const rqlite: Backend = {
  measures: [commit, group],
  async describe() {
    const { url, describe } = await server()
    const status = (await (await fetch(`${url}/status`)).json()) as { store: { sqlite3: { version: string } } }
    return [`${describe()}, SQLite ${status.store.sqlite3.version}, one node, each write synced in its Raft log`]
  },
}
