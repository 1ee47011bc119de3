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
  /**
   * Where the next page starts; null on the last one. It comes back as `position`. With `paging: 'key'` an id that can
   * be one, which the next page starts behind; with `'offset'` an integer from 0 on in decimal digits.
   */
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
 * thrown reaches the caller as the cause of a `StoreUnavailable`. Rows are handed on as they are stored, those that
 * cannot be read too: the store reports them, and reads on where a page of a queue has too few others.
 *
 * What a backend is opened with it checks itself: the prefix with `Names(prefix)`, before it becomes part of a name.
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

  /**
   * Rows with a seq greater than `page.after`, which is -1 at the start, by ascending seq. As many as `page.limit`,
   * which may be `Infinity`; fewer only at the end of the queue, for that is how the store tells it.
   */
  pendingOutbox(page: CheckedQueuePage): Promise<OutboxRow[]>

  /** Unknown seqs are no error. */
  ackOutbox(seqs: readonly number[]): Promise<void>

  /** As `pendingOutbox`. */
  pendingSpawns(page: CheckedQueuePage): Promise<SpawnRow[]>
  /** Unknown seqs are no error. */
  ackSpawn(seqs: readonly number[]): Promise<void>

  /**
   * Timers with `fireAt <= now`, ordered by fireAt, then id, then path, by bytes as `compareBytes` does; those behind
   * `page.after` in this order. As many as `page.limit`, as `pendingOutbox`.
   */
  dueTimers(now: number, page: CheckedTimerPage): Promise<DueTimer[]>

  /** Only if the timer holds exactly this `fireAt`. */
  deleteTimer(id: string, path: string, fireAt: number): Promise<void>

  /** By ascending index, which counts on from 0 whatever was cut off. */
  readTrace(id: string): Promise<TraceRow[]>

  /**
   * Whether or not the execution exists. Here and by commits a trace is cut to its newest `traceMax` steps; where that is
   * 0 it is not cut.
   */
  appendTrace(id: string, entry: string): Promise<void>

  /** Up to `limit` rows from `position` on, ordered by id where `capabilities.ordered`. */
  listExecutions(query: CheckedListQuery): Promise<SummaryRows>

  idsWithPrefix(prefix: string): Promise<string[]>

  /** Inserts unless there; returns what is stored. */
  publishDefinition(row: DefinitionRow): Promise<DefinitionRow>

  loadDefinition(id: string, version: string): Promise<DefinitionRow | undefined>

  /**
   * Where the stored version is `expectedVersion`: removes what `ExecutionStore.purge` says, and returns true. Where
   * another one is stored: changes nothing, false. Where none is stored: removes what is left under the id, whatever was
   * expected, false.
   */
  purge(id: string, expectedVersion: number): Promise<boolean>

  /** Called once. */
  close(): Promise<void>
}

/** `StoreBackend` without promises. */
export type SyncStoreBackend = Synchronous<StoreBackend>
