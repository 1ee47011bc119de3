import assert from 'node:assert/strict'
import {
  type CommitChanges,
  type DueTimer,
  type Emit,
  type Execution,
  type ExecutionStore,
  type ExecutionSummary,
  type HarelEvent,
  type JsonObject,
  type ListQuery,
  newEvent,
  newExecution,
  type OutboxEntry,
  type SpawnEntry,
  StoreConflict,
  type StoreError,
} from '@harel/store-base'
import type { CheckContext } from './contract.js'

/** Later than every timer of a check. */
export const FAR = 1e18

/** A new execution whose id and definition stand under `ns`. */
export const execution = (ns: string, name = 'e', fields: Partial<Execution> = {}): Execution =>
  newExecution({ id: ns + name, definitionId: `${ns}d`, ...fields })

/** An event whose id stands under `ns`; the queues of a check are told apart by it. */
export const event = (ns: string, name: string, data: JsonObject = {}): HarelEvent =>
  newEvent({ id: ns + name, kind: name, data })

export const emit = (ns: string, target: string | null, name: string, data: JsonObject = {}): Emit => ({
  targetId: target === null ? null : ns + target,
  event: event(ns, name, data),
})

/** One of everything that a commit can write, all of it under `ns` and named after the execution. */
export const everything = (ns: string, name: string): CommitChanges => ({
  emits: [emit(ns, name, `${name}-tick`)],
  processedEventId: `${ns}${name}-ev`,
  timers: [{ action: 'schedule', path: 'P', fireAt: 1 }],
  spawns: [{ childId: `${ns}${name}-child`, rootPath: '', context: {} }],
  trace: { event: 'Tick' },
  step: { cause: 'event', fromStatus: 'RUNNING', toStatus: 'RUNNING', eventKind: 'Tick' },
})

/** Stores a new execution and returns a copy that shares nothing with the store. */
export async function stored(
  store: ExecutionStore,
  ns: string,
  name = 'e',
  fields: Partial<Execution> = {},
  changes?: CommitChanges,
): Promise<Execution> {
  const created = execution(ns, name, fields)
  await store.commit(created, changes)
  return structuredClone(created)
}

/** A copy of the stored execution, which must exist. */
export async function loaded(store: ExecutionStore, id: string): Promise<Execution> {
  const found = await store.load(id)
  assert(found !== undefined, `${id} is not stored`)
  return structuredClone(found)
}

/** The error with which a call rejects; a call that throws instead of rejecting fails. */
export async function rejection<E extends StoreError>(
  call: () => Promise<unknown>,
  type: abstract new (...args: never[]) => E,
  what = 'the call',
): Promise<E> {
  let pending: Promise<unknown>
  try {
    pending = call()
  } catch (error) {
    assert.fail(`${what} must reject; it throws ${String(error)}`)
  }
  let outcome: unknown
  try {
    outcome = await pending
  } catch (error) {
    assert(error instanceof type, `${what} must reject with ${type.name}; it rejects with ${String(error)}`)
    return error
  }
  assert.fail(`${what} must reject with ${type.name}; it returns ${JSON.stringify(outcome)?.slice(0, 200)}`)
}

/** Asserts that a commit is refused because of the version. */
export async function conflict(call: () => Promise<unknown>, id: string, expected: number, found: number | null) {
  const error = await rejection(call, StoreConflict)
  assert.deepEqual(
    { executionId: error.executionId, expected: error.expected, found: error.found },
    { executionId: id, expected, found },
  )
}

/** The undelivered events of the check, in the order of the queue. */
export const outboxOf = async (store: ExecutionStore, ns: string): Promise<OutboxEntry[]> =>
  (await store.pendingOutbox()).filter(({ event }) => event.id.startsWith(ns))

/** The spawns of the check, in the order of the queue. */
export const spawnsOf = async (store: ExecutionStore, ns: string): Promise<SpawnEntry[]> =>
  (await store.pendingSpawns()).filter(({ parentId }) => parentId.startsWith(ns))

/** The timers of the check that are due, in their order. */
export const timersOf = async (store: ExecutionStore, ns: string, now = FAR): Promise<DueTimer[]> =>
  (await store.dueTimers(now)).filter(({ executionId }) => executionId.startsWith(ns))

/** More entries than any queue or listing should have here: a sweep that yields more goes round in circles. */
const MOST_ENTRIES = 100_000

/** The entries of a sweep. */
export async function all<Entry>(sweep: AsyncIterable<Entry>): Promise<Entry[]> {
  const entries: Entry[] = []
  for await (const entry of sweep) {
    entries.push(entry)
    assert(entries.length <= MOST_ENTRIES, `the sweep does not end within ${MOST_ENTRIES} entries`)
  }
  return entries
}

/** More pages than any check needs: a listing that goes on longer never ends. */
const MOST_PAGES = 999

/** The pages of a listing, each at most `limit` long. */
export async function pagesOf(store: ExecutionStore, query: ListQuery): Promise<ExecutionSummary[][]> {
  const pages: ExecutionSummary[][] = []
  let cursor: string | null = null
  do {
    assert(pages.length < MOST_PAGES, `the listing does not end within ${MOST_PAGES} pages`)
    const page = await store.listExecutions({ ...query, cursor })
    assert(page.items.length <= (query.limit ?? 100), `a page holds ${page.items.length} items`)
    pages.push(page.items)
    cursor = page.nextCursor
  } while (cursor !== null)
  return pages
}

/** The ids of a listing, without `ns`, in their order. */
export const listed = async (store: ExecutionStore, ns: string, query: ListQuery): Promise<string[]> =>
  (await pagesOf(store, query)).flat().map(({ id }) => id.slice(ns.length))

/**
 * Everything that can be observed under `ns`: executions with their traces and marks, queues, timers, and the numbers
 * of rows where a probe tells them. Two of these are equal when nothing was written in between.
 */
export async function stateOf(
  { store, ns, probes }: Pick<CheckContext, 'store' | 'ns' | 'probes'>,
  ids: readonly string[],
  eventIds: readonly string[] = [],
) {
  const executions: Record<string, unknown> = {}
  for (const id of new Set([...ids, ...(await store.idsWithPrefix(ns))])) {
    const marks: string[] = []
    for (const eventId of eventIds) if (await store.isProcessed(id, eventId)) marks.push(eventId)
    executions[id] = { execution: structuredClone(await store.load(id)), trace: await store.readTrace(id), marks }
  }
  return {
    executions,
    outbox: await outboxOf(store, ns),
    spawns: await spawnsOf(store, ns),
    timers: await timersOf(store, ns),
    rows: await probes.rows?.(),
  }
}

/** Ascending, without duplicates. */
export function assertAscending(seqs: readonly number[]): void {
  for (const [index, seq] of seqs.entries()) {
    assert(Number.isSafeInteger(seq), `${seq} is no seq`)
    assert(index === 0 || seq > (seqs[index - 1] ?? seq), `seqs must ascend: ${seqs.join(', ')}`)
  }
}

/** The order of texts by their UTF-8 bytes. */
export const byBytes = (a: string, b: string): number => Buffer.compare(Buffer.from(a), Buffer.from(b))

const PART = 250

/**
 * Removes what stands under `ns`, so that a check leaves a database as it was: the queues are read whole by every
 * check that comes after. What cannot be read any more is left.
 */
export async function cleanUp(store: ExecutionStore, ns: string): Promise<void> {
  const events = await outboxOf(store, ns)
  const children = await spawnsOf(store, ns)
  // In parts, for thousands at once may take a small server longer than it has.
  while (events.length > 0) await store.ackOutbox(events.splice(0, PART).map(({ seq }) => seq))
  while (children.length > 0) await store.ackSpawn(children.splice(0, PART).map(({ seq }) => seq))
  for (const { executionId, path, fireAt } of await timersOf(store, ns)) {
    await store.deleteTimer(executionId, path, fireAt)
  }
  await Promise.allSettled(
    (await store.idsWithPrefix(ns)).map(async (id) => {
      const held = await store.load(id)
      if (held !== undefined) await store.purge(id, held.version)
    }),
  )
}
