import {
  type CheckedListQuery,
  type CheckedQueuePage,
  CheckedStore,
  type CheckedTimerPage,
  CommitTooLarge,
  compareBytes,
  type DefinitionRow,
  type DueTimer,
  type ExecutionStore,
  keepVersions,
  listingPage,
  matches,
  Names,
  type OutboxRow,
  type PreparedCommit,
  type SpawnRow,
  type StoreBackend,
  type StoreCapabilities,
  type SummaryRow,
  type SummaryRows,
  type SyncStoreBackend,
  type TraceRow,
  type Verdict,
} from '@harel/store-base'
import type { OpenOptions, Probes } from '@harel/store-testing'

export const capabilities: StoreCapabilities = {
  durable: true,
  shared: true,
  identity: false,
  ordered: true,
  paging: 'key',
  maxCommitWrites: 200,
  maxExecutionBytes: 16 * 1024 * 1024,
  dedupe: 'forever',
  atomicPurge: true,
  transactions: true,
}

/** The rows of one prefix. */
export class Tables {
  /** What a transaction works on, and what takes the place of the rows when it ends. */
  static copyOf(tables: Tables): Tables {
    return structuredClone({ ...tables })
  }

  readonly executions = new Map<string, { data: string; summary: SummaryRow }>()
  readonly marks = new Map<string, Set<string>>()
  readonly timers = new Map<string, Map<string, number>>()
  readonly traces = new Map<string, TraceRow[]>()
  readonly outbox = new Map<number, OutboxRow>()
  readonly spawns = new Map<number, SpawnRow>()
  readonly definitions = new Map<string, DefinitionRow>()
  lastEvent = 0
  lastSpawn = 0
}

const page = <Row extends { seq: number }>(rows: Iterable<Row>, { limit, after }: CheckedQueuePage): Row[] =>
  [...rows].filter(({ seq }) => seq > after).slice(0, limit)

export const byTime = (a: DueTimer, b: DueTimer): number =>
  a.fireAt - b.fireAt || compareBytes(a.executionId, b.executionId) || compareBytes(a.path, b.path)

/** A handle on tables in memory: plain and open to everyone, so that each of its methods can be broken. */
export class MemoryBackend implements SyncStoreBackend {
  capabilities: StoreCapabilities
  readonly tables: Tables
  traceMax: number

  constructor(tables: Tables, traceMax: number, given: StoreCapabilities) {
    this.tables = tables
    this.traceMax = traceMax
    this.capabilities = given
  }

  load(id: string): string | undefined {
    return this.tables.executions.get(id)?.data
  }

  loadForEvent(id: string, eventId: string): { data: string | undefined; processed: boolean } {
    return { data: this.load(id), processed: this.isProcessed(id, eventId) }
  }

  commit(commit: PreparedCommit): Verdict {
    this.measure(commit)
    const found = this.versionOf(commit.id)
    if ((found ?? 0) !== commit.expected) return { applied: false, found }
    this.writeExecution(commit)
    return { applied: true, seqs: this.writeCompanions(commit) }
  }

  measure({ data, emits, spawns, timers, processedEventId }: PreparedCommit): void {
    const { maxCommitWrites, maxExecutionBytes } = this.capabilities
    const bytes = Buffer.byteLength(data)
    if (bytes > maxExecutionBytes) throw new CommitTooLarge('bytes', bytes, maxExecutionBytes)
    const writes = 1 + emits.length + spawns.length + timers.length + (processedEventId === undefined ? 0 : 1)
    if (writes > maxCommitWrites) throw new CommitTooLarge('writes', writes, maxCommitWrites)
  }

  versionOf(id: string): number | null {
    return this.tables.executions.get(id)?.summary.version ?? null
  }

  writeExecution({ id, version, data, ...columns }: PreparedCommit): void {
    const { definitionId, status, outcome, activePath, parentId, finishedAt } = columns
    const summary = { id, version, definitionId, status, outcome, activePath, parentId, finishedAt }
    this.tables.executions.set(id, { data, summary })
  }

  writeCompanions(commit: PreparedCommit): number[] {
    const { id, processedEventId, trace } = commit
    if (processedEventId !== undefined) this.mark(id, processedEventId)
    for (const op of commit.timers) {
      if (op.action === 'cancel') this.tables.timers.get(id)?.delete(op.path)
      else this.arm(id, op.path, op.fireAt)
    }
    for (const { childId, rootPath, context } of commit.spawns) {
      const seq = ++this.tables.lastSpawn
      this.tables.spawns.set(seq, { seq, parentId: id, childId, rootPath, context })
    }
    if (trace !== undefined) this.appendTrace(id, trace)
    return commit.emits.map(({ targetId, event }) => this.queue(targetId, event))
  }

  queue(targetId: string | null, event: string): number {
    const seq = ++this.tables.lastEvent
    this.tables.outbox.set(seq, { seq, targetId, event })
    return seq
  }

  mark(id: string, eventId: string): void {
    const { marks } = this.tables
    marks.set(id, (marks.get(id) ?? new Set()).add(eventId))
  }

  arm(id: string, path: string, fireAt: number): void {
    const { timers } = this.tables
    timers.set(id, (timers.get(id) ?? new Map<string, number>()).set(path, fireAt))
  }

  isProcessed(id: string, eventId: string): boolean {
    return this.tables.marks.get(id)?.has(eventId) ?? false
  }

  pendingOutbox(part: CheckedQueuePage): OutboxRow[] {
    return page(this.tables.outbox.values(), part)
  }

  ackOutbox(seqs: readonly number[]): void {
    for (const seq of seqs) this.tables.outbox.delete(seq)
  }

  pendingSpawns(part: CheckedQueuePage): SpawnRow[] {
    return page(this.tables.spawns.values(), part)
  }

  ackSpawn(seqs: readonly number[]): void {
    for (const seq of seqs) this.tables.spawns.delete(seq)
  }

  armed(): DueTimer[] {
    return [...this.tables.timers].flatMap(([executionId, timers]) =>
      [...timers].map(([path, fireAt]) => ({ executionId, path, fireAt })),
    )
  }

  dueTimers(now: number, { limit, after }: CheckedTimerPage): DueTimer[] {
    return this.armed()
      .filter((timer) => timer.fireAt <= now && (after === undefined || byTime(timer, after) > 0))
      .sort(byTime)
      .slice(0, limit)
  }

  deleteTimer(id: string, path: string, fireAt: number): void {
    const timers = this.tables.timers.get(id)
    if (timers?.get(path) === fireAt) timers.delete(path)
  }

  readTrace(id: string): TraceRow[] {
    return [...(this.tables.traces.get(id) ?? [])]
  }

  appendTrace(id: string, entry: string): void {
    const rows = this.readTrace(id)
    rows.push({ index: (rows.at(-1)?.index ?? -1) + 1, entry })
    this.tables.traces.set(id, this.traceMax > 0 ? rows.slice(-this.traceMax) : rows)
  }

  listExecutions({ limit, position, ...filter }: CheckedListQuery): SummaryRows {
    const rows = [...this.tables.executions.values()]
      .map(({ summary }) => summary)
      .filter((row) => matches(row as Parameters<typeof matches>[0], filter))
      .filter(({ id }) => position === null || compareBytes(id, position) > 0)
      .sort((a, b) => compareBytes(a.id, b.id))
    return listingPage(rows, limit)
  }

  idsWithPrefix(prefix: string): string[] {
    return [...this.tables.executions.keys()].filter((id) => id.startsWith(prefix)).sort(compareBytes)
  }

  publishDefinition(row: DefinitionRow): DefinitionRow {
    const stored = this.loadDefinition(row.id, row.version)
    if (stored === undefined) this.tables.definitions.set(JSON.stringify([row.id, row.version]), row)
    return stored ?? row
  }

  loadDefinition(id: string, version: string): DefinitionRow | undefined {
    return this.tables.definitions.get(JSON.stringify([id, version]))
  }

  purge(id: string, expectedVersion: number): boolean {
    const found = this.versionOf(id)
    if (found !== null && found !== expectedVersion) return false
    const { executions, marks, timers, traces, outbox, spawns } = this.tables
    for (const table of [executions, marks, timers, traces]) table.delete(id)
    for (const { seq, targetId } of outbox.values()) if (targetId === id) outbox.delete(seq)
    for (const { seq, parentId } of spawns.values()) if (parentId === id) spawns.delete(seq)
    return found !== null
  }

  close(): void {}
}

/** The same backend as a server is: every answer takes a turn of the event loop. */
const remote = (backend: MemoryBackend): StoreBackend =>
  new Proxy(backend as unknown as StoreBackend, {
    get(_target, key) {
      const member: unknown = Reflect.get(backend, key)
      if (typeof member !== 'function') return member
      return async (...args: unknown[]): Promise<unknown> => {
        await new Promise((resolve) => setImmediate(resolve))
        return member.apply(backend, args)
      }
    },
  })

const text = (value: unknown): string | null => (typeof value === 'string' ? value : null)

/** The columns of a payload that another program stored. */
function summaryOf(id: string, version: number, data: string): SummaryRow {
  let fields: Record<string, unknown> = {}
  try {
    fields = JSON.parse(data) as Record<string, unknown>
  } catch {
    // Not even JSON: there is nothing to tell.
  }
  return {
    id,
    version,
    definitionId: text(fields.definition_id) ?? '',
    status: text(fields.status),
    outcome: text(fields.outcome),
    activePath: text(fields.active_path),
    parentId: text(fields.parent_id),
    finishedAt: typeof fields.finished_at === 'number' ? fields.finished_at : null,
  }
}

const countOf = (groups: ReadonlyMap<string, { size?: number; length?: number }>): number =>
  [...groups.values()].reduce((sum, group) => sum + (group.size ?? group.length ?? 0), 0)

export type Transaction = <T>(work: (store: ExecutionStore, tables: Tables) => Promise<T>) => Promise<T>

export type TransactionalStore = ExecutionStore & { transaction?: Transaction }

/** A database in memory that any number of handles share. */
export class MemoryDatabase {
  readonly #tables = new Map<string, Tables>()
  readonly #given: StoreCapabilities
  readonly #breakBackend: (backend: MemoryBackend) => void

  constructor(given = capabilities, breakBackend: (backend: MemoryBackend) => void = () => {}) {
    this.#given = given
    this.#breakBackend = breakBackend
  }

  tables(prefix: string): Tables {
    const tables = this.#tables.get(prefix) ?? new Tables()
    this.#tables.set(prefix, tables)
    return tables
  }

  open = ({ prefix, traceMax = 200, ...options }: OpenOptions): TransactionalStore => {
    const tables = this.tables(Names(prefix).prefix)
    const on = (own: Tables) => {
      const backend = new MemoryBackend(own, traceMax, this.#given)
      this.#breakBackend(backend)
      return new CheckedStore(remote(backend), options)
    }
    /** For one at a time: what others write meanwhile is lost. */
    const transaction: Transaction = async (work) => {
      const own = Tables.copyOf(tables)
      const { store, restoreVersions } = keepVersions<ExecutionStore>(on(own))
      try {
        const result = await work(store, own)
        Object.assign(tables, own)
        return result
      } catch (error) {
        restoreVersions()
        throw error
      } finally {
        await store.close()
      }
    }
    const store = on(tables)
    return this.#given.transactions ? Object.assign(store, { transaction }) : store
  }

  probes = (prefix: string): Probes => {
    const tables = this.tables(prefix)
    return {
      executionText: async (id) => tables.executions.get(id)?.data,
      insertExecutionText: async (id, version, data) => {
        tables.executions.set(id, { data, summary: summaryOf(id, version, data) })
      },
      insertOutboxText: async (targetId, event) => {
        const seq = ++tables.lastEvent
        tables.outbox.set(seq, { seq, targetId, event })
      },
      rows: async () => ({
        executions: tables.executions.size,
        marks: countOf(tables.marks),
        timers: countOf(tables.timers),
        trace: countOf(tables.traces),
        outbox: tables.outbox.size,
        spawns: tables.spawns.size,
        definitions: tables.definitions.size,
      }),
      tables: async () => [...this.#tables.keys()],
    }
  }
}
