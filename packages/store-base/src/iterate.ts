import type { ExecutionStore, ListQuery } from './protocol.js'
import type { DueTimer, ExecutionSummary, OutboxEntry, SpawnEntry } from './records.js'

const PAGE = 100

async function* sweep<Entry, Position>(
  read: (page: { limit: number; after?: Position }) => Promise<Entry[]>,
  positionOf: (entry: Entry) => Position,
  limit: number,
): AsyncGenerator<Entry, void, undefined> {
  let page = await read({ limit })
  for (;;) {
    yield* page
    const last = page.at(-1)
    if (last === undefined || page.length < limit) return
    page = await read({ limit, after: positionOf(last) })
  }
}

/** One sweep over the undelivered events, in constant memory. Entries acknowledged meanwhile are no hindrance. */
export const outbox = (store: ExecutionStore, pageSize = PAGE): AsyncGenerator<OutboxEntry, void, undefined> =>
  sweep<OutboxEntry, number>(
    (page) => store.pendingOutbox(page),
    (entry) => entry.seq,
    pageSize,
  )

/** One sweep over the children still to be created, in constant memory. */
export const spawns = (store: ExecutionStore, pageSize = PAGE): AsyncGenerator<SpawnEntry, void, undefined> =>
  sweep<SpawnEntry, number>(
    (page) => store.pendingSpawns(page),
    (entry) => entry.seq,
    pageSize,
  )

/** One sweep over the timers that are due at `now` (epoch seconds), in constant memory. */
export const timers = (
  store: ExecutionStore,
  now: number,
  pageSize = PAGE,
): AsyncGenerator<DueTimer, void, undefined> =>
  sweep<DueTimer, DueTimer>(
    (page) => store.dueTimers(now, page),
    (timer) => timer,
    pageSize,
  )

/** All summaries that pass the filters, in constant memory. `query.limit` is the size of a page. */
export async function* executions(
  store: ExecutionStore,
  query: ListQuery = {},
): AsyncGenerator<ExecutionSummary, void, undefined> {
  let cursor = query.cursor ?? null
  do {
    const page = await store.listExecutions({ ...query, cursor })
    yield* page.items
    cursor = page.nextCursor
  } while (cursor !== null)
}
