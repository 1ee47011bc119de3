import type { Filter, FindCursor, WithId } from 'mongodb'
import type { Collections, ExecutionDocument } from './collections.js'
import { FOREIGN } from './collections.js'
import { reading, toStoreError } from './errors.js'

/** Documents read at once. */
const BATCH = 200

/** What a document holds, by its order in the whole. */
export interface Found<Entry> {
  readonly entry: Entry
  /** What the bound of a document is compared with. */
  readonly rank: number
}

interface Search<Entry> {
  /** The field with the lower bound. */
  readonly bound: 'outbox_from' | 'spawns_from' | 'next_fire_at'
  /** The fields to read. */
  readonly fields: Record<string, 1>
  /** Documents whose bound is above have nothing. */
  readonly most: number
  readonly limit: number
  readonly entriesOf: (document: WithId<ExecutionDocument>) => Found<Entry>[]
  /** Which entries are wanted: behind the last one seen, and due. */
  readonly wanted: (found: Found<Entry>) => boolean
  readonly compare: (a: Entry, b: Entry) => number
}

/**
 * The first entries, in order, of all documents. Each of ours has a lower bound of what it holds, and the bounds have an
 * index; so documents are read in the order of their bounds, until the next one cannot hold anything that comes before
 * what was found. Those of Python's have no bound (or an old one) and are all looked at.
 *
 * Bounds that are found too low are raised. Only a commit can add entries, and it changes the version.
 */
export async function firstEntries<Entry>({ executions }: Collections, search: Search<Entry>): Promise<Entry[]> {
  const { bound, fields, most, limit, entriesOf, wanted, compare } = search
  const options = { projection: { ...fields, version: 1, [bound]: 1 }, batchSize: BATCH }
  let found: Found<Entry>[] = []
  const keepFirst = () => {
    found.sort((a, b) => compare(a.entry, b.entry))
    if (found.length > limit) found = found.slice(0, limit)
  }
  const foreign = executions.find(FOREIGN as Filter<ExecutionDocument>, options)
  const seen = new Set<string>()
  await each(foreign, (document) => {
    seen.add(document._id)
    found.push(...entriesOf(document).filter(wanted))
    return true
  })
  keepFirst()
  const ours = executions.find({ [bound]: { $lte: most } } as Filter<ExecutionDocument>, options).sort({ [bound]: 1 })
  const raised: Promise<unknown>[] = []
  await each(ours, (document) => {
    const low = Number(document[bound])
    if (found.length >= limit && low > (found[limit - 1]?.rank ?? 0)) return false
    if (seen.has(document._id)) return true
    const entries = entriesOf(document)
    const lowest = Math.min(...entries.map(({ rank }) => rank))
    if (lowest > low) raised.push(raise(executions, document, bound, lowest))
    found.push(...entries.filter(wanted))
    keepFirst()
    return true
  })
  await Promise.all(raised)
  return found.map(({ entry }) => entry)
}

/** @param lowest infinite where the document holds nothing */
function raise(
  executions: Collections['executions'],
  document: WithId<ExecutionDocument>,
  bound: Search<unknown>['bound'],
  lowest: number,
): Promise<unknown> {
  const { _id, version } = document
  const update = Number.isFinite(lowest) ? { $set: { [bound]: lowest } } : { $unset: { [bound]: '' as const } }
  const same = { _id, version, [bound]: document[bound] } as Filter<ExecutionDocument>
  return reading(executions.updateOne(same, update as never))
}

async function each<T>(cursor: FindCursor<T>, visit: (document: T) => boolean): Promise<void> {
  try {
    for await (const document of cursor) if (!visit(document)) break
  } catch (error) {
    throw toStoreError(error, false)
  } finally {
    await cursor.close()
  }
}
