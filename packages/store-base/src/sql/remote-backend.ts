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
import { CommitTooLarge } from '../errors.js'
import { type CheckedListQuery, listingPage } from '../listing.js'
import { Names } from '../names.js'
import { type PreparedCommit, textLength } from '../prepare.js'
import type { StoreCapabilities } from '../protocol.js'
import type { CheckedQueuePage, CheckedTimerPage } from '../queues.js'
import type { DueTimer } from '../records.js'
import type { SqlExecutor, SqlResult } from './executor.js'
import { guardedCommits } from './guarded-commit.js'
import type { Sql } from './listing.js'
import { migrateRemoteSchema } from './remote-schema.js'
import { sqliteStatements } from './sqlite-statements.js'
import { stepwiseCommit } from './stepwise-commit.js'
import { fromSummaryColumn } from './summary-text.js'

export interface RemoteSqliteOptions {
  prefix: string
  traceMax: number
  /** Whether the summary columns can be relied on; see `sqliteStatements`. */
  summary: boolean
  /** Whether concurrent commits share a transaction. */
  groupCommit: boolean
  /** How many such transactions may be under way at once, one being made while another is carried out. Default: 1. */
  inFlight?: number
}

type Row = SqlResult['rows'][number]
type Value = Row[number]

/** How many rows are asked for at most once all of them were too many for one answer. */
const LARGEST_PART = 1000

const text = (value: Value | undefined): string => (value === null || value === undefined ? '' : String(value))
const textOrNull = (value: Value | undefined): string | null =>
  value === null || value === undefined ? null : String(value)
const numberOrNull = (value: Value | undefined): number | null =>
  value === null || value === undefined ? null : Number(value)

type Statements = ReturnType<typeof statementsOf>

/** All that is asked of the database, made once for a store and its transactions. */
const statementsOf = (options: Pick<RemoteSqliteOptions, 'prefix' | 'traceMax' | 'summary'>) => ({
  ...sqliteStatements(options.prefix, options),
  commits: guardedCommits(options),
})

/** The protocol on a database of SQLite's dialect that is not in this process, over its executor. */
export class RemoteSqliteBackend implements StoreBackend {
  readonly capabilities: StoreCapabilities
  readonly #executor: SqlExecutor
  #options: RemoteSqliteOptions
  #statements: Statements
  readonly #commits: Coalescer<PreparedCommit, Verdict> | undefined

  constructor(
    executor: SqlExecutor,
    capabilities: StoreCapabilities,
    options: RemoteSqliteOptions,
    statements = statementsOf(options),
  ) {
    this.capabilities = capabilities
    this.#executor = executor
    this.#options = options
    this.#statements = statements
    const { groupCommit, inFlight = 1 } = options
    if (groupCommit) {
      this.#commits = new Coalescer({
        run: (batch) => this.#commitAll(batch),
        keyOf: ({ id }) => id,
        sizeOf: textLength,
        mayReplay: (error) => executor.reasonOf(error) === 'refused',
        inFlight,
      })
    }
  }

  async load(id: string): Promise<string | undefined> {
    const [row] = await this.#read(this.#statements.load(id))
    return row && text(row[0])
  }

  async loadForEvent(id: string, eventId: string): Promise<{ data: string | undefined; processed: boolean }> {
    const [row] = await this.#read(this.#statements.loadForEvent(id, eventId))
    return { data: row && text(row[0]), processed: Number(row?.[1]) === 1 }
  }

  async commit(commit: PreparedCommit): Promise<Verdict> {
    const { data, outcome, activePath, emits, spawns, trace } = commit
    this.#checkSize(data, outcome, activePath)
    for (const { event } of emits) this.#checkSize(event)
    for (const { context } of spawns) this.#checkSize(context)
    this.#checkSize(trace)
    if (this.#commits !== undefined) return this.#commits.submit(commit)
    const [verdict] = await this.#commitAll([commit])
    return verdict as Verdict
  }

  async #commitAll(commits: readonly PreparedCommit[]): Promise<Verdict[]> {
    const [only] = commits
    if (only !== undefined && commits.length === 1 && this.#executor.transact !== undefined) {
      return [
        await this.#executor.transact((run) => stepwiseCommit(this.#statements, this.#options.traceMax, only, run)),
      ]
    }
    const { statements, verdicts } = this.#statements.commits(commits)
    return verdicts(await this.#executor.write(statements))
  }

  async isProcessed(id: string, eventId: string): Promise<boolean> {
    return (await this.#read(this.#statements.isProcessed(id, eventId))).length > 0
  }

  async pendingOutbox({ after, limit }: CheckedQueuePage): Promise<OutboxRow[]> {
    const rows = await this.#readInParts(limit, (part, last) =>
      this.#statements.pendingOutbox({ after: Number(last?.[0] ?? after), limit: part }),
    )
    return rows.map(([seq, targetId, event]) => ({
      seq: Number(seq),
      targetId: textOrNull(targetId),
      event: text(event),
    }))
  }

  async ackOutbox(seqs: readonly number[]): Promise<void> {
    await this.#executor.write(deletion(Names(this.#options.prefix).outbox, seqs))
  }

  async pendingSpawns({ after, limit }: CheckedQueuePage): Promise<SpawnRow[]> {
    const rows = await this.#readInParts(limit, (part, last) =>
      this.#statements.pendingSpawns({ after: Number(last?.[0] ?? after), limit: part }),
    )
    return rows.map(([seq, parentId, childId, rootPath, context]) => ({
      seq: Number(seq),
      parentId: text(parentId),
      childId: text(childId),
      rootPath: text(rootPath),
      context: text(context),
    }))
  }

  async ackSpawn(seqs: readonly number[]): Promise<void> {
    await this.#executor.write(deletion(Names(this.#options.prefix).spawns, seqs))
  }

  async dueTimers(now: number, { after, limit }: CheckedTimerPage): Promise<DueTimer[]> {
    const rows = await this.#readInParts(limit, (part, last) =>
      this.#statements.dueTimers(now, { after: last === undefined ? after : toTimer(last), limit: part }),
    )
    return rows.map(toTimer)
  }

  async deleteTimer(id: string, path: string, fireAt: number): Promise<void> {
    await this.#executor.write([this.#statements.deleteTimer(id, path, fireAt)])
  }

  async readTrace(id: string): Promise<TraceRow[]> {
    const all = this.#statements.readTrace(id)
    const rows = await this.#readInParts(
      Number.POSITIVE_INFINITY,
      (part, last) => behind(all, 'idx', last?.[0] ?? -1, part),
      'replica',
    )
    return rows.map(([index, entry]) => ({ index: Number(index), entry: text(entry) }))
  }

  async appendTrace(id: string, entry: string): Promise<void> {
    this.#checkSize(entry)
    await this.#executor.write(this.#statements.trace(id, entry, this.#options.traceMax))
  }

  async listExecutions(query: CheckedListQuery): Promise<SummaryRows> {
    // One more than the page holds tells whether there is a next one.
    const rows = await this.#readInParts(
      query.limit + 1,
      (part, last) =>
        this.#statements.list({
          ...query,
          limit: part - 1,
          position: last === undefined ? query.position : text(last[0]),
        }),
      'replica',
    )
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
    const all = this.#statements.idsWithPrefix(prefix)
    const rows = await this.#readInParts(
      Number.POSITIVE_INFINITY,
      (part, last) => behind(all, 'id', last?.[0] ?? '', part),
      'replica',
    )
    return rows.map(([id]) => text(id))
  }

  async publishDefinition(row: DefinitionRow): Promise<DefinitionRow> {
    this.#checkSize(row.definition)
    const { publishDefinition, loadDefinition } = this.#statements
    const [, stored] = await this.#executor.write([publishDefinition(row), loadDefinition(row.id, row.version)])
    return toDefinition(row.id, row.version, stored?.rows[0]) ?? row
  }

  async loadDefinition(id: string, version: string): Promise<DefinitionRow | undefined> {
    const [row] = await this.#read(this.#statements.loadDefinition(id, version))
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
    const options = { ...this.#options, groupCommit: false }
    return new RemoteSqliteBackend(transaction, this.capabilities, options, this.#statements)
  }

  /** Adds what was left out at start-up because a table is large. */
  async migrate(): Promise<void> {
    await migrateRemoteSchema(this.#executor, this.#options.prefix)
    this.#options = { ...this.#options, summary: true }
    this.#statements = statementsOf(this.#options)
  }

  async close(): Promise<void> {
    await this.#commits?.drain()
    await this.#executor.close()
  }

  async #read(statement: Sql, from?: 'primary' | 'replica'): Promise<readonly Row[]> {
    const [result] = await this.#executor.read([statement], from)
    return result?.rows ?? []
  }

  /**
   * Up to `limit` rows; in parts, each smaller than the one that failed, where they are too large for one answer.
   *
   * @param statementFor reads up to so many rows behind a row
   */
  async #readInParts(
    limit: number,
    statementFor: (limit: number, last: Row | undefined) => Sql,
    from?: 'primary' | 'replica',
  ): Promise<Row[]> {
    const rows: Row[] = []
    let size = limit
    while (rows.length < limit) {
      const wanted = Math.min(size, limit - rows.length)
      try {
        const part = await this.#read(statementFor(wanted, rows.at(-1)), from)
        for (const row of part) rows.push(row)
        if (part.length < wanted) break
      } catch (error) {
        if (wanted === 1 || this.#executor.reasonOf(error) !== 'too large') throw error
        size = Math.ceil(Math.min(wanted, LARGEST_PART) / 2)
      }
    }
    return rows
  }

  /** @throws CommitTooLarge for texts that are more than a row of the database holds */
  #checkSize(...texts: readonly (string | null | undefined)[]): void {
    const { maxExecutionBytes: limit } = this.capabilities
    const length = texts.reduce((sum, each) => sum + (each?.length ?? 0), 0)
    // A character has three bytes at most.
    if (length * 3 <= limit) return
    const size = texts.reduce((sum, each) => sum + Buffer.byteLength(each ?? ''), 0)
    if (size > limit) throw new CommitTooLarge('bytes in a row', size, limit)
  }
}

const deletion = (table: string, seqs: readonly number[]): Sql[] =>
  seqs.length === 0
    ? []
    : [
        {
          sql: `DELETE FROM "${table}" WHERE seq IN (SELECT value FROM json_each(?))`,
          params: [JSON.stringify(seqs)],
        },
      ]

/** Up to `limit` rows of a statement that is ordered by `key`, behind a value of it. */
const behind = ({ sql, params }: Sql, key: string, value: Value, limit: number): Sql => ({
  sql: `SELECT * FROM (${sql}) WHERE ${key} > ? ORDER BY ${key} LIMIT ?`,
  // SQLite takes a negative limit for none.
  params: [...params, value, limit === Number.POSITIVE_INFINITY ? -1 : limit],
})

const toTimer = ([executionId, path, fireAt]: Row): DueTimer => ({
  executionId: text(executionId),
  path: text(path),
  fireAt: Number(fireAt),
})

const toDefinition = (id: string, version: string, row: Row | undefined): DefinitionRow | undefined =>
  row && { id, version, definition: text(row[0]), publishedAt: numberOrNull(row[1]) }
