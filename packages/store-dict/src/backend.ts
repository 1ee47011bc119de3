import {
  type CheckedListQuery,
  type CheckedQueuePage,
  type CheckedTimerPage,
  compareBytes,
  type DefinitionRow,
  type DueTimer,
  matches,
  type OutboxRow,
  type PreparedCommit,
  type SpawnRow,
  type StoreCapabilities,
  type SummaryRows,
  type SyncStoreBackend,
  type TraceRow,
  type Verdict,
} from '@harel/store-base'

const compareTimers = (a: DueTimer, b: DueTimer): number =>
  a.fireAt - b.fireAt || compareBytes(a.executionId, b.executionId) || compareBytes(a.path, b.path)

const page = <Row extends { seq: number }>(
  rows: ReadonlyMap<number, Row>,
  { limit, after }: CheckedQueuePage,
): Row[] => {
  const found: Row[] = []
  for (const row of rows.values()) {
    if (found.length === limit) break
    if (row.seq > after) found.push(row)
  }
  return found
}

/** The protocol on maps in memory. Each method is atomic because nothing in it can fail half-way. */
export class DictBackend implements SyncStoreBackend {
  readonly capabilities: StoreCapabilities
  readonly #traceMax: number
  readonly #executions = new Map<string, PreparedCommit>()
  readonly #processed = new Map<string, Set<string>>()
  readonly #timers = new Map<string, Map<string, DueTimer>>()
  readonly #traces = new Map<string, TraceRow[]>()
  readonly #definitions = new Map<string, DefinitionRow>()
  // Rows are added by ascending seq, so that the order of insertion is the order of the queue.
  readonly #outbox = new Map<number, OutboxRow>()
  readonly #spawns = new Map<number, SpawnRow>()
  #lastOutboxSeq = 0
  #lastSpawnSeq = 0
  #sortedIds: string[] | undefined

  constructor(capabilities: StoreCapabilities, traceMax: number) {
    this.capabilities = capabilities
    this.#traceMax = traceMax
  }

  load(id: string): string | undefined {
    return this.#executions.get(id)?.data
  }

  loadForEvent(id: string, eventId: string): { data: string | undefined; processed: boolean } {
    return { data: this.load(id), processed: this.isProcessed(id, eventId) }
  }

  commit(commit: PreparedCommit): Verdict {
    const { id } = commit
    const stored = this.#executions.get(id)
    if ((stored?.version ?? 0) !== commit.expected) return { applied: false, found: stored?.version ?? null }
    if (stored === undefined) this.#sortedIds = undefined
    this.#executions.set(id, commit)
    const seqs = commit.emits.map(({ targetId, event }) => {
      const seq = ++this.#lastOutboxSeq
      this.#outbox.set(seq, { seq, targetId, event })
      return seq
    })
    if (commit.processedEventId !== undefined) this.#mark(id, commit.processedEventId)
    for (const { childId, rootPath, context } of commit.spawns) {
      const seq = ++this.#lastSpawnSeq
      this.#spawns.set(seq, { seq, parentId: id, childId, rootPath, context })
    }
    for (const op of commit.timers) {
      const timers = this.#timers.get(id) ?? new Map<string, DueTimer>()
      if (op.action === 'cancel') timers.delete(op.path)
      else this.#timers.set(id, timers.set(op.path, { executionId: id, path: op.path, fireAt: op.fireAt }))
    }
    if (commit.trace !== undefined) this.appendTrace(id, commit.trace)
    return { applied: true, seqs }
  }

  #mark(id: string, eventId: string): void {
    const marks = this.#processed.get(id)
    if (marks === undefined) this.#processed.set(id, new Set([eventId]))
    else marks.add(eventId)
  }

  isProcessed(id: string, eventId: string): boolean {
    return this.#processed.get(id)?.has(eventId) ?? false
  }

  pendingOutbox(part: CheckedQueuePage): OutboxRow[] {
    return page(this.#outbox, part)
  }

  ackOutbox(seqs: readonly number[]): void {
    for (const seq of seqs) this.#outbox.delete(seq)
  }

  pendingSpawns(part: CheckedQueuePage): SpawnRow[] {
    return page(this.#spawns, part)
  }

  ackSpawn(seqs: readonly number[]): void {
    for (const seq of seqs) this.#spawns.delete(seq)
  }

  dueTimers(now: number, { limit, after }: CheckedTimerPage): DueTimer[] {
    const due: DueTimer[] = []
    for (const timers of this.#timers.values()) {
      for (const timer of timers.values()) {
        if (timer.fireAt <= now && (after === undefined || compareTimers(timer, after) > 0)) due.push({ ...timer })
      }
    }
    return due.sort(compareTimers).slice(0, limit)
  }

  deleteTimer(id: string, path: string, fireAt: number): void {
    const timers = this.#timers.get(id)
    if (timers?.get(path)?.fireAt === fireAt) timers.delete(path)
  }

  readTrace(id: string): TraceRow[] {
    return [...(this.#traces.get(id) ?? [])]
  }

  appendTrace(id: string, entry: string): void {
    const steps = this.#traces.get(id) ?? []
    steps.push({ index: (steps.at(-1)?.index ?? -1) + 1, entry })
    if (this.#traceMax > 0 && steps.length > this.#traceMax) steps.splice(0, steps.length - this.#traceMax)
    this.#traces.set(id, steps)
  }

  listExecutions({ limit, position, ...filter }: CheckedListQuery): SummaryRows {
    const offset = Number(position ?? 0)
    const found = this.#ids()
      .map((id) => this.#executions.get(id) as PreparedCommit)
      .filter((row) => matches(row, filter))
    const next = offset + limit
    return { rows: found.slice(offset, next), next: next < found.length ? String(next) : null }
  }

  idsWithPrefix(prefix: string): string[] {
    return this.#ids().filter((id) => id.startsWith(prefix))
  }

  #ids(): readonly string[] {
    this.#sortedIds ??= [...this.#executions.keys()].sort(compareBytes)
    return this.#sortedIds
  }

  publishDefinition(row: DefinitionRow): DefinitionRow {
    const key = JSON.stringify([row.id, row.version])
    const stored = this.#definitions.get(key)
    if (stored === undefined) this.#definitions.set(key, row)
    return stored ?? row
  }

  loadDefinition(id: string, version: string): DefinitionRow | undefined {
    return this.#definitions.get(JSON.stringify([id, version]))
  }

  purge(id: string, expectedVersion: number): boolean {
    const stored = this.#executions.get(id)
    if (stored !== undefined && stored.version !== expectedVersion) return false
    this.#executions.delete(id)
    this.#sortedIds = undefined
    this.#processed.delete(id)
    this.#timers.delete(id)
    this.#traces.delete(id)
    for (const { seq, targetId } of this.#outbox.values()) if (targetId === id) this.#outbox.delete(seq)
    for (const { seq, parentId } of this.#spawns.values()) if (parentId === id) this.#spawns.delete(seq)
    return stored !== undefined
  }

  close(): void {}
}
