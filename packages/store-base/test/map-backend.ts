import type {
  DefinitionRow,
  OutboxRow,
  SpawnRow,
  StoreBackend,
  SummaryRows,
  SyncStoreBackend,
  TraceRow,
  Verdict,
} from '../src/backend.js'
import type { CheckedListQuery } from '../src/listing.js'
import { compareBytes, listingPage, matches } from '../src/listing.js'
import type { PreparedCommit } from '../src/prepare.js'
import type { StoreCapabilities } from '../src/protocol.js'
import type { CheckedQueuePage, CheckedTimerPage } from '../src/queues.js'
import type { DueTimer } from '../src/records.js'

const cut = <Row extends { seq: number }>(rows: readonly Row[], { limit, after }: CheckedQueuePage): Row[] =>
  rows.filter(({ seq }) => seq > after).slice(0, limit)

const compareTimers = (a: DueTimer, b: DueTimer): number =>
  a.fireAt - b.fireAt || compareBytes(a.executionId, b.executionId) || compareBytes(a.path, b.path)

/** The smallest backend that keeps the protocol. Its rows are open, so that a test can spoil them. */
export class MapBackend implements SyncStoreBackend {
  readonly capabilities: StoreCapabilities = {
    durable: false,
    shared: false,
    identity: false,
    ordered: true,
    paging: 'key',
    maxCommitWrites: Number.POSITIVE_INFINITY,
    maxExecutionBytes: Number.POSITIVE_INFINITY,
    dedupe: 'forever',
    atomicPurge: true,
    transactions: false,
  }
  executions = new Map<string, PreparedCommit>()
  processed = new Set<string>()
  outbox: OutboxRow[] = []
  spawns: SpawnRow[] = []
  timers: DueTimer[] = []
  traces = new Map<string, TraceRow[]>()
  definitions = new Map<string, DefinitionRow>()
  seq = 0

  load(id: string): string | undefined {
    return this.executions.get(id)?.data
  }

  loadForEvent(id: string, eventId: string): { data: string | undefined; processed: boolean } {
    return { data: this.load(id), processed: this.isProcessed(id, eventId) }
  }

  commit(commit: PreparedCommit): Verdict {
    const { id } = commit
    const found = this.executions.get(id)?.version ?? null
    if ((found ?? 0) !== commit.expected) return { applied: false, found }
    this.executions.set(id, commit)
    if (commit.processedEventId !== undefined) this.processed.add(`${id}\0${commit.processedEventId}`)
    for (const { path } of commit.timers)
      this.timers = this.timers.filter((t) => t.executionId !== id || t.path !== path)
    for (const op of commit.timers) {
      if (op.action === 'schedule') this.timers.push({ executionId: id, path: op.path, fireAt: op.fireAt })
    }
    for (const spawn of commit.spawns) this.spawns.push({ seq: ++this.seq, parentId: id, ...spawn })
    if (commit.trace !== undefined) this.appendTrace(id, commit.trace)
    const rows = commit.emits.map(({ targetId, event }) => ({ seq: ++this.seq, targetId, event }))
    this.outbox.push(...rows)
    return { applied: true, seqs: rows.map(({ seq }) => seq) }
  }

  isProcessed(id: string, eventId: string): boolean {
    return this.processed.has(`${id}\0${eventId}`)
  }

  pendingOutbox(page: CheckedQueuePage): OutboxRow[] {
    return cut(this.outbox, page)
  }

  ackOutbox(seqs: readonly number[]): void {
    this.outbox = this.outbox.filter(({ seq }) => !seqs.includes(seq))
  }

  pendingSpawns(page: CheckedQueuePage): SpawnRow[] {
    return cut(this.spawns, page)
  }

  ackSpawn(seqs: readonly number[]): void {
    this.spawns = this.spawns.filter(({ seq }) => !seqs.includes(seq))
  }

  dueTimers(now: number, { limit, after }: CheckedTimerPage): DueTimer[] {
    return this.timers
      .filter((timer) => timer.fireAt <= now && (after === undefined || compareTimers(timer, after) > 0))
      .sort(compareTimers)
      .slice(0, limit)
  }

  deleteTimer(id: string, path: string, fireAt: number): void {
    this.timers = this.timers.filter((t) => t.executionId !== id || t.path !== path || t.fireAt !== fireAt)
  }

  readTrace(id: string): TraceRow[] {
    return this.traces.get(id) ?? []
  }

  appendTrace(id: string, entry: string): void {
    const rows = this.readTrace(id)
    this.traces.set(id, [...rows, { index: rows.length, entry }])
  }

  listExecutions({ limit, position, ...filter }: CheckedListQuery): SummaryRows {
    const rows = this.idsWithPrefix('')
      .filter((id) => position === null || compareBytes(id, position) > 0)
      .flatMap((id) => this.executions.get(id) ?? [])
    return listingPage(
      rows.filter((row) => matches(row, filter)),
      limit,
    )
  }

  idsWithPrefix(prefix: string): string[] {
    return [...this.executions.keys()].filter((id) => id.startsWith(prefix)).sort(compareBytes)
  }

  publishDefinition(row: DefinitionRow): DefinitionRow {
    const stored = this.loadDefinition(row.id, row.version) ?? row
    this.definitions.set(`${row.id}\0${row.version}`, stored)
    return stored
  }

  loadDefinition(id: string, version: string): DefinitionRow | undefined {
    return this.definitions.get(`${id}\0${version}`)
  }

  purge(id: string, expectedVersion: number): boolean {
    const stored = this.executions.get(id)
    if (stored !== undefined && stored.version !== expectedVersion) return false
    this.traces.delete(id)
    return this.executions.delete(id)
  }

  close(): void {}
}

type Method = (...args: unknown[]) => unknown

/** The same backend, each of whose methods is called through `around`. */
export const wrapped = <B extends object>(backend: B, around: (method: string, call: () => unknown) => unknown): B =>
  new Proxy(backend, {
    get(target, key) {
      const member: unknown = Reflect.get(target, key, target)
      if (typeof member !== 'function') return member
      return (...args: unknown[]) => around(String(key), () => (member as Method).apply(target, args))
    },
  })

/** The same backend behind a wire: it sees each call a moment later, and answers with promises. */
export const remote = (backend: SyncStoreBackend): StoreBackend =>
  wrapped(backend, async (_, call) => {
    await new Promise(setImmediate)
    return call()
  }) as unknown as StoreBackend
