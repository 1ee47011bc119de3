/** What is in a database before it is measured. */
import type { ExecutionStore } from '@harel/store-base'
import { PAGE, type Place } from './contender.ts'
import { DUE } from './fill.ts'
import { refillOf, type Subject, subject, turns } from './subjects.ts'

export interface Stock {
  /** Lends each of the stored executions in turn, with its state changed. */
  lend<T>(use: (subject: Subject) => T): T
  /** A time at which all timers are due. */
  readonly now: number
  readonly first: Place
  /** Behind most of the executions. */
  readonly deep: Place
  /** Adds pending events: so many pages. */
  refill(pages: number): Promise<void>
}

const FIRST: Place = { cursor: null, after: '' }
/** Enough that all concurrent commits are of different executions, and more pages than one. */
const EXECUTIONS = 1024
/** Fewer where payloads are large. */
const BYTES = 64 << 20
/** DynamoDB takes no more in a commit. */
const EVENTS = 50

/** Stores executions, so many at most, with payloads of so many bytes, each with a timer that is due. */
export async function stockUp(store: ExecutionStore, bytes: number, most = EXECUTIONS): Promise<Stock> {
  const count = Math.min(most, Math.max(300, Math.floor(BYTES / bytes)))
  const subjects = Array.from({ length: count }, (_, n) => subject({ id: `execution-${n}` }, bytes))
  for (let start = 0; start < count; start += 64) {
    await Promise.all(
      subjects
        .slice(start, start + 64)
        .map(({ execution }, n) =>
          store.commit(execution, { timers: [{ action: 'schedule', path: 'due', fireAt: DUE - start - n }] }),
        ),
    )
  }
  const stock = await stockOf(store, subjects, Math.floor((count - PAGE) / PAGE))
  await stock.refill(1)
  return stock
}

/** What is stored already. @param pages how many pages lie in front of the deep place */
export async function stockOf(store: ExecutionStore, subjects: readonly Subject[], pages: number): Promise<Stock> {
  const refiller = subject({ id: `refiller-${subjects.length}` }, 0)
  return {
    lend: turns(subjects),
    now: DUE,
    first: FIRST,
    deep: await placeBehind(store, pages),
    async refill(pages) {
      for (let added = 0; added < pages * PAGE; added += EVENTS) await store.commit(...refillOf(refiller, EVENTS))
    },
  }
}

/** Reached in strides of ten pages: a cursor is good for any limit. */
async function placeBehind(store: ExecutionStore, pages: number): Promise<Place> {
  let place = FIRST
  for (let left = pages; left > 0; left -= 10) {
    const { nextCursor, items } = await store.listExecutions({ limit: Math.min(10, left) * PAGE, cursor: place.cursor })
    if (nextCursor === null) break
    place = { cursor: nextCursor, after: items.at(-1)?.id ?? '' }
  }
  return place
}
