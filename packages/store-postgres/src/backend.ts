import {
  type CheckedListQuery,
  type CheckedQueuePage,
  type CheckedTimerPage,
  Coalescer,
  type DefinitionRow,
  type DueTimer,
  listingPage,
  Names,
  type OutboxRow,
  type PreparedCommit,
  prefixEnd,
  type SpawnRow,
  type StoreBackend,
  type StoreCapabilities,
  StoreUnavailable,
  type SummaryRow,
  type SummaryRows,
  type TraceRow,
  type Verdict,
} from '@harel/store-base'
import { fromSummaryColumn, toSummaryColumn } from '@harel/store-base/sql'
import { arrayText, type Client, type Param, type Row, sqlstateOf } from './client.js'
import { functionNames, quote } from './functions.js'
import { listing } from './listing.js'
import type { Settings } from './options.js'
import type { Place } from './schema.js'

export const capabilities: StoreCapabilities = {
  durable: true,
  shared: true,
  identity: false,
  ordered: true,
  paging: 'key',
  maxCommitWrites: Number.POSITIVE_INFINITY,
  // A message to the server has at most 1 GiB - 1, and the payload grows by its escapes as an element of an array.
  maxExecutionBytes: 500_000_000,
  dedupe: 'forever',
  atomicPurge: true,
  transactions: true,
}

/** Tries of a commit that a serialization failure or a deadlock has undone. */
const TRIES = 10

/** The server has undone the transaction for the sake of another one; the same may work at once. */
const isUndone = (error: unknown): boolean => ['40001', '40P01'].includes(sqlstateOf(error))

/** What became of a commit in a batch; busy: somebody else holds the row. */
type BatchVerdict = Verdict | 'busy'

/** How long a commit waits for the row of its execution. */
type Wait = 'not at all' | 'its time' | 'as the transaction says'

/** The protocol on PostgreSQL. */
export class PostgresBackend implements StoreBackend {
  readonly capabilities = capabilities
  readonly #client: Client
  readonly #settings: Settings
  #place: Place
  readonly #commits: Coalescer<PreparedCommit, BatchVerdict> | undefined
  readonly #wait: Wait
  readonly #end: () => Promise<void>
  readonly #table: Record<'executions' | 'outbox' | 'processed' | 'spawns' | 'timers' | 'trace' | 'definitions', string>
  readonly #commitText: string

  /**
   * @param wait `as the transaction says` for a backend inside a caller's transaction
   * @param end called by `close`
   */
  constructor(client: Client, settings: Settings, place: Place, wait: Wait, end: () => Promise<void>) {
    const names = Names(settings.prefix.toLowerCase())
    const qualified = (name: string) => `${quote(place.schema)}.${quote(name)}`
    this.#client = client
    this.#settings = settings
    this.#place = place
    this.#wait = wait
    this.#end = end
    this.#table = {
      executions: qualified(names.executions),
      outbox: qualified(names.outbox),
      processed: qualified(names.processedEvents),
      spawns: qualified(names.spawns),
      timers: qualified(names.timers),
      trace: qualified(names.trace),
      definitions: qualified(names.definitions),
    }
    const casts = COMMIT_TYPES.map((type, index) => `$${index + 1}::text::${type}`).join(', ')
    this.#commitText = `SELECT verdicts, seqs FROM ${qualified(functionNames(settings.prefix).commit)}(${casts})`
    if (wait === 'its time' && settings.groupCommit) {
      this.#commits = new Coalescer({
        run: (batch) => this.#commit(batch, 'not at all'),
        keyOf: ({ id }) => id,
        sizeOf: ({ data }) => data.length,
        mayReplay: (error) => sqlstateOf(error) !== '',
        inFlight: 2,
      })
    }
  }

  async load(id: string): Promise<string | undefined> {
    const [row] = await this.#client.read(`SELECT data FROM ${this.#table.executions} WHERE id = $1::text`, id)
    return row?.[0] ?? undefined
  }

  async loadForEvent(id: string, eventId: string): Promise<{ data: string | undefined; processed: boolean }> {
    const { executions, processed } = this.#table
    const [row] = await this.#client.read(
      `SELECT data, EXISTS (SELECT 1 FROM ${processed} WHERE execution_id = $1::text AND event_id = $2::text)::text
         FROM ${executions} WHERE id = $1::text`,
      id,
      eventId,
    )
    return { data: row?.[0] ?? undefined, processed: row?.[1] === 'true' }
  }

  async commit(commit: PreparedCommit): Promise<Verdict> {
    const verdict = await this.#tryInBatch(commit)
    return verdict === 'busy' ? this.#commitAlone(commit) : verdict
  }

  /** A commit that fails in a batch for the sake of other transactions is for `#commitAlone`, too. */
  async #tryInBatch(commit: PreparedCommit): Promise<BatchVerdict> {
    if (this.#commits === undefined) return 'busy'
    try {
      return await this.#commits.submit(commit)
    } catch (error) {
      if (isUndone(error) || sqlstateOf(error) === '55P03') return 'busy'
      throw error
    }
  }

  /** Waits for the row in a call of its own, so that nobody else waits for whoever holds it. */
  async #commitAlone(commit: PreparedCommit): Promise<Verdict> {
    for (let tries = 1; ; tries++) {
      try {
        const [verdict] = await this.#commit([commit], this.#wait)
        if (verdict === undefined || verdict === 'busy') throw new StoreUnavailable('the execution is locked')
        return verdict
      } catch (error) {
        // Inside a caller's transaction there is nothing left to try: the server has ended it.
        if (!isUndone(error) || tries === TRIES || this.#wait === 'as the transaction says') throw error
        await new Promise((resolve) => setTimeout(resolve, Math.random() * 2 ** tries))
      }
    }
  }

  async #commit(commits: readonly PreparedCommit[], wait: Wait): Promise<BatchVerdict[]> {
    const lockWait = { 'not at all': 0, 'its time': this.#settings.lockTimeout || -1, 'as the transaction says': -1 }[
      wait
    ]
    const params = commitParams(commits, this.#settings.traceMax, lockWait)
    const [row] = await this.#client.write(this.#commitText, ...params)
    return readVerdicts(commits, row?.[0] ?? '', row?.[1] ?? '')
  }

  async isProcessed(id: string, eventId: string): Promise<boolean> {
    const text = `SELECT 1 FROM ${this.#table.processed} WHERE execution_id = $1::text AND event_id = $2::text`
    return (await this.#client.read(text, id, eventId)).length > 0
  }

  async pendingOutbox({ after, limit }: CheckedQueuePage): Promise<OutboxRow[]> {
    const text = `SELECT seq, target_id, event FROM ${this.#table.outbox} WHERE seq > $1::text::bigint ORDER BY seq LIMIT $2::text::bigint`
    const rows = await this.#client.read(text, after, limitOf(limit))
    return rows.map(([seq, targetId = null, event]) => ({ seq: Number(seq), targetId, event: event ?? '' }))
  }

  async ackOutbox(seqs: readonly number[]): Promise<void> {
    await this.#client.write(`DELETE FROM ${this.#table.outbox} WHERE seq = ANY ($1::text::bigint[])`, arrayText(seqs))
  }

  async pendingSpawns({ after, limit }: CheckedQueuePage): Promise<SpawnRow[]> {
    const text = `SELECT seq, parent_id, child_id, root_path, context FROM ${this.#table.spawns} WHERE seq > $1::text::bigint ORDER BY seq LIMIT $2::text::bigint`
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
    await this.#client.write(`DELETE FROM ${this.#table.spawns} WHERE seq = ANY ($1::text::bigint[])`, arrayText(seqs))
  }

  async dueTimers(now: number, { after, limit }: CheckedTimerPage): Promise<DueTimer[]> {
    const behind =
      after === undefined
        ? ''
        : 'AND (fire_at, execution_id COLLATE "C", path COLLATE "C") > ($3::text::float8, $4::text, $5::text)'
    const rows = await this.#client.read(
      `SELECT execution_id, path, fire_at FROM ${this.#table.timers} WHERE fire_at <= $1::text::float8 ${behind}
         ORDER BY fire_at, execution_id COLLATE "C", path COLLATE "C" LIMIT $2::text::bigint`,
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
    const text = `DELETE FROM ${this.#table.timers} WHERE execution_id = $1::text AND path = $2::text AND fire_at = $3::text::float8`
    await this.#client.write(text, id, path, fireAt)
  }

  async readTrace(id: string): Promise<TraceRow[]> {
    const text = `SELECT idx, entry FROM ${this.#table.trace} WHERE execution_id = $1::text ORDER BY idx`
    const rows = await this.#client.read(text, id)
    return rows.map(([index, entry]) => ({ index: Number(index), entry: entry ?? '' }))
  }

  async appendTrace(id: string, entry: string): Promise<void> {
    const { trace } = this.#table
    await this.#client.write(
      `WITH added AS (
         INSERT INTO ${trace} (execution_id, idx, entry)
         SELECT $1::text, COALESCE(MAX(idx), -1) + 1, $2::text FROM ${trace} WHERE execution_id = $1::text RETURNING idx
       ) DELETE FROM ${trace} t USING added
         WHERE $3::text::int > 0 AND t.execution_id = $1::text AND t.idx <= added.idx - $3::text::int`,
      id,
      entry,
      this.#settings.traceMax,
    )
  }

  async listExecutions(checked: CheckedListQuery): Promise<SummaryRows> {
    const { text, params } = listing(this.#summaries(), checked)
    const rows = await this.#client.read(text, ...params)
    return listingPage(rows.map(toSummaryRow), checked.limit)
  }

  /** The table, or where its summaries are not filled yet, a subquery that takes them from the payloads. */
  #summaries(): string {
    const { executions } = this.#table
    if (this.#place.summary) return executions
    const summary = `${quote(this.#place.schema)}.${quote(functionNames(this.#settings.prefix).summary)}`
    return `(SELECT e.id, e.definition_id, e.version, s.* FROM ${executions} e, LATERAL (
      SELECT e.status, e.outcome, e.active_path, e.parent_id, e.finished_at WHERE e.meta_version = e.version UNION ALL
      SELECT s.status, s.outcome, s.active_path, s.parent_id, s.finished_at FROM ${summary}(e.data) s
        WHERE e.meta_version IS DISTINCT FROM e.version) s) summaries`
  }

  async idsWithPrefix(prefix: string): Promise<string[]> {
    const end = prefixEnd(prefix)
    const below = end === undefined ? '' : 'AND id COLLATE "C" < $2::text'
    const text = `SELECT id FROM ${this.#table.executions} WHERE id COLLATE "C" >= $1::text ${below} ORDER BY id COLLATE "C"`
    const rows = await this.#client.read(text, prefix, ...(end === undefined ? [] : [end]))
    return rows.map(([id]) => id ?? '')
  }

  async publishDefinition(row: DefinitionRow): Promise<DefinitionRow> {
    await this.#client.write(
      `INSERT INTO ${this.#table.definitions} (id, version, definition, published_at)
         VALUES ($1::text, $2::text, $3::text, $4::text::float8) ON CONFLICT DO NOTHING`,
      row.id,
      row.version,
      row.definition,
      row.publishedAt,
    )
    // A second statement, because one that inserts nothing does not show what is there.
    return (await this.loadDefinition(row.id, row.version)) ?? row
  }

  async loadDefinition(id: string, version: string): Promise<DefinitionRow | undefined> {
    const text = `SELECT definition, published_at FROM ${this.#table.definitions} WHERE id = $1::text AND version = $2::text`
    const [row] = await this.#client.read(text, id, version)
    return row && { id, version, definition: row[0] ?? '', publishedAt: row[1] == null ? null : Number(row[1]) }
  }

  async purge(id: string, expectedVersion: number): Promise<boolean> {
    const { executions, processed, trace, timers, outbox, spawns } = this.#table
    // One statement: the companions go if the execution went or was not there.
    const companion = (table: string, column: string) => `DELETE FROM ${table} USING gone WHERE ${column} = $1::text`
    const [row] = await this.#client.write(
      `WITH found AS (SELECT version FROM ${executions} WHERE id = $1::text FOR UPDATE),
         purged AS (DELETE FROM ${executions} WHERE id = $1::text
           AND version = $2::text::bigint AND EXISTS (SELECT 1 FROM found) RETURNING 1),
         gone AS (SELECT 1 WHERE EXISTS (SELECT 1 FROM purged) OR NOT EXISTS (SELECT 1 FROM found)),
         p AS (${companion(processed, 'execution_id')}), tr AS (${companion(trace, 'execution_id')}),
         ti AS (${companion(timers, 'execution_id')}), o AS (${companion(outbox, 'target_id')}),
         s AS (${companion(spawns, 'parent_id')})
       SELECT count(*) FROM purged`,
      id,
      expectedVersion,
    )
    return row?.[0] === '1'
  }

  /** The same inside a caller's transaction. */
  within(client: Client): PostgresBackend {
    return new PostgresBackend(client, this.#settings, this.#place, 'as the transaction says', async () => {})
  }

  /** Lets `add` make what is missing, and relies on it from then on. */
  async migrate(add: (settings: Settings, schema: string) => Promise<void>): Promise<void> {
    await add(this.#settings, this.#place.schema)
    this.#place = { ...this.#place, summary: true }
  }

  async close(): Promise<void> {
    await this.#commits?.drain()
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

/** The types of the parameters of the commit function, in their order. */
const COMMIT_TYPES = [
  ...['text[]', 'int[]', 'text[]', 'text[]', 'text[]', 'text[]', 'text[]', 'text[]', 'float8[]', 'text[]', 'text[]'],
  ...['int[]', 'text[]', 'text[]', 'int[]', 'text[]', 'float8[]', 'int[]', 'text[]', 'text[]', 'text[]', 'int', 'int'],
] as const

function commitParams(commits: readonly PreparedCommit[], traceMax: number, lockWait: number): Param[] {
  const column = (read: (commit: PreparedCommit) => Param) => arrayText(commits.map(read))
  /** The entries of all commits, and of each the place of its commit. */
  const flat = <Entry>(entriesOf: (commit: PreparedCommit) => readonly Entry[]) => {
    const entries = commits.flatMap((commit, index) => entriesOf(commit).map((entry) => ({ place: index + 1, entry })))
    return {
      places: arrayText(entries.map(({ place }) => place)),
      column: (read: (entry: Entry) => Param) => arrayText(entries.map(({ entry }) => read(entry))),
    }
  }
  const emits = flat(({ emits }) => emits)
  const timers = flat(({ timers }) => timers)
  const spawns = flat(({ spawns }) => spawns)
  return [
    column(({ id }) => id),
    column(({ expected }) => expected),
    column(({ data }) => data),
    column(({ definitionId }) => definitionId),
    column(({ status }) => status),
    column(({ parentId }) => parentId),
    column(({ outcome }) => toSummaryColumn(outcome)),
    column(({ activePath }) => toSummaryColumn(activePath)),
    column(({ finishedAt }) => finishedAt),
    column(({ processedEventId }) => processedEventId ?? null),
    column(({ trace }) => trace ?? null),
    emits.places,
    emits.column(({ targetId }) => targetId),
    emits.column(({ event }) => event),
    timers.places,
    timers.column(({ path }) => path),
    timers.column((timer) => (timer.action === 'schedule' ? timer.fireAt : null)),
    spawns.places,
    spawns.column(({ childId }) => childId),
    spawns.column(({ rootPath }) => rootPath),
    spawns.column(({ context }) => context),
    traceMax,
    lockWait,
  ]
}

/** @param verdicts as the commit function gives them: one letter alone stands for all of them */
function readVerdicts(commits: readonly PreparedCommit[], verdicts: string, seqs: string): BatchVerdict[] {
  const each = verdicts === 'a' ? commits.map(() => 'a') : verdicts.split(',')
  const numbers = seqs === '' ? [] : seqs.split(',').map(Number)
  let taken = 0
  return commits.map(({ emits }, index) => {
    const verdict = each[index] ?? ''
    if (verdict === 'b') return 'busy'
    if (verdict !== 'a') return { applied: false, found: verdict === 'c' ? null : Number(verdict.slice(1)) }
    taken += emits.length
    return { applied: true, seqs: numbers.slice(taken - emits.length, taken) }
  })
}
