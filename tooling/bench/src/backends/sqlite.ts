/** SqliteStore and AsyncSqliteStore beside better-sqlite3 by hand, each commit durable (synchronous FULL). */
import { join } from 'node:path'
import type { ListQuery, SyncExecutionStore } from '@harel/store-base'
import { AsyncSqliteStore, SqliteStore } from '@harel/store-sqlite'
import Database from 'better-sqlite3'
import { versionOf } from '../machine.ts'
import { measureInTurns, type Timing, timesLonger } from '../measure.ts'
import { compare, type Result, resultsOf } from '../report.ts'
import type { Backend, Measure } from '../settings.ts'
import { BYTES, commitOf, nextEventId, turns } from '../workload.ts'
import { byHand, rowOf, workerByHand } from './sqlite-by-hand.ts'
import { type Filled, fill, inFolder } from './sqlite-database.ts'

const PAYLOAD = `${BYTES} B`
/** Of the small database: enough that all concurrent commits are of different executions. */
const FEW = 4096
const CONCURRENCY = 256

/** The store and the statements by hand, one by one on one connection, which is as warm for both. */
async function oneByOne({ path, subjects }: Filled, seconds: number, onProgress: (part: number) => void) {
  const db = new Database(path)
  const store = new SqliteStore(db)
  const write = byHand(db)
  const next = turns(subjects)
  try {
    return await measureInTurns(
      {
        SqliteStore: { run: () => store.commit(...commitOf(next(), nextEventId())) },
        'by hand': {
          run: () => {
            const subject = next()
            const seqs = write([rowOf(subject, nextEventId())])
            subject.execution.version += 1
            return seqs
          },
        },
      },
      { seconds, onProgress },
    )
  } finally {
    store.close()
    db.close()
  }
}

const judgedByHand = (timings: Record<'SqliteStore' | 'by hand', Timing>, workload: string): Result[] => {
  const ratio = compare(timesLonger(timings.SqliteStore, timings['by hand']), '× the time by hand', { max: 1.3 })
  return resultsOf('sqlite', workload, timings, { comparisons: { SqliteStore: [ratio] } })
}

const commit: Measure = {
  name: 'sqlite-commit',
  run: ({ dir, seconds }, onProgress) =>
    inFolder(dir, async (folder) => {
      const timings = await oneByOne(fill(join(folder, 'bench.db'), FEW), seconds, onProgress)
      return judgedByHand(timings, `commit, ${PAYLOAD}`)
    }),
}

const group: Measure = {
  name: 'sqlite-group',
  run: ({ dir, seconds }, onProgress) =>
    inFolder(dir, async (folder) => {
      // A file for each, so that nobody pays for the checkpoints of another.
      const database = (name: string) => {
        const { path, subjects } = fill(join(folder, name), FEW)
        return { path, next: turns(subjects) }
      }
      const [oneDb, groupedDb, handDb] = [database('one.db'), database('grouped.db'), database('hand.db')]
      const sync = SqliteStore.open(oneDb.path)
      const async = await AsyncSqliteStore.open(groupedDb.path)
      const worker = workerByHand(handDb.path)
      const commit = () => async.commit(...commitOf(groupedDb.next(), nextEventId()))
      const commitByHand = async () => {
        const subject = handDb.next()
        const seq = await worker.commit(rowOf(subject, nextEventId()))
        subject.execution.version += 1
        return [seq]
      }
      try {
        const concurrency = { AsyncSqliteStore: CONCURRENCY, 'worker by hand': CONCURRENCY }
        const timings = await measureInTurns(
          {
            SqliteStore: { run: () => sync.commit(...commitOf(oneDb.next(), nextEventId())) },
            'AsyncSqliteStore alone': { run: commit, concurrency: 1 },
            AsyncSqliteStore: { run: commit, concurrency: CONCURRENCY },
            'worker by hand': { run: commitByHand, concurrency: CONCURRENCY },
          },
          { seconds, turnMs: 100, onProgress },
        )
        const { SqliteStore: one, AsyncSqliteStore: grouped, 'AsyncSqliteStore alone': alone } = timings
        const comparisons = {
          AsyncSqliteStore: [
            compare(timesLonger(one, grouped), '× the speed of SqliteStore', { min: 5 }),
            compare(timesLonger(timings['worker by hand'], grouped), '× the speed by hand', { min: 0.85 }),
          ],
          'AsyncSqliteStore alone': [compare(alone.p50Ms - one.p50Ms, 'ms more than SqliteStore', { max: 0.2 })],
        }
        return resultsOf('sqlite', `commit, ${PAYLOAD}`, timings, { concurrency, comparisons })
      } finally {
        sync.close()
        await async.close()
        await worker.close()
      }
    }),
}

const LISTINGS: Readonly<Record<string, ListQuery>> = {
  all: {},
  'one status': { status: 'DONE' },
  'rare status': { status: 'FAILED' },
  'three statuses': { status: ['RUNNING', 'PENDING', 'FAILED'] },
  definition: { definitionId: 'order' },
  roots: { rootsOnly: true },
  'status of a definition': { definitionId: 'order', status: 'DONE' },
  'statuses of root orders': { definitionId: 'order', status: ['RUNNING', 'DONE'], rootsOnly: true },
}
const PAGE = 100
const DEEP = 10_000

interface Place {
  readonly page: number
  readonly cursor: string | null
}

/**
 * Page 10,000, or one of the last full ones where fewer executions match. It is reached by cursors, in strides of ten
 * pages: a cursor is good for any limit.
 */
function deepPlace(store: SyncExecutionStore, filter: ListQuery): Place {
  let before: Place = { page: 1, cursor: null }
  let place = before
  while (place.page < DEEP) {
    const pages = Math.min(10, DEEP - place.page)
    const { nextCursor } = store.listExecutions({ ...filter, limit: pages * PAGE, cursor: place.cursor })
    if (nextCursor === null) return before
    before = place
    place = { page: place.page + pages, cursor: nextCursor }
  }
  return place
}

async function listings({ path }: Filled, rows: number, seconds: number, onProgress: (part: number) => void) {
  const store = SqliteStore.open(path)
  const filters = Object.entries(LISTINGS)
  const results: Result[] = []
  try {
    for (const [index, [name, filter]] of filters.entries()) {
      const { page, cursor } = deepPlace(store, filter)
      const list = (from: string | null) => ({
        run: () => store.listExecutions({ ...filter, limit: PAGE, cursor: from }),
      })
      const timings = await measureInTurns(
        { first: list(null), deep: list(cursor) },
        {
          seconds: seconds / filters.length,
          turnMs: 20,
          onProgress: (part) => onProgress((index + part) / filters.length),
        },
      )
      const deep = `page ${page}`
      const ratio = compare(timesLonger(timings.deep, timings.first), '× the time of page 1', { max: 2 })
      const variants = { 'first page': timings.first, [deep]: timings.deep }
      const comparisons = { [deep]: [ratio] }
      results.push(...resultsOf('sqlite', `list ${name}, ${rows} stored`, variants, { comparisons }))
    }
  } finally {
    store.close()
  }
  return results
}

const large: Measure = {
  name: 'sqlite-large',
  run: ({ dir, seconds, rows }, onProgress) =>
    inFolder(dir, async (folder) => {
      const third = (done: number) => (part: number) => onProgress((done + part) / 3)
      const filled = fill(join(folder, 'bench.db'), rows, third(0))
      const commits = judgedByHand(await oneByOne(filled, seconds, third(1)), `commit, ${PAYLOAD}, ${rows} stored`)
      return [...commits, ...(await listings(filled, rows, seconds, third(2)))]
    }),
}

export const sqlite: Backend = {
  measures: [commit, group, large],
  describe: (dir) =>
    inFolder(dir, async (folder) => {
      const db = new Database(fill(join(folder, 'bench.db'), 1).path)
      new SqliteStore(db).close()
      const sqlite = db.prepare('SELECT sqlite_version()').pluck().get()
      const level = ['OFF', 'NORMAL', 'FULL', 'EXTRA'][Number(db.pragma('synchronous', { simple: true }))]
      const journal = String(db.pragma('journal_mode', { simple: true })).toUpperCase()
      db.close()
      return [`${versionOf('better-sqlite3')}, SQLite ${sqlite}, journal ${journal}, synchronous ${level} for all`]
    }),
}
