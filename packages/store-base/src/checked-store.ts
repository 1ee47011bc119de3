import { checkInteger, checkKey, checkKeyOrEmpty, checkMembers, checkSeqs, checkTime } from './arguments.js'
import { AsyncStore } from './async-store.js'
import type { DefinitionRow, StoreBackend, SyncStoreBackend } from './backend.js'
import { decodeExecution } from './decode.js'
import { encodeJson } from './encode.js'
import { StoreClosed, StoreConflict } from './errors.js'
import { checkListQuery, toPage } from './listing.js'
import type { Numbers, OnWarning, ReadOptions } from './numbers.js'
import { prepareCommit, prepareTrace } from './prepare.js'
import type {
  Awaitable,
  CommitChanges,
  ListQuery,
  QueuePage,
  StoreCapabilities,
  SyncExecutionStore,
  TimerPage,
} from './protocol.js'
import { type CheckedQueuePage, checkQueuePage, checkTimerPage } from './queues.js'
import type { DefinitionRecord, Execution, TraceStep } from './records.js'
import { toDefinition, toOutbox, toSpawns, toSummaries, toTrace } from './rows.js'

/** Options that every store has. */
export interface StoreOptions {
  /** Called with findings that do not stop the work: unreadable rows, rounded numbers. Default: `console.warn`. */
  onWarning?: OnWarning
  /** What becomes of stored numbers that JavaScript does not hold exactly. Default: `exact`. */
  numbers?: Numbers
}

const after = <T, R>(value: T | Promise<T>, next: (value: T) => R | Promise<R>): R | Promise<R> =>
  value instanceof Promise ? value.then(next) : next(value)

/** Reads on where rows of a page were unreadable, so that a short page means the end of the queue. */
function fill<Row extends { seq: number }, Entry>(
  read: (page: CheckedQueuePage) => Row[] | Promise<Row[]>,
  page: CheckedQueuePage,
  toEntries: (rows: readonly Row[]) => Entry[],
): Entry[] | Promise<Entry[]> {
  return after(read(page), (rows) => {
    const entries = toEntries(rows)
    const last = rows.at(-1)
    if (last === undefined || rows.length < page.limit || entries.length === rows.length) return entries
    const rest = { limit: page.limit - entries.length, after: last.seq }
    return after(fill(read, rest, toEntries), (more) => [...entries, ...more])
  })
}

const checkDefinition = (record: DefinitionRecord, numbers: Numbers): DefinitionRow => {
  const { id, version, definition, publishedAt } = checkMembers('record', record, [
    'id',
    'version',
    'definition',
    'publishedAt',
  ])
  return {
    id: checkKey('record.id', id),
    version: checkKey('record.version', version),
    definition: encodeJson(definition, 'record.definition', numbers),
    publishedAt: publishedAt === undefined ? null : checkTime('record.publishedAt', publishedAt),
  }
}

/**
 * The protocol on top of a backend of either kind: checks and serialises every argument before the backend is called,
 * reads what comes back, and keeps the caller's `version` right. Results are promises where the backend's are.
 */
class Core {
  readonly #backend: Awaitable<StoreBackend>
  readonly #reading: Required<ReadOptions>
  readonly #numbers: Numbers
  /** The committed objects themselves, where `capabilities.identity` promises to return them. */
  readonly #held: Map<string, Execution> | undefined
  #closed: { result: void | Promise<void> } | undefined

  constructor(backend: Awaitable<StoreBackend>, { onWarning = console.warn, numbers = 'exact' }: StoreOptions = {}) {
    this.#backend = backend
    this.#numbers = numbers
    this.#reading = { onWarning, numbers }
    this.#held = backend.capabilities.identity ? new Map() : undefined
  }

  get capabilities(): StoreCapabilities {
    return this.#backend.capabilities
  }

  get #open(): Awaitable<StoreBackend> {
    if (this.#closed !== undefined) throw new StoreClosed()
    return this.#backend
  }

  #execution(data: string | undefined, id: string): Execution | undefined {
    return data === undefined ? undefined : (this.#held?.get(id) ?? decodeExecution(data, id, this.#reading))
  }

  load(id: string) {
    return after(this.#open.load(checkKey('id', id)), (data) => this.#execution(data, id))
  }

  loadForEvent(id: string, eventId: string) {
    return after(this.#open.loadForEvent(checkKey('id', id), checkKey('eventId', eventId)), ({ data, processed }) => ({
      execution: this.#execution(data, id),
      processed: data !== undefined && processed,
    }))
  }

  save(execution: Execution) {
    return after(this.commit(execution), () => {})
  }

  commit(execution: Execution, changes?: CommitChanges) {
    const backend = this.#open
    const commit = prepareCommit(execution, changes, this.#numbers)
    return after(backend.commit(commit), (verdict) => {
      if (!verdict.applied) throw new StoreConflict(commit.id, commit.expected, verdict.found)
      execution.version = commit.version
      this.#held?.set(commit.id, execution)
      return verdict.seqs
    })
  }

  isProcessed(id: string, eventId: string) {
    return this.#open.isProcessed(checkKey('id', id), checkKey('eventId', eventId))
  }

  pendingOutbox(page?: QueuePage) {
    const backend = this.#open
    return fill(
      (part) => backend.pendingOutbox(part),
      checkQueuePage(page),
      (rows) => toOutbox(rows, this.#reading),
    )
  }

  ackOutbox(seqs: number | readonly number[]) {
    return this.#open.ackOutbox(checkSeqs('seqs', seqs))
  }

  pendingSpawns(page?: QueuePage) {
    const backend = this.#open
    return fill(
      (part) => backend.pendingSpawns(part),
      checkQueuePage(page),
      (rows) => toSpawns(rows, this.#reading),
    )
  }

  ackSpawn(seqs: number | readonly number[]) {
    return this.#open.ackSpawn(checkSeqs('seqs', seqs))
  }

  dueTimers(now: number, page?: TimerPage) {
    return this.#open.dueTimers(checkTime('now', now), checkTimerPage(page))
  }

  deleteTimer(id: string, path: string, fireAt: number) {
    return this.#open.deleteTimer(checkKey('id', id), checkKey('path', path), checkTime('fireAt', fireAt))
  }

  readTrace(id: string) {
    return after(this.#open.readTrace(checkKey('id', id)), (rows) => toTrace(rows, id, this.#reading))
  }

  appendTrace(id: string, step: TraceStep) {
    return this.#open.appendTrace(checkKey('id', id), prepareTrace('step', step, this.#numbers))
  }

  listExecutions(query: ListQuery = {}) {
    const { paging } = this.capabilities
    const checked = checkListQuery(query, paging)
    return after(this.#open.listExecutions(checked), ({ rows, next }) =>
      toPage(toSummaries(rows, this.#reading), next, checked, paging),
    )
  }

  idsWithPrefix(prefix: string) {
    return this.#open.idsWithPrefix(checkKeyOrEmpty('prefix', prefix))
  }

  publishDefinition(record: DefinitionRecord) {
    const backend = this.#open
    const row = checkDefinition(record, this.#numbers)
    return after(backend.publishDefinition(row), (stored) => toDefinition(stored, this.#reading))
  }

  loadDefinition(id: string, version: string) {
    return after(
      this.#open.loadDefinition(checkKey('id', id), checkKey('version', version)),
      (row) => row && toDefinition(row, this.#reading),
    )
  }

  purge(id: string, expectedVersion: number) {
    checkInteger('expectedVersion', expectedVersion, 0, Number.MAX_SAFE_INTEGER)
    return after(this.#open.purge(checkKey('id', id), expectedVersion), (purged) => {
      if (purged) this.#held?.delete(id)
      return purged
    })
  }

  close() {
    this.#closed ??= { result: this.#backend.close() }
    return this.#closed.result
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
