import {
  type CheckedListQuery,
  type CheckedQueuePage,
  type CheckedTimerPage,
  type DefinitionRow,
  type DueTimer,
  listingPage,
  type OutboxRow,
  type PreparedCommit,
  prefixEnd,
  type SpawnRow,
  type StoreBackend,
  type StoreCapabilities,
  type SummaryRow,
  type SummaryRows,
  type TraceRow,
  type Verdict,
} from '@harel/store-base'
import { fromSummaryColumn } from '@harel/store-base/sql'
import { arrayText, type Client, type Row } from './client.js'
import type { Tables } from './commit-functions.js'
import { CommitWriter, MAX_BYTES } from './commit-writer.js'
import { functionsOf, tablesOf } from './functions.js'
import { listing, scanningListing } from './listing.js'
import type { Settings } from './options.js'
import { untilFree } from './pause.js'
import type { Place } from './schema.js'

export const capabilities: StoreCapabilities = {
  durable: true,
  shared: true,
  identity: false,
  ordered: true,
  paging: 'key',
  maxCommitWrites: Number.POSITIVE_INFINITY,
  maxExecutionBytes: MAX_BYTES,
  dedupe: 'forever',
  atomicPurge: true,
  transactions: true,
}

/** The protocol on PostgreSQL. */
export class PostgresBackend implements StoreBackend {
  readonly capabilities = capabilities
  readonly #client: Client
  readonly #settings: Settings
  #place: Place
  readonly #inTransaction: boolean
  readonly #tables: Tables
  readonly #functions: ReturnType<typeof functionsOf>
  readonly #commits: CommitWriter
  readonly #end: () => Promise<void>

  /**
   * @param inTransaction for a client that is a transaction of the caller's
   * @param end lets go of the client
   */
  constructor(client: Client, settings: Settings, place: Place, inTransaction: boolean, end: () => Promise<void>) {
    this.#client = client
    this.#settings = settings
    this.#place = place
    this.#inTransaction = inTransaction
    this.#end = end
    this.#tables = tablesOf(settings.prefix, place.schema)
    this.#functions = functionsOf(settings.prefix, place.schema)
    this.#commits = new CommitWriter(client, { ...settings, functions: this.#functions, inTransaction })
  }

  async load(id: string): Promise<string | undefined> {
    const [row] = await this.#client.read(`SELECT data FROM ${this.#tables.executions} WHERE id = $1`, id)
    return row?.[0] ?? undefined
  }

  async loadForEvent(id: string, eventId: string): Promise<{ data: string | undefined; processed: boolean }> {
    const { executions, processed } = this.#tables
    const [row] = await this.#client.read(
      `SELECT data, EXISTS (SELECT 1 FROM ${processed} WHERE execution_id = $1 AND event_id = $2)::text
         FROM ${executions} WHERE id = $1`,
      id,
      eventId,
    )
    return { data: row?.[0] ?? undefined, processed: row?.[1] === 'true' }
  }

  async commit(commit: PreparedCommit): Promise<Verdict> {
    return this.#commits.commit(commit)
  }

  async isProcessed(id: string, eventId: string): Promise<boolean> {
    const text = `SELECT 1 FROM ${this.#tables.processed} WHERE execution_id = $1 AND event_id = $2`
    return (await this.#client.read(text, id, eventId)).length > 0
  }

  async pendingOutbox({ after, limit }: CheckedQueuePage): Promise<OutboxRow[]> {
    const text = `SELECT seq, target_id, event FROM ${this.#tables.outbox} WHERE seq > $1 ORDER BY seq LIMIT $2`
    const rows = await this.#client.read(text, after, limitOf(limit))
    return rows.map(([seq, targetId = null, event]) => ({ seq: Number(seq), targetId, event: event ?? '' }))
  }

  async ackOutbox(seqs: readonly number[]): Promise<void> {
    await this.#client.write(`DELETE FROM ${this.#tables.outbox} WHERE seq = ANY ($1)`, arrayText(seqs))
  }

  async pendingSpawns({ after, limit }: CheckedQueuePage): Promise<SpawnRow[]> {
    const text = `SELECT seq, parent_id, child_id, root_path, context FROM ${this.#tables.spawns} WHERE seq > $1 ORDER BY seq LIMIT $2`
    const rows = await this.#client.read(text, after, limitOf(limit))
    return rows.map(([seq, parentId, childId, rootPath, context]) => ({
      seq: Number(seq),
      parentId: parentId ?? '',
      childId: childId ?? '',
      rootPath: rootPath ?? '',
      context: context ?? '',
    }))
  }

  async ackSpawn(seqs: readonly number[]): Promise<void> {
    await this.#client.write(`DELETE FROM ${this.#tables.spawns} WHERE seq = ANY ($1)`, arrayText(seqs))
  }

  async dueTimers(now: number, { after, limit }: CheckedTimerPage): Promise<DueTimer[]> {
    const behind = after === undefined ? '' : 'AND (fire_at, execution_id COLLATE "C", path COLLATE "C") > ($3, $4, $5)'
    const rows = await this.#client.read(
      `SELECT execution_id, path, fire_at FROM ${this.#tables.timers} WHERE fire_at <= $1 ${behind}
         ORDER BY fire_at, execution_id COLLATE "C", path COLLATE "C" LIMIT $2`,
      now,
      limitOf(limit),
      ...(after === undefined ? [] : [after.fireAt, after.executionId, after.path]),
    )
    return rows.map(([executionId, path, fireAt]) => ({
      executionId: executionId ?? '',
      path: path ?? '',
      fireAt: Number(fireAt),
    }))
  }

  async deleteTimer(id: string, path: string, fireAt: number): Promise<void> {
    const text = `DELETE FROM ${this.#tables.timers} WHERE execution_id = $1 AND path = $2 AND fire_at = $3`
    await this.#client.write(text, id, path, fireAt)
  }

  async readTrace(id: string): Promise<TraceRow[]> {
    const text = `SELECT idx, entry FROM ${this.#tables.trace} WHERE execution_id = $1 ORDER BY idx`
    const rows = await this.#client.read(text, id)
    return rows.map(([index, entry]) => ({ index: Number(index), entry: entry ?? '' }))
  }

  async appendTrace(id: string, entry: string): Promise<void> {
    await this.#client.write(`SELECT ${this.#functions.appendTrace}($1, $2, $3)`, id, entry, this.#settings.traceMax)
  }

  async listExecutions(query: CheckedListQuery): Promise<SummaryRows> {
    // No status at all: no range to read.
    if (query.statuses?.length === 0) return { rows: [], next: null }
    const { text, params } = this.#place.summary
      ? listing(this.#tables.executions, query)
      : scanningListing(this.#summaries(), query)
    const rows = await this.#client.read(text, ...params)
    return listingPage(rows.map(toSummaryRow), query.limit)
  }

  /** For rows whose summaries are not filled yet: takes them from the payloads. */
  #summaries(): string {
    const { executions } = this.#tables
    const { summary } = this.#functions
    return `(SELECT e.id, e.definition_id, e.version, s.* FROM ${executions} e, LATERAL (
      SELECT e.status, e.outcome, e.active_path, e.parent_id, e.finished_at WHERE e.meta_version = e.version UNION ALL
      SELECT s.status, s.outcome, s.active_path, s.parent_id, s.finished_at FROM ${summary}(e.data) s
        WHERE e.meta_version IS DISTINCT FROM e.version) s) summaries`
  }

  async idsWithPrefix(prefix: string): Promise<string[]> {
    const end = prefixEnd(prefix)
    const below = end === undefined ? '' : 'AND id COLLATE "C" < $2'
    const text = `SELECT id FROM ${this.#tables.executions} WHERE id COLLATE "C" >= $1 ${below} ORDER BY id COLLATE "C"`
    const rows = await this.#client.read(text, prefix, ...(end === undefined ? [] : [end]))
    return rows.map(([id]) => id ?? '')
  }

  async publishDefinition(row: DefinitionRow): Promise<DefinitionRow> {
    await this.#client.write(
      `INSERT INTO ${this.#tables.definitions} (id, version, definition, published_at)
         VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING`,
      row.id,
      row.version,
      row.definition,
      row.publishedAt,
    )
    // A second statement, because one that inserts nothing does not show what is there.
    return (await this.loadDefinition(row.id, row.version)) ?? row
  }

  async loadDefinition(id: string, version: string): Promise<DefinitionRow | undefined> {
    const text = `SELECT definition, published_at FROM ${this.#tables.definitions} WHERE id = $1 AND version = $2`
    const [row] = await this.#client.read(text, id, version)
    return row && { id, version, definition: row[0] ?? '', publishedAt: row[1] == null ? null : Number(row[1]) }
  }

  async purge(id: string, expectedVersion: number): Promise<boolean> {
    const { executions, processed, trace, timers, outbox, spawns } = this.#tables
    // One statement: the companions go if the execution went or was not there.
    const companion = (table: string, column: string) => `DELETE FROM ${table} USING gone WHERE ${column} = $1`
    const text = `WITH held AS (
        SELECT version FROM ${executions} WHERE id = $1 FOR UPDATE ${this.#inTransaction ? '' : 'SKIP LOCKED'}
      ), purged AS (
        DELETE FROM ${executions} WHERE id = $1 AND version = $2::bigint AND EXISTS (SELECT 1 FROM held) RETURNING 1
      ), gone AS (
        SELECT 1 WHERE EXISTS (SELECT 1 FROM purged) OR NOT EXISTS (SELECT 1 FROM ${executions} WHERE id = $1)
      ), p AS (${companion(processed, 'execution_id')}), tr AS (${companion(trace, 'execution_id')}),
        ti AS (${companion(timers, 'execution_id')}), o AS (${companion(outbox, 'target_id')}),
        s AS (${companion(spawns, 'parent_id')})
      SELECT (SELECT count(*) FROM purged), (SELECT count(*) FROM held), (SELECT count(*) FROM gone)`
    return untilFree(this.#settings.lockTimeout, 'the execution', async () => {
      const [row] = await this.#client.write(text, id, expectedVersion)
      const [purged, held, gone] = row ?? []
      return held === '0' && gone === '0' && !this.#inTransaction ? 'busy' : purged === '1'
    })
  }

  /** The same inside a transaction of the caller's. */
  within(transaction: Client): PostgresBackend {
    return new PostgresBackend(transaction, this.#settings, this.#place, true, async () => {})
  }

  /** Lets `add` make what is missing, and relies on it from then on. */
  async migrate(add: (settings: Settings, schema: string) => Promise<void>): Promise<void> {
    await add(this.#settings, this.#place.schema)
    this.#place = { ...this.#place, summary: true }
  }

  async close(): Promise<void> {
    await this.#commits.drain()
    await this.#client.drain()
    await this.#end()
  }
}

/** PostgreSQL takes null for no limit. */
const limitOf = (limit: number): number | null => (limit === Number.POSITIVE_INFINITY ? null : limit)

function toSummaryRow([id, definitionId, version, status, outcome, activePath, parentId, finishedAt]: Row): SummaryRow {
  return {
    id: id ?? '',
    definitionId: definitionId ?? '',
    version: Number(version),
    status: status ?? null,
    outcome: fromSummaryColumn(outcome ?? null),
    activePath: fromSummaryColumn(activePath ?? null),
    parentId: parentId ?? null,
    finishedAt: finishedAt == null ? null : Number(finishedAt),
  }
}
