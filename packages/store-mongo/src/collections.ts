import { Names } from '@harel/store-base'
import type { Collection, Db, Double, Int32, Long } from 'mongodb'
import type { BsonValue } from './bson.js'

/** A number as the driver gives it: the caller's options decide in which of these forms. */
export type StoredNumber = number | bigint | Int32 | Long | Double

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
  context: unknown
}

/**
 * The document of an execution: Python harel's fields, then ours, which its partial updates leave alone.
 *
 * A payload of Python's begins with its id and one of ours with its version, so a partial index on the payload finds
 * the documents that Python has written last; ours are found by the fields below.
 */
export interface ExecutionDocument {
  _id: string
  definition_id: string
  version: StoredNumber
  data: string
  outbox?: OutboxItem[]
  spawns?: SpawnItem[]
  timers?: Record<string, StoredNumber>
  processed?: string[]
  trace?: BsonValue[]
  summary?: Summary
  /** No timer is due before. */
  next_fire_at?: StoredNumber
  /** No entry has a smaller number. */
  outbox_from?: StoredNumber
  /** As `outbox_from`. */
  spawns_from?: StoredNumber
}

export interface Summary {
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
  /** Entries whose sender was purged. */
  readonly orphans: Collection<{ _id: StoredNumber; target_id: string | null; event: string }>
  /** Steps that were added to executions that do not exist. */
  readonly traces: Collection<{ _id: string; trace: BsonValue[] }>
  readonly definitions: Collection<{ _id: string; definition: string; published_at: StoredNumber | null }>
}

export function collectionsOf(db: Db, prefix: string): Collections {
  const names = Names(prefix)
  // What is acknowledged survives the loss of a server, and what is read is what was acknowledged.
  const options = {
    writeConcern: { w: 'majority' },
    readPreference: 'primary',
    readConcern: { level: 'local' },
  } as const
  return {
    executions: db.collection(names.executions, options),
    counters: db.collection(names.counters, options),
    orphans: db.collection(`${prefix}_orphaned_outbox`, options),
    traces: db.collection(`${prefix}_early_traces`, options),
    definitions: db.collection(names.definitions, options),
  }
}

/** Payloads that Python harel has written. */
export const FOREIGN = { data: { $gte: '{"i', $lt: '{"j' } }

/** One for each read of the protocol, under names of our own. */
export const INDEXES = [
  { name: 'harel_foreign', key: { _id: 1, version: 1 }, partialFilterExpression: FOREIGN },
  { name: 'harel_by_status', key: { 'summary.status': 1, _id: 1 } },
  { name: 'harel_by_definition', key: { 'summary.definition_id': 1, 'summary.status': 1, _id: 1 } },
  { name: 'harel_roots_by_status', key: { 'summary.root': 1, 'summary.status': 1, _id: 1 } },
  {
    name: 'harel_roots_by_definition',
    key: { 'summary.root': 1, 'summary.definition_id': 1, 'summary.status': 1, _id: 1 },
  },
  { name: 'harel_outbox', key: { outbox_from: 1 }, sparse: true },
  { name: 'harel_spawns', key: { spawns_from: 1 }, sparse: true },
  { name: 'harel_timers', key: { next_fire_at: 1 }, sparse: true },
  { name: 'harel_outbox_seq', key: { 'outbox.seq': 1 }, sparse: true },
  { name: 'harel_outbox_target', key: { 'outbox.target_id': 1 }, sparse: true },
  { name: 'harel_spawns_seq', key: { 'spawns.seq': 1 }, sparse: true },
] as const
