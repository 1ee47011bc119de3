import { Names } from '@harel/store-base'
import type { Collection, CollectionOptions, Db, Double, Int32, Long } from 'mongodb'

/** How a number is written, and how it is read. */
export type StoredNumber = number | Int32 | Long | Double

export interface OutboxItem {
  seq: StoredNumber
  target_id: string | null
  event: string
}

export interface SpawnItem {
  seq: StoredNumber
  parent_id: string
  child_id: string
  root_path: string
  /** A document, not a text. */
  context: object
}

/** The document of an execution: Python harel's fields, then ours, which its partial updates leave alone. */
export interface ExecutionDocument {
  _id: string
  definition_id: string
  version: StoredNumber
  data: string
  outbox?: OutboxItem[]
  spawns?: SpawnItem[]
  timers?: Record<string, StoredNumber>
  processed?: string[]
  trace?: { index: StoredNumber }[]
  summary?: Summary
  next_fire_at?: StoredNumber
}

/** What listings go by. */
export interface Summary {
  /** That of the payload, unless Python has gone on from there. */
  version: StoredNumber
  definition_id: string
  status: string
  outcome: string | null
  active_path: string | null
  parent_id: string | null
  finished_at: StoredNumber | null
  root: boolean
}

export interface Collections {
  readonly executions: Collection<ExecutionDocument>
  /** `outbox` and `spawn`: the last number taken. */
  readonly counters: Collection<{ _id: string; n: StoredNumber }>
  /** Entries whose sender was purged, by their numbers. */
  readonly orphans: Collection<{ _id: StoredNumber; target_id: string | null; event: string }>
  /** Steps that were added to executions that did not exist; their documents would break Python's reading. */
  readonly traces: Collection<Pick<ExecutionDocument, '_id' | 'trace'>>
  readonly definitions: Collection<{ _id: string; definition: string; published_at: StoredNumber | null }>
}

/** All that a client of the caller's may have been told otherwise. */
const OPTIONS: CollectionOptions = {
  // What is acknowledged survives the loss of a server and a failure of its power, and what is read is like that.
  writeConcern: { w: 'majority', journal: true },
  readConcern: { level: 'majority' },
  readPreference: 'primary',
  raw: false,
  fieldsAsRaw: {},
  promoteLongs: true,
  promoteValues: true,
  promoteBuffers: false,
  useBigInt64: false,
  bsonRegExp: false,
  ignoreUndefined: false,
  serializeFunctions: false,
  checkKeys: false,
}

export function collectionsOf(db: Db, prefix: string): Collections {
  const names = Names(prefix)
  return {
    executions: db.collection(names.executions, OPTIONS),
    counters: db.collection(names.counters, OPTIONS),
    orphans: db.collection(`${prefix}_orphaned_outbox`, OPTIONS),
    traces: db.collection(`${prefix}_early_traces`, OPTIONS),
    definitions: db.collection(names.definitions, OPTIONS),
  }
}

/**
 * Executions that Python harel has written last. Its payloads begin with the id and ours with the version, so a partial
 * index finds them; the fields that are ours alone tell nothing about them.
 */
export const FOREIGN = { data: { $lt: '{"version":' } }

/** One for each way in which the protocol reads. An index on the entries of an array is in the order of their first. */
export const INDEXES = [
  { name: 'harel_foreign', key: { _id: 1, version: 1 }, partialFilterExpression: FOREIGN },
  { name: 'harel_by_status', key: { 'summary.status': 1, _id: 1 } },
  { name: 'harel_by_definition', key: { 'summary.definition_id': 1, 'summary.status': 1, _id: 1 } },
  { name: 'harel_roots', key: { 'summary.root': 1, 'summary.status': 1, _id: 1 } },
  { name: 'harel_timers', key: { next_fire_at: 1 }, sparse: true },
  { name: 'harel_outbox', key: { 'outbox.seq': 1 }, sparse: true },
  { name: 'harel_outbox_target', key: { 'outbox.target_id': 1 }, sparse: true },
  { name: 'harel_spawns', key: { 'spawns.seq': 1 }, sparse: true },
] as const
