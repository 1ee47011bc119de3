import type {
  DefinitionRow,
  OutboxRow,
  SpawnRow,
  StoreBackend,
  SummaryRow,
  SummaryRows,
  TraceRow,
  Verdict,
} from '../backend.js'
import { Coalescer } from '../coalescer.js'
import { StoreUnavailable } from '../errors.js'
import { type CheckedListQuery, listingPage } from '../listing.js'
import type { PreparedCommit } from '../prepare.js'
import type { StoreCapabilities } from '../protocol.js'
import type { CheckedQueuePage, CheckedTimerPage } from '../queues.js'
import type { DueTimer } from '../records.js'
import type { SqlExecutor, SqlResult } from './executor.js'
import { guardedCommits } from './guarded-commit.js'
import type { Sql } from './listing.js'
import { migrateRemoteSchema } from './remote-schema.js'
import { type SqliteStatements, sqliteStatements } from './sqlite-statements.js'
import { fromSummaryColumn } from './summary-text.js'

export interface RemoteSqliteOptions {
  prefix: string
  traceMax: number
  /** Whether the summary columns can be relied on; see `sqliteStatements`. */
  summary: boolean
  /** Whether concurrent commits share a transaction. */
  groupCommit: boolean
}

type Value = SqlResult['rows'][number][number]

const text = (value: Value | undefined): string => (value === null || value === undefined ? '' : String(value))
const textOrNull = (value: Value | undefined): string | null =>
  value === null || value === undefined ? null : String(value)
const numberOrNull = (value: Value | undefined): number | null =>
  value === null || value === undefined ? null : Number(value)

/** The protocol on a database of SQLite's dialect that is not in this process, over its executor. */
export class RemoteSqliteBackend implements StoreBackend {
  readonly capabilities: StoreCapabilities
  readonly #executor: SqlExecutor
  #options: RemoteSqliteOptions
  #statements: SqliteStatements
  readonly #commits: Coalescer<PreparedCommit, Verdict> | undefined

  constructor(executor: SqlExecutor, capabilities: StoreCapabilities, options: RemoteSqliteOptions) {
    this.capabilities = capabilities
    this.#executor = executor
    this.#options = options
    this.#statements = sqliteStatements(options.prefix, options)
    if (options.groupCommit) {
      this.#commits = new Coalescer({
        run: (batch) => this.#commitAll(batch),
        keyOf: ({ id }) => id,
        sizeOf: ({ data }) => data.length,
        // A statement that the database refused has undone the batch; what else is unavailable is so for every half of it.
        mayReplay: (error) => error instanceof StoreUnavailable && isRefusal(error),
      })
    }
  }

  async #rows(statement: Sql): Promise<SqlResult['rows']> {
    const [result] = await this.#executor.read([statement])
    return result?.rows ?? []
  }

  async load(id: string): Promise<string | undefined> {
    const [row] = await this.#rows(this.#statements.load(id))
    return row && text(row[0])
  }

  async loadForEvent(id: string, eventId: string): Promise<{ data: string | undefined; processed: boolean }> {
    const [row] = await this.#rows(this.#statements.loadForEvent(id, eventId))
    return { data: row && text(row[0]), processed: Number(row?.[1]) === 1 }
  }

  async commit(commit: PreparedCommit): Promise<Verdict> {
    if (this.#commits !== undefined) return this.#commits.submit(commit)
    const [verdict] = await this.#commitAll([commit])
    return verdict as Verdict
  }

  async #commitAll(commits: readonly PreparedCommit[]): Promise<Verdict[]> {
    const { statements, verdicts } = guardedCommits(this.#options, commits)
    return verdicts(await this.#executor.write(statements))
  }

  async isProcessed(id: string, eventId: string): Promise<boolean> {
    return (await this.#rows(this.#statements.isProcessed(id, eventId))).length > 0
  }

  async pendingOutbox(page: CheckedQueuePage): Promise<OutboxRow[]> {
    const rows = await this.#rows(this.#statements.pendingOutbox(page))
    return rows.map(([seq, targetId, event]) => ({
      seq: Number(seq),
      targetId: textOrNull(targetId),
      event: text(event),
    }))
  }

  async ackOutbox(seqs: readonly number[]): Promise<void> {
    await this.#executor.write(seqs.map((seq) => this.#statements.ackOutbox(seq)))
  }

  async pendingSpawns(page: CheckedQueuePage): Promise<SpawnRow[]> {
    const rows = await this.#rows(this.#statements.pendingSpawns(page))
    return rows.map(([seq, parentId, childId, rootPath, context]) => ({
      seq: Number(seq),
      parentId: text(parentId),
      childId: text(childId),
      rootPath: text(rootPath),
      context: text(context),
    }))
  }

  async ackSpawn(seqs: readonly number[]): Promise<void> {
    await this.#executor.write(seqs.map((seq) => this.#statements.ackSpawn(seq)))
  }

  async dueTimers(now: number, page: CheckedTimerPage): Promise<DueTimer[]> {
    const rows = await this.#rows(this.#statements.dueTimers(now, page))
    return rows.map(([executionId, path, fireAt]) => ({
      executionId: text(executionId),
      path: text(path),
      fireAt: Number(fireAt),
    }))
  }

  async deleteTimer(id: string, path: string, fireAt: number): Promise<void> {
    await this.#executor.write([this.#statements.deleteTimer(id, path, fireAt)])
  }

  async readTrace(id: string): Promise<TraceRow[]> {
    const rows = await this.#rows(this.#statements.readTrace(id))
    return rows.map(([index, entry]) => ({ index: Number(index), entry: text(entry) }))
  }

  async appendTrace(id: string, entry: string): Promise<void> {
    const { traceMax } = this.#options
    const trim = traceMax === 0 ? [] : [this.#statements.keepNewest(id, traceMax)]
    await this.#executor.write([this.#statements.appendTrace(id, entry), ...trim])
  }

  async listExecutions(query: CheckedListQuery): Promise<SummaryRows> {
    const rows = await this.#rows(this.#statements.list(query))
    const summaries = rows.map(
      ([id, definitionId, version, status, outcome, activePath, parentId, finishedAt]): SummaryRow => ({
        id: text(id),
        definitionId: text(definitionId),
        version: Number(version),
        status: textOrNull(status),
        outcome: fromSummaryColumn(textOrNull(outcome)),
        activePath: fromSummaryColumn(textOrNull(activePath)),
        parentId: textOrNull(parentId),
        finishedAt: numberOrNull(finishedAt),
      }),
    )
    return listingPage(summaries, query.limit)
  }

  async idsWithPrefix(prefix: string): Promise<string[]> {
    return (await this.#rows(this.#statements.idsWithPrefix(prefix))).map(([id]) => text(id))
  }

  async publishDefinition(row: DefinitionRow): Promise<DefinitionRow> {
    const { publishDefinition, loadDefinition } = this.#statements
    const [, stored] = await this.#executor.write([publishDefinition(row), loadDefinition(row.id, row.version)])
    return toDefinition(row.id, row.version, stored?.rows[0]) ?? row
  }

  async loadDefinition(id: string, version: string): Promise<DefinitionRow | undefined> {
    const [row] = await this.#rows(this.#statements.loadDefinition(id, version))
    return toDefinition(id, version, row)
  }

  /** The companions go first, while the execution still tells whether they may; it goes last. */
  async purge(id: string, expectedVersion: number): Promise<boolean> {
    const { purge, purgeCompanionsUnless } = this.#statements
    const results = await this.#executor.write([
      ...purgeCompanionsUnless(id, expectedVersion),
      purge(id, expectedVersion),
    ])
    return (results.at(-1)?.changes ?? 0) > 0
  }

  /** The same inside a caller's transaction. */
  within(transaction: SqlExecutor): RemoteSqliteBackend {
    return new RemoteSqliteBackend(transaction, this.capabilities, { ...this.#options, groupCommit: false })
  }

  /** Adds what was left out at start-up because a table is large. */
  async migrate(): Promise<void> {
    await migrateRemoteSchema(this.#executor, this.#options.prefix)
    this.#options = { ...this.#options, summary: true }
    this.#statements = sqliteStatements(this.#options.prefix, this.#options)
  }

  async close(): Promise<void> {
    await this.#commits?.drain()
    await this.#executor.close()
  }
}

/** Whether the database has answered with an error of SQLite's, other than that it is busy. */
const isRefusal = ({ cause }: StoreUnavailable): boolean =>
  cause instanceof Error &&
  !/SQLITE_BUSY|SQLITE_LOCKED|database is locked/.test(`${'code' in cause ? cause.code : ''} ${cause.message}`)

const toDefinition = (id: string, version: string, row: readonly Value[] | undefined): DefinitionRow | undefined =>
  row && { id, version, definition: text(row[0]), publishedAt: numberOrNull(row[1]) }
