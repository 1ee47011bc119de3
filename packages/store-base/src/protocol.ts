import type { CorruptRecord } from './errors.js'
import type {
  DefinitionRecord,
  DueTimer,
  Emit,
  Execution,
  ExecutionSummary,
  OutboxEntry,
  Spawn,
  SpawnEntry,
  Status,
  Step,
  TimerOp,
  TraceStep,
} from './records.js'

/** What a commit writes beside the execution. Everything is optional. */
export interface CommitChanges {
  /** Events to be sent, in this order. */
  emits?: readonly Emit[] | undefined
  /** The id of the event that this commit handled; recording it again is no error. */
  processedEventId?: string | undefined
  /** Timers to arm or cancel; where one path occurs more than once, the last entry counts. */
  timers?: readonly TimerOp[] | undefined
  /** Children to be created, in this order. */
  spawns?: readonly Spawn[] | undefined
  /** One step for the trace. */
  trace?: TraceStep | undefined
  /** Describes the commit to `observeStore`; never stored. */
  step?: Step | undefined
}

/** A part of a queue. */
export interface QueuePage {
  /** At most so many entries, 1 to 1000; all of them when absent. */
  limit?: number | undefined
  /**
   * Only entries with a larger seq. Commits may become visible out of seq order, so this is good within one sweep
   * only: the next sweep starts at the beginning, and entries leave by being acknowledged, never by being passed.
   */
  after?: number | undefined
  /** Told of each row on the way that cannot be read, in place of `onWarning`. It stays until it is acknowledged. */
  onUnreadable?: OnUnreadable | undefined
}

/** @param seq of the row, for `ackOutbox` or `ackSpawn` */
export type OnUnreadable = (seq: number, error: CorruptRecord) => void

/** A part of the due timers. */
export interface TimerPage {
  /** At most so many timers, 1 to 1000; all of them when absent. */
  limit?: number | undefined
  /** Only timers behind this one in the order (fireAt, executionId, path). */
  after?: DueTimer | undefined
}

/** Filters of a listing; those given must all hold. */
export interface ListQuery {
  /** One of these; an empty list matches nothing. */
  status?: Status | readonly Status[]
  definitionId?: string
  /** Only executions without a parent. */
  rootsOnly?: boolean
  /** Items in a page, 1 to 1000; 100 when absent. */
  limit?: number | undefined
  /** The `nextCursor` of the page before, under the same filters; absent, null or empty: the first page. */
  cursor?: string | null | undefined
}

/** `nextCursor` is null on the last page. */
export interface ExecutionPage {
  items: ExecutionSummary[]
  nextCursor: string | null
}

/** What a store promises; the contracts check that it tells the truth. */
export interface StoreCapabilities {
  /** Acknowledged commits survive the end of the process. */
  readonly durable: boolean
  /** Several handles, in one process or in many, can work on one database. */
  readonly shared: boolean
  /** `load` returns the very object that was committed, not a copy. */
  readonly identity: boolean
  /** Listings are ordered by id, compared by UTF-8 bytes. */
  readonly ordered: boolean
  /** A listing goes on behind the last key (deletions skip nothing) or at an offset (they do). */
  readonly paging: 'key' | 'offset'
  /** The largest number of writes in a commit: the execution, each emit, spawn and timer, the mark, the trace step. */
  readonly maxCommitWrites: number
  /** The largest payload of an execution, in bytes. */
  readonly maxExecutionBytes: number
  /** How many of an execution's processed event ids are remembered. */
  readonly dedupe: 'forever' | number
  /** A purge is one atomic step. */
  readonly atomicPurge: boolean
  /** The store has `transaction`, which commits executions and the caller's own rows together. */
  readonly transactions: boolean
}

/**
 * A durable store of executions.
 *
 * Every argument is checked and serialised before a method's first await: what is stored is what the objects were
 * when the method was called. Methods reject, they never throw, and they reject with a `StoreError`: `InvalidArgument`
 * for a bad argument, `StoreUnavailable` when the database cannot be reached, `StoreClosed` after `close`. Ids, event
 * ids, timer paths and definition ids and versions are strings of 1 to 1024 UTF-8 bytes without NUL and without lone
 * surrogates; they are compared by bytes. Times are epoch seconds. A store never reads a clock.
 */
export interface ExecutionStore extends AsyncDisposable {
  readonly capabilities: StoreCapabilities

  /** The execution as last committed, or undefined. Rejects with `CorruptRecord` when it cannot be read. */
  load(id: string): Promise<Execution | undefined>

  /**
   * The execution and whether it has processed the event. The mark is never older than the state: an event whose
   * effect is in the state is reported as processed. Absent execution: `processed` is false.
   */
  loadForEvent(id: string, eventId: string): Promise<{ execution: Execution | undefined; processed: boolean }>

  /** A commit without changes. */
  save(execution: Execution): Promise<void>

  /**
   * Writes the execution at `version + 1` with everything in `changes`, all or nothing, if the stored version is still
   * `execution.version` (no execution stored: 0). Returns the outbox seqs of `emits`, ascending, in their order.
   * Raises `execution.version` on success; after any error it is what it was and nothing was written, unless the error
   * is `OutcomeUnknown`. Rejects with `StoreConflict`, `NotSerializable`, `CommitTooLarge`.
   */
  commit(execution: Execution, changes?: CommitChanges): Promise<number[]>

  /** Whether the execution has recorded this event id since it was last purged. */
  isProcessed(id: string, eventId: string): Promise<boolean>

  /** Undelivered events of the whole prefix, by ascending seq. Unreadable rows are reported and left out. */
  pendingOutbox(page?: QueuePage): Promise<OutboxEntry[]>

  /** Removes delivered events; unknown seqs are no error. */
  ackOutbox(seqs: number | readonly number[]): Promise<void>

  /** Children still to be created, of the whole prefix, by ascending seq. As `pendingOutbox`. */
  pendingSpawns(page?: QueuePage): Promise<SpawnEntry[]>

  /** Removes spawns that were carried out; unknown seqs are no error. */
  ackSpawn(seqs: number | readonly number[]): Promise<void>

  /**
   * Timers with `fireAt <= now` of the whole prefix, ordered by fireAt, then id, then path (by bytes). One that another
   * program has stored under what is no path is reported through `onWarning`.
   */
  dueTimers(now: number, page?: TimerPage): Promise<DueTimer[]>

  /** Removes the timer only if it still holds exactly this `fireAt`. */
  deleteTimer(id: string, path: string, fireAt: number): Promise<void>

  /** The newest steps (as many as `traceMax`), oldest first, each with its `index`. */
  readTrace(id: string): Promise<TraceStep[]>

  /** Adds a step without a commit; the execution need not exist. An `index` inside the step is replaced. */
  appendTrace(id: string, step: TraceStep): Promise<void>

  /** A page of summaries. Not a snapshot: commits between two pages show. Rejects with `InvalidCursor`. */
  listExecutions(query?: ListQuery): Promise<ExecutionPage>

  /** The ids that start with exactly this text, in byte order where `ordered`; the empty prefix matches all. */
  idsWithPrefix(prefix: string): Promise<string[]>

  /** Stores one version of a definition unless it exists; returns the record that was stored first. */
  publishDefinition(record: DefinitionRecord): Promise<DefinitionRecord>

  loadDefinition(id: string, version: string): Promise<DefinitionRecord | undefined>

  /**
   * If the stored version is `expectedVersion`: removes the execution with its processed marks, trace, timers, the
   * events addressed to it and the spawns it issued, and returns true; events it sent to others stay. At another version
   * nothing happens: false. If there is no execution, leftovers under its id are removed: false.
   */
  purge(id: string, expectedVersion: number): Promise<boolean>

  /** Lets go of what the store opened; later calls reject with `StoreClosed`. Calling it again is no error. */
  close(): Promise<void>
}

/** The same object with every promise unwrapped: what a synchronous twin offers. */
export type Synchronous<T> = {
  [K in keyof T as K extends typeof Symbol.asyncDispose ? typeof Symbol.dispose : K]: T[K] extends (
    ...args: infer A
  ) => PromiseLike<infer R>
    ? (...args: A) => R
    : T[K]
}

/** `ExecutionStore` without promises; methods throw. */
export type SyncExecutionStore = Synchronous<ExecutionStore>

/** The same object with promises optional: the common ground of both twins. */
export type Awaitable<T> = {
  [K in keyof T as K extends typeof Symbol.asyncDispose ? never : K]: T[K] extends (
    ...args: infer A
  ) => PromiseLike<infer R>
    ? (...args: A) => R | Promise<R>
    : T[K]
}
