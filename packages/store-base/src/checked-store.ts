import {
  checkFunction,
  checkInteger,
  checkKey,
  checkKeyOrEmpty,
  checkMembers,
  checkSeqs,
  checkTime,
  readArgument,
  utf8Length,
} from './arguments.js'
import { AsyncStore } from './async-store.js'
import type { DefinitionRow, StoreBackend, SyncStoreBackend } from './backend.js'
import { decodeExecution } from './decode.js'
import { encodeJson } from './encode.js'
import { CommitTooLarge, InvalidArgument, StoreClosed, StoreConflict, StoreError, StoreUnavailable } from './errors.js'
import { checkListQuery, toPage } from './listing.js'
import type { Numbers, OnWarning } from './numbers.js'
import { type PreparedCommit, prepareCommit, prepareTrace } from './prepare.js'
import type {
  Awaitable,
  CommitChanges,
  ListQuery,
  QueuePage,
  StoreCapabilities,
  SyncExecutionStore,
  TimerPage,
} from './protocol.js'
import { type CheckedQueuePage, type CheckedTimerPage, checkQueuePage, checkTimerPage } from './queues.js'
import type { DefinitionRecord, Execution, TraceStep } from './records.js'
import { resolveOutcome } from './resolve-outcome.js'
import { toDefinition, toOutbox, toSpawns, toSummaries, toTimers, toTrace } from './rows.js'

/** Options that every store has. */
export interface StoreOptions {
  /** Called with findings that do not stop the work: unreadable rows, rounded numbers. Default: `console.warn`. */
  onWarning?: OnWarning
  /** What becomes of stored numbers that JavaScript does not hold exactly. Default: `exact`. */
  numbers?: Numbers
}

/**
 * The options that every store has, with their defaults. A member that is neither one of them nor in `own` is refused:
 * a misspelt prefix must not mean another one. Without `own` any may be there.
 *
 * @throws InvalidArgument
 */
export function checkStoreOptions(
  options: StoreOptions,
  own?: readonly string[],
): { onWarning: OnWarning; numbers: Numbers } {
  const given = checkMembers('options', options, own && [...own, 'onWarning', 'numbers'])
  const { onWarning = console.warn, numbers = 'exact' } = given as StoreOptions
  checkFunction('onWarning', onWarning)
  if (numbers !== 'exact' && numbers !== 'lossy') throw new InvalidArgument('numbers', numbers, "'exact' or 'lossy'")
  return { onWarning, numbers }
}

const isPromise = <T>(value: T | Promise<T>): value is Promise<T> =>
  typeof (value as { then?: unknown } | null | undefined)?.then === 'function'

const after = <T, R>(value: T | Promise<T>, next: (value: T) => R | Promise<R>): R | Promise<R> =>
  isPromise(value) ? value.then(next) : next(value)

/** What the call results in; what it fails with, unless it is a `StoreError`, is the cause of a `StoreUnavailable`. */
function guard<T>(call: () => T | Promise<T>): T | Promise<T> {
  try {
    const result = call()
    return isPromise(result) ? result.then(undefined, refuse) : result
  } catch (error) {
    return refuse(error)
  }
}

function refuse(error: unknown): never {
  // No word of the driver's message: it may hold an address, a password or a payload.
  throw error instanceof StoreError ? error : new StoreUnavailable('the database failed; the cause says how', error)
}

/** How many rows to read at least behind an unreadable one; there may be many of them together. */
const READ_ON = 100

/** Reads on where rows of a page were unreadable, so that less than was wanted means the end of the queue. */
function fill<Row, Entry, Page extends { readonly limit: number }>(
  read: (page: Page) => Row[] | Promise<Row[]>,
  page: Page,
  toEntries: (rows: readonly Row[]) => Entry[],
  pageBehind: (row: Row, limit: number) => Page,
  wanted = page.limit,
): Entry[] | Promise<Entry[]> {
  return after(read(page), (rows) => {
    const entries = toEntries(rows)
    const last = rows.at(-1)
    const missing = wanted - entries.length
    if (last === undefined || rows.length < page.limit || missing <= 0) return entries.slice(0, wanted)
    const rest = pageBehind(last, Math.max(missing, READ_ON))
    return after(fill(read, rest, toEntries, pageBehind, missing), (more) => [...entries, ...more])
  })
}

const queueBehind = ({ seq }: { seq: number }, limit: number): CheckedQueuePage => ({ limit, after: seq })

const RECORD = ['id', 'version', 'definition', 'publishedAt'] as const

const checkDefinition = (record: DefinitionRecord, numbers: Numbers): DefinitionRow => {
  const { id, version, definition, publishedAt } = checkMembers('record', record, RECORD)
  return {
    id: checkKey('record.id', id),
    version: checkKey('record.version', version),
    definition: encodeJson(definition, 'record.definition', numbers),
    publishedAt: publishedAt === undefined ? null : checkTime('record.publishedAt', publishedAt),
  }
}

/** @throws CommitTooLarge for what the database is known not to take */
function checkSize(commit: PreparedCommit, { maxCommitWrites, maxExecutionBytes }: StoreCapabilities): void {
  const { data, emits, spawns, timers, processedEventId, trace } = commit
  const marks = (processedEventId === undefined ? 0 : 1) + (trace === undefined ? 0 : 1)
  const writes = 1 + emits.length + spawns.length + timers.length + marks
  if (writes > maxCommitWrites) throw new CommitTooLarge('writes', writes, maxCommitWrites)
  // A UTF-16 unit takes at most three bytes.
  if (data.length * 3 <= maxExecutionBytes) return
  const bytes = utf8Length(data)
  if (bytes > maxExecutionBytes) throw new CommitTooLarge('bytes of payload', bytes, maxExecutionBytes)
}

/**
 * The protocol on top of a backend of either kind: checks and serialises every argument before the backend is called,
 * reads what comes back, and keeps the caller's `version` right. Results are promises where the backend's are.
 */
class Core {
  readonly #backend: Awaitable<StoreBackend>
  readonly #reading: { onWarning: OnWarning; numbers: Numbers }
  readonly #numbers: Numbers
  /** The committed objects themselves, where `capabilities.identity` promises to return them. */
  readonly #held: Map<string, Execution> | undefined
  #closing: { result: void | Promise<void> } | undefined

  constructor(backend: Awaitable<StoreBackend>, options: StoreOptions = {}) {
    this.#backend = backend
    // Which others there are, only the backend knows.
    this.#reading = checkStoreOptions(options)
    this.#numbers = this.#reading.numbers
    this.#held = backend.capabilities.identity ? new Map() : undefined
  }

  get capabilities(): StoreCapabilities {
    return this.#backend.capabilities
  }

  /** The one way to the backend. Arguments are checked before, so that what fails in here is the database. */
  #ask<T>(question: (backend: Awaitable<StoreBackend>) => T | Promise<T>): T | Promise<T> {
    if (this.#closing !== undefined) throw new StoreClosed()
    return guard(() => question(this.#backend))
  }

  #execution(data: string | undefined, id: string): Execution | undefined {
    return data === undefined ? undefined : (this.#held?.get(id) ?? decodeExecution(data, id, this.#reading))
  }

  load(id: string) {
    checkKey('id', id)
    return after(
      this.#ask((backend) => backend.load(id)),
      (data) => this.#execution(data, id),
    )
  }

  loadForEvent(id: string, eventId: string) {
    checkKey('id', id)
    checkKey('eventId', eventId)
    return after(
      this.#ask((backend) => backend.loadForEvent(id, eventId)),
      ({ data, processed }) => ({ execution: this.#execution(data, id), processed: data !== undefined && processed }),
    )
  }

  save(execution: Execution) {
    return after(this.commit(execution), () => {})
  }

  commit(execution: Execution, changes?: CommitChanges) {
    const commit = prepareCommit(execution, changes, this.#numbers)
    checkSize(commit, this.capabilities)
    const answer = this.#ask((backend) => backend.commit(commit))
    // Only a request that travels can lose its reply.
    const outcome = isPromise(answer) ? resolveOutcome(this.#backend, commit, answer) : answer
    return after(outcome, (verdict) => {
      if (!verdict.applied) throw new StoreConflict(commit.id, commit.expected, verdict.found)
      execution.version = commit.version
      this.#held?.set(commit.id, execution)
      return verdict.seqs
    })
  }

  isProcessed(id: string, eventId: string) {
    checkKey('id', id)
    checkKey('eventId', eventId)
    return this.#ask((backend) => backend.isProcessed(id, eventId))
  }

  pendingOutbox(page?: QueuePage) {
    // A function, which is nothing to send to a worker.
    const { onUnreadable, ...part } = checkQueuePage(page)
    return fill(
      (part) => this.#ask((backend) => backend.pendingOutbox(part)),
      part,
      (rows) => toOutbox(rows, this.#reading, onUnreadable),
      queueBehind,
    )
  }

  ackOutbox(seqs: number | readonly number[]) {
    const checked = readArgument('seqs', seqs, (given) => checkSeqs('seqs', given))
    return this.#ask((backend) => backend.ackOutbox(checked))
  }

  pendingSpawns(page?: QueuePage) {
    // A function, which is nothing to send to a worker.
    const { onUnreadable, ...part } = checkQueuePage(page)
    return fill(
      (part) => this.#ask((backend) => backend.pendingSpawns(part)),
      part,
      (rows) => toSpawns(rows, this.#reading, onUnreadable),
      queueBehind,
    )
  }

  ackSpawn(seqs: number | readonly number[]) {
    const checked = readArgument('seqs', seqs, (given) => checkSeqs('seqs', given))
    return this.#ask((backend) => backend.ackSpawn(checked))
  }

  dueTimers(now: number, page?: TimerPage) {
    checkTime('now', now)
    return fill(
      (part) => this.#ask((backend) => backend.dueTimers(now, part)),
      readArgument('page', page, checkTimerPage),
      (timers) => toTimers(timers, this.#reading),
      (after, limit): CheckedTimerPage => ({ limit, after }),
    )
  }

  deleteTimer(id: string, path: string, fireAt: number) {
    checkKey('id', id)
    checkKey('path', path)
    checkTime('fireAt', fireAt)
    return this.#ask((backend) => backend.deleteTimer(id, path, fireAt))
  }

  readTrace(id: string) {
    checkKey('id', id)
    return after(
      this.#ask((backend) => backend.readTrace(id)),
      (rows) => toTrace(rows, id, this.#reading),
    )
  }

  appendTrace(id: string, step: TraceStep) {
    checkKey('id', id)
    const entry = readArgument('step', step, (given) => prepareTrace('step', given, this.#numbers))
    return this.#ask((backend) => backend.appendTrace(id, entry))
  }

  listExecutions(query: ListQuery = {}) {
    const { paging } = this.capabilities
    const checked = readArgument('query', query, (given) => checkListQuery(given, paging))
    return after(
      this.#ask((backend) => backend.listExecutions(checked)),
      ({ rows, next }) => toPage(toSummaries(rows, this.#reading), next, checked, paging),
    )
  }

  idsWithPrefix(prefix: string) {
    checkKeyOrEmpty('prefix', prefix)
    return this.#ask((backend) => backend.idsWithPrefix(prefix))
  }

  publishDefinition(record: DefinitionRecord) {
    const row = readArgument('record', record, (given) => checkDefinition(given, this.#numbers))
    return after(
      this.#ask((backend) => backend.publishDefinition(row)),
      (stored) => toDefinition(stored, this.#reading),
    )
  }

  loadDefinition(id: string, version: string) {
    checkKey('id', id)
    checkKey('version', version)
    return after(
      this.#ask((backend) => backend.loadDefinition(id, version)),
      (row) => row && toDefinition(row, this.#reading),
    )
  }

  purge(id: string, expectedVersion: number) {
    checkKey('id', id)
    checkInteger('expectedVersion', expectedVersion, 0, Number.MAX_SAFE_INTEGER)
    return after(
      this.#ask((backend) => backend.purge(id, expectedVersion)),
      (purged) => {
        if (purged) this.#held?.delete(id)
        return purged
      },
    )
  }

  close() {
    if (this.#closing === undefined) {
      // Before the backend is asked: also a store that failed to close is closed.
      this.#closing = { result: undefined }
      this.#closing.result = guard(() => this.#backend.close())
    }
    return this.#closing.result
  }

  [Symbol.dispose](): void {
    this.close()
  }
}

/**
 * A `SyncExecutionStore` made of a synchronous backend. A class to extend: what it adds to the backend's rows is said at
 * `SyncExecutionStore`.
 */
export const SyncCheckedStore = Core as unknown as new (
  backend: SyncStoreBackend,
  options?: StoreOptions,
) => SyncExecutionStore

/** An `ExecutionStore` made of a backend. A class to extend. */
export class CheckedStore extends AsyncStore {
  constructor(backend: StoreBackend, options?: StoreOptions) {
    super(new Core(backend, options))
  }
}
