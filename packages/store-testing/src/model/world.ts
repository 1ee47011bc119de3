import assert from 'node:assert/strict'
import {
  type CommitChanges,
  type Execution,
  type ExecutionStore,
  type ListQuery,
  type SpawnEntry,
  StoreConflict,
  timers,
} from '@harel/store-base'
import { all, assertAscending, byBytes, FAR, pagesOf } from '../fixtures.js'
import type { Reference } from './reference.js'

/** The store of one random sequence, and the copies of executions that somebody still holds. */
export interface World {
  /** One or more handles on one database. */
  readonly stores: ExecutionStore[]
  readonly ns: string
  /** The oldest first; most of them are stale. */
  readonly held: Execution[]
  /** Makes ids of events and children that occur once. */
  next(): number
  reopen(handle: number): Promise<void>
}

export const DEFINITIONS = ['d1', 'd2'] as const

/** More copies than this are not held. */
const MOST_HELD = 12

export const storeOf = (world: World, handle: number): ExecutionStore => {
  const store = world.stores[handle % world.stores.length]
  assert(store !== undefined)
  return store
}

export function hold(world: World, execution: Execution): void {
  world.held.push(structuredClone(execution))
  if (world.held.length > MOST_HELD) world.held.shift()
}

/** Commits and asserts that the verdict is the one of the model. */
export async function commit(
  model: Reference,
  world: World,
  handle: number,
  execution: Execution,
  changes: CommitChanges,
): Promise<void> {
  const own = structuredClone(execution)
  const { id, version } = own
  if (model.accepts(id, version)) {
    const seqs = await storeOf(world, handle).commit(own, changes)
    assert.equal(seqs.length, changes.emits?.length ?? 0)
    assertAscending(seqs)
    assert.equal(own.version, version + 1)
    model.commit(own, changes, seqs)
    hold(world, own)
    return
  }
  const found = model.versionOf(id)
  await assert.rejects(storeOf(world, handle).commit(own, changes), (error) => {
    assert(error instanceof StoreConflict, String(error))
    assert.deepEqual([error.executionId, error.expected, error.found], [id, version, found])
    return true
  })
  assert.deepEqual(own, execution)
}

/** The entries of a queue behind `after`, in pages of `limit`. */
async function sweep<Entry extends { seq: number }>(
  read: (page: { limit: number; after?: number }) => Promise<Entry[]>,
  limit: number,
  after?: number,
): Promise<Entry[]> {
  const page = await read(after === undefined ? { limit } : { limit, after })
  const last = page.at(-1)
  assert(last === undefined || last.seq > (after ?? -1), 'the sweep goes round in circles')
  return last === undefined || page.length < limit ? page : [...page, ...(await sweep(read, limit, last.seq))]
}

/** The seq in front of the first of these: what others have queued before need not be read in small pages. */
const inFrontOf = (seqs: readonly number[]): number | undefined =>
  seqs.length === 0 ? undefined : Math.max(0, Math.min(...seqs) - 1)

export async function assertOutbox(model: Reference, { ns }: World, store: ExecutionStore, limit: number) {
  const expected = [...model.events.values()].sort((a, b) => a.seq - b.seq)
  const after = inFrontOf(expected.map(({ seq }) => seq))
  const found = await sweep((page) => store.pendingOutbox(page), after === undefined ? 1000 : limit, after)
  assert.deepEqual(
    found.filter(({ event }) => event.id.startsWith(ns)),
    expected.map(({ seq, targetId, event }) => ({ seq, targetId, event })),
  )
}

export async function assertSpawns(model: Reference, { ns }: World, store: ExecutionStore, limit: number) {
  const belongs = ({ parentId }: SpawnEntry) => parentId.startsWith(ns)
  const found = (await sweep((page) => store.pendingSpawns(page), 1000)).filter(belongs)
  const byChild = (a: { childId: string }, b: { childId: string }) => byBytes(a.childId, b.childId)
  assert.deepEqual(
    found.map(({ seq: _seq, ...spawn }) => spawn).sort(byChild),
    [...model.children.values()].sort(byChild),
  )
  assertAscending(found.map(({ seq }) => seq))
  if (found.length > 0) {
    const again = await sweep((page) => store.pendingSpawns(page), limit, inFrontOf(found.map(({ seq }) => seq)))
    assert.deepEqual(again.filter(belongs), found)
  }
  return found
}

export async function assertTimers(model: Reference, { ns }: World, store: ExecutionStore, now: number, limit: number) {
  const found = (await all(timers(store, now, limit))).filter(({ executionId }) => executionId.startsWith(ns))
  assert.deepEqual(found, model.dueTimers(now))
}

export async function assertListing(model: Reference, store: ExecutionStore, query: ListQuery) {
  const found = (await pagesOf(store, query)).flat()
  if (!store.capabilities.ordered) found.sort((a, b) => byBytes(a.id, b.id))
  assert.deepEqual(found, model.list(query))
}

/** Asserts that the store holds what the model holds, and nothing else. */
export async function assertSame(model: Reference, world: World, ids: readonly string[]): Promise<void> {
  for (const store of world.stores) {
    for (const id of ids) {
      assert.deepEqual(await store.load(id), model.executions.get(id))
      assert.deepEqual(await store.readTrace(id), model.traces.get(id)?.steps ?? [])
    }
    await assertOutbox(model, world, store, 100)
    await assertSpawns(model, world, store, 100)
    await assertTimers(model, world, store, FAR, 100)
    for (const name of DEFINITIONS) {
      await assertListing(model, store, { definitionId: world.ns + name, limit: 100 })
    }
  }
}
