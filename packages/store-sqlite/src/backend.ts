import {
  type CheckedListQuery,
  type CheckedQueuePage,
  type CheckedTimerPage,
  type DefinitionRow,
  type DueTimer,
  listingPage,
  type OnWarning,
  type OutboxRow,
  type PreparedCommit,
  type SpawnRow,
  type StoreCapabilities,
  type SummaryRow,
  type SummaryRows,
  type SyncStoreBackend,
  type TraceRow,
  type Verdict,
} from '@harel/store-base'
import { fromSummaryColumn, type SqliteStatements, sqliteStatements } from '@harel/store-base/sql'
import type { Connection } from './connection.js'
import { migrateSchema, prepareSchema, type Settings } from './schema.js'

const capabilitiesOf = (memory: boolean): StoreCapabilities => ({
  durable: !memory,
  shared: !memory,
  identity: false,
  ordered: true,
  paging: 'key',
  maxCommitWrites: Number.POSITIVE_INFINITY,
  // SQLite's own limit of a row (SQLITE_MAX_LENGTH), which holds a little more than the payload.
  maxExecutionBytes: 999_000_000,
  dedupe: 'forever',
  atomicPurge: true,
  transactions: true,
})

/** Runs work whose writes belong together. */
type Write = <T>(work: () => T) => T

/** The protocol on one SQLite connection. */
export class SqliteBackend implements SyncStoreBackend {
  readonly capabilities: StoreCapabilities
  readonly #connection: Connection
  readonly #settings: Settings
  readonly #write: Write
  #statements: SqliteStatements

  private constructor(connection: Connection, settings: Settings, statements: SqliteStatements, write: Write) {
    this.capabilities = capabilitiesOf(connection.db.memory)
    this.#connection = connection
    this.#settings = settings
    this.#statements = statements
    this.#write = write
  }

  /** Makes the tables ready. @throws SchemaMissing, InvalidArgument */
  static open(connection: Connection, settings: Settings, onWarning: OnWarning): SqliteBackend {
    const statements = sqliteStatements(settings.prefix, prepareSchema(connection, settings, onWarning))
    return new SqliteBackend(connection, settings, statements, (work) => connection.write(work))
  }

  /** The same, whose writes are part of a transaction that somebody else begins and ends. */
  within(write: Write): SyncStoreBackend {
    const bound = new SqliteBackend(this.#connection, this.#settings, this.#statements, write)
    return Object.assign(bound, { close: () => {} })
  }

  load(id: string): string | undefined {
    return this.#connection.get<{ data: string }>(this.#statements.load(id))?.data
  }

  loadForEvent(id: string, eventId: string): { data: string | undefined; processed: boolean } {
    const row = this.#connection.get<{ data: string; processed: number }>(this.#statements.loadForEvent(id, eventId))
    return { data: row?.data, processed: row?.processed === 1 }
  }

  commit(commit: PreparedCommit): Verdict {
    return this.#write(() => this.#apply(commit))
  }

  /** Many commits in one transaction. A refused one has written nothing, so it is no reason to undo the others. */
  commitAll(commits: readonly PreparedCommit[]): Verdict[] {
    return this.#write(() => commits.map((commit) => this.#apply(commit)))
  }

  /** The compare-and-set comes first, so that a refused commit has written nothing. */
  #apply(commit: PreparedCommit): Verdict {
    const { id, emits, processedEventId, spawns, timers, trace } = commit
    const connection = this.#connection
    const statements = this.#statements
    if (!this.#compareAndSet(commit)) {
      return { applied: false, found: connection.get<{ version: number }>(statements.version(id))?.version ?? null }
    }
    const seqs = emits.map((emit) => Number(connection.run(statements.emit(emit)).lastInsertRowid))
    if (processedEventId !== undefined) connection.run(statements.mark(id, processedEventId))
    for (const spawn of spawns) connection.run(statements.spawn(id, spawn))
    for (const timer of timers) connection.run(statements.timer(id, timer))
    if (trace !== undefined) this.#trace(id, trace)
    return { applied: true, seqs }
  }

  #compareAndSet(commit: PreparedCommit): boolean {
    const changesRow = (statement: Parameters<Connection['run']>[0]) => this.#connection.run(statement).changes > 0
    return (
      (commit.expected === 0 && changesRow(this.#statements.insert(commit))) ||
      this.#statements.updates(commit).some(changesRow)
    )
  }

  #trace(id: string, entry: string): void {
    const row = this.#connection.get<{ idx: number }>(this.#statements.appendTrace(id, entry))
    const oldest = (row?.idx ?? 0) - this.#settings.traceMax
    if (this.#settings.traceMax > 0 && oldest >= 0) this.#connection.run(this.#statements.trimTrace(id, oldest))
  }

  isProcessed(id: string, eventId: string): boolean {
    return this.#connection.get(this.#statements.isProcessed(id, eventId)) !== undefined
  }

  pendingOutbox(page: CheckedQueuePage): OutboxRow[] {
    return this.#connection
      .all<{ seq: number; target_id: string | null; event: string }>(this.#statements.pendingOutbox(page))
      .map(({ seq, target_id, event }) => ({ seq, targetId: target_id, event }))
  }

  ackOutbox(seqs: readonly number[]): void {
    this.#write(() => {
      for (const seq of seqs) this.#connection.run(this.#statements.ackOutbox(seq))
    })
  }

  pendingSpawns(page: CheckedQueuePage): SpawnRow[] {
    return this.#connection
      .all<{ seq: number; parent_id: string; child_id: string; root_path: string; context: string }>(
        this.#statements.pendingSpawns(page),
      )
      .map(({ seq, parent_id, child_id, root_path, context }) => ({
        seq,
        parentId: parent_id,
        childId: child_id,
        rootPath: root_path,
        context,
      }))
  }

  ackSpawn(seqs: readonly number[]): void {
    this.#write(() => {
      for (const seq of seqs) this.#connection.run(this.#statements.ackSpawn(seq))
    })
  }

  dueTimers(now: number, page: CheckedTimerPage): DueTimer[] {
    return this.#connection
      .all<{ execution_id: string; path: string; fire_at: number }>(this.#statements.dueTimers(now, page))
      .map(({ execution_id, path, fire_at }) => ({ executionId: execution_id, path, fireAt: fire_at }))
  }

  deleteTimer(id: string, path: string, fireAt: number): void {
    this.#write(() => this.#connection.run(this.#statements.deleteTimer(id, path, fireAt)))
  }

  readTrace(id: string): TraceRow[] {
    return this.#connection
      .all<{ idx: number; entry: string }>(this.#statements.readTrace(id))
      .map(({ idx, entry }) => ({ index: idx, entry }))
  }

  appendTrace(id: string, entry: string): void {
    this.#write(() => this.#trace(id, entry))
  }

  listExecutions(query: CheckedListQuery): SummaryRows {
    const rows = this.#connection
      .all<{
        id: string
        definition_id: string
        version: number
        status: string | null
        outcome: string | null
        active_path: string | null
        parent_id: string | null
        finished_at: number | null
      }>(this.#statements.list(query))
      .map(
        (row): SummaryRow => ({
          id: row.id,
          definitionId: row.definition_id,
          version: row.version,
          status: row.status,
          outcome: fromSummaryColumn(row.outcome),
          activePath: fromSummaryColumn(row.active_path),
          parentId: row.parent_id,
          finishedAt: row.finished_at,
        }),
      )
    return listingPage(rows, query.limit)
  }

  idsWithPrefix(prefix: string): string[] {
    return this.#connection.all<{ id: string }>(this.#statements.idsWithPrefix(prefix)).map(({ id }) => id)
  }

  publishDefinition(row: DefinitionRow): DefinitionRow {
    return this.#write(() => {
      this.#connection.run(this.#statements.publishDefinition(row))
      return this.loadDefinition(row.id, row.version) ?? row
    })
  }

  loadDefinition(id: string, version: string): DefinitionRow | undefined {
    const row = this.#connection.get<{ definition: string; published_at: number | null }>(
      this.#statements.loadDefinition(id, version),
    )
    return row && { id, version, definition: row.definition, publishedAt: row.published_at }
  }

  purge(id: string, expectedVersion: number): boolean {
    return this.#write(() => {
      const purged = this.#connection.run(this.#statements.purge(id, expectedVersion)).changes > 0
      if (!purged && this.#connection.get(this.#statements.version(id)) !== undefined) return false
      for (const companion of this.#statements.purgeCompanions(id)) this.#connection.run(companion)
      return purged
    })
  }

  /** Adds what `prepareSchema` left out. */
  migrate(): void {
    migrateSchema(this.#connection, this.#settings.prefix)
    this.#statements = sqliteStatements(this.#settings.prefix, { summary: true })
  }

  close(): void {
    this.#connection.close()
  }
}
