/** Listings with every kind of filter in a large database: a page far behind beside the first. */
import { join } from 'node:path'
import type { ListQuery, SyncExecutionStore } from '@harel/store-base'
import { SqliteStore } from '@harel/store-sqlite'
import { PAGE } from '../contender.ts'
import { measureInTurns, timesLonger } from '../measure.ts'
import { compare, type Result, resultOf } from '../results.ts'
import type { Measure } from '../settings.ts'
import { type Filled, fill, inFolder } from './sqlite-database.ts'

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

async function measureListings({ path }: Filled, rows: number, seconds: number, onProgress: (part: number) => void) {
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
      const task = {
        backend: 'sqlite',
        workload: `list ${name}, ${rows} stored`,
        concurrency: 1,
        role: 'store',
      } as const
      const ratio = compare(timesLonger(timings.deep, timings.first), '× the time of page 1', { max: 2 })
      const deep = resultOf({ ...task, variant: `page ${page}` }, timings.deep)
      results.push(resultOf({ ...task, variant: 'first page' }, timings.first), { ...deep, comparisons: [ratio] })
    }
  } finally {
    store.close()
  }
  return results
}

export const listings: Measure = {
  name: 'sqlite-listings',
  workload: 'listings',
  run: ({ dir, seconds, rows }, onProgress) =>
    inFolder(dir, async (folder) => {
      const filled = fill(join(folder, 'bench.db'), rows, (part) => onProgress(part / 2))
      return await measureListings(filled, rows, seconds, (part) => onProgress((1 + part) / 2))
    }),
}
