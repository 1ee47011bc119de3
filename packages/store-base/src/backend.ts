import type { CheckedListQuery } from './listing.js'
import type { PreparedCommit, SummaryColumns } from './prepare.js'
import type { StoreCapabilities, Synchronous } from './protocol.js'
import type { CheckedQueuePage, CheckedTimerPage } from './queues.js'
import type { DueTimer } from './records.js'

/**
 * What became of a commit. `found` is the stored version, null when there is none; `foreign` says that it is known not
 * to be this commit's own, sent before.
 */
export type Verdict = { applied: true; seqs: number[] } | { applied: false; found: number | null; foreign?: boolean }

export interface OutboxRow {
  seq: number
  targetId: string | null
  /** The text of the event. */
  event: string
}

export interface SpawnRow {
  seq: number
  parentId: string
  childId: string
  rootPath: string
  /** The text of the context. */
  context: string
}

export interface TraceRow {
  index: number
  /** The text of the step. */
  entry: string
}

/** `status` and the others as they are stored: a row of another writer may hold anything. */
export interface SummaryRow extends Omit<SummaryColumns, 'status'> {
  id: string
  version: number
  status: string | null
}

export interface SummaryRows {
  rows: SummaryRow[]
  /** Where the next page starts; null on the last one. */
  next: string | null
}

export interface DefinitionRow {
  id: string
  version: string
  /** The text of the definition. */
  definition: string
  publishedAt: number | null
}

/**
 * What a database has to do for a store: the protocol on plain rows. `CheckedStore` makes an `ExecutionStore` of it.
 *
 * Arguments are checked, texts are opaque. Each method is one atomic step. Errors are `StoreError`s; whatever else is
 * thrown reaches the caller as the cause of a `StoreUnavailable`.
 */
export interface StoreBackend {
  readonly capabilities: StoreCapabilities

  load(id: string): Promise<string | undefined>

  /** Both from one snapshot, or the text first and the mark second. */
  loadForEvent(id: string, eventId: string): Promise<{ data: string | undefined; processed: boolean }>

  /**
   * All or nothing. A refused commit leaves no trace. Rejects with `OutcomeUnknown` when it cannot tell whether the
   * commit was applied, because it was sent and the reply was lost; the store then calls it once more with the same
   * commit, which must not be applied twice, and reads back.
   */
  commit(commit: PreparedCommit): Promise<Verdict>

  isProcessed(id: string, eventId: string): Promise<boolean>

  /** Fewer rows than `page.limit` only at the end of the queue; so do the other pages. */
  pendingOutbox(page: CheckedQueuePage): Promise<OutboxRow[]>

  ackOutbox(seqs: readonly number[]): Promise<void>
  pendingSpawns(page: CheckedQueuePage): Promise<SpawnRow[]>
  ackSpawn(seqs: readonly number[]): Promise<void>
  dueTimers(now: number, page: CheckedTimerPage): Promise<DueTimer[]>
  deleteTimer(id: string, path: string, fireAt: number): Promise<void>
  readTrace(id: string): Promise<TraceRow[]>
  appendTrace(id: string, entry: string): Promise<void>

  /** Up to `limit` rows from `position` on. */
  listExecutions(query: CheckedListQuery): Promise<SummaryRows>

  idsWithPrefix(prefix: string): Promise<string[]>

  /** Inserts unless there; returns what is stored. */
  publishDefinition(row: DefinitionRow): Promise<DefinitionRow>

  loadDefinition(id: string, version: string): Promise<DefinitionRow | undefined>
  purge(id: string, expectedVersion: number): Promise<boolean>

  /** Called once. */
  close(): Promise<void>
}

/** `StoreBackend` without promises. */
export type SyncStoreBackend = Synchronous<StoreBackend>
