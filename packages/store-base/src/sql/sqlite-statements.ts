import type { DefinitionRow } from '../backend.js'
import { type CheckedListQuery, prefixEnd } from '../listing.js'
import { Names } from '../names.js'
import type { PreparedCommit, PreparedEmit, PreparedSpawn } from '../prepare.js'
import type { CheckedQueuePage, CheckedTimerPage } from '../queues.js'
import type { TimerOp } from '../records.js'
import { listingSql, type Sql, scanningListingSql } from './listing.js'
import { summaryFieldSql, toSummaryColumn } from './summary-text.js'

/** SQLite takes a negative limit for none. */
const limitOf = (limit: number): number => (limit === Number.POSITIVE_INFINITY ? -1 : limit)

const SUMMARY = ['status', 'parent_id', 'outcome', 'active_path', 'finished_at'] as const

/** The statements of the SQLite family. */
export type SqliteStatements = ReturnType<typeof sqliteStatements>

/**
 * The statements of a store in SQLite's dialect, each with the parameters of one call. Texts are the same at each call,
 * so that a prepared statement can be kept by its text.
 *
 * @param summary whether the executions table has the summary columns with their triggers; without them a listing
 *   takes the fields from each payload
 * @throws InvalidPrefix
 */
export function sqliteStatements(prefix: string, { summary }: { summary: boolean }) {
  const names = Names(prefix)
  const executions = `"${names.executions}"`
  const outbox = `"${names.outbox}"`
  const processed = `"${names.processedEvents}"`
  const timers = `"${names.timers}"`
  const spawns = `"${names.spawns}"`
  const trace = `"${names.trace}"`
  const definitions = `"${names.definitions}"`

  const payloads = `SELECT id, definition_id, version, CASE WHEN json_valid(data) THEN data END AS payload FROM ${executions}`
  const extracted = SUMMARY.map((field) => `${summaryFieldSql(field)} AS ${field}`).join(', ')
  const summaries = `(SELECT id, definition_id, version, ${extracted} FROM (${payloads}))`

  const text = {
    load: `SELECT data FROM ${executions} WHERE id = ?`,
    version: `SELECT version FROM ${executions} WHERE id = ?`,
    loadForEvent: `SELECT data, EXISTS (SELECT 1 FROM ${processed} WHERE execution_id = id AND event_id = ?) AS processed FROM ${executions} WHERE id = ?`,
    update: `UPDATE ${executions} SET data = ?, version = ?, definition_id = ? WHERE id = ? AND version = ?`,
    updateUnindexed: `UPDATE ${executions} SET data = ?, version = ?, meta_version = ?, outcome = ?, active_path = ?, finished_at = ? WHERE id = ? AND version = ? AND status = ? AND parent_id IS ? AND definition_id = ?`,
    updateIndexed: `UPDATE ${executions} SET data = ?, version = ?, meta_version = ?, outcome = ?, active_path = ?, finished_at = ?, status = ?, parent_id = ?, definition_id = ? WHERE id = ? AND version = ?`,
    insert: `INSERT INTO ${executions} (id, definition_id, version, data) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING`,
    insertWithSummary: `INSERT INTO ${executions} (id, definition_id, version, data, meta_version, status, parent_id, outcome, active_path, finished_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
    emit: `INSERT INTO ${outbox} (target_id, event) VALUES (?, ?)`,
    mark: `INSERT INTO ${processed} (execution_id, event_id) VALUES (?, ?) ON CONFLICT DO NOTHING`,
    isProcessed: `SELECT 1 AS processed FROM ${processed} WHERE execution_id = ? AND event_id = ?`,
    spawn: `INSERT INTO ${spawns} (parent_id, child_id, root_path, context) VALUES (?, ?, ?, ?)`,
    schedule: `INSERT INTO ${timers} (execution_id, path, fire_at) VALUES (?, ?, ?) ON CONFLICT (execution_id, path) DO UPDATE SET fire_at = excluded.fire_at`,
    cancel: `DELETE FROM ${timers} WHERE execution_id = ? AND path = ?`,
    appendTrace: `INSERT INTO ${trace} (execution_id, idx, entry) SELECT ?, COALESCE(MAX(idx), -1) + 1, ? FROM ${trace} WHERE execution_id = ? RETURNING idx`,
    keepNewest: `DELETE FROM ${trace} WHERE execution_id = ? AND idx <= (SELECT MAX(idx) FROM ${trace} WHERE execution_id = ?) - ?`,
    trimTrace: `DELETE FROM ${trace} WHERE execution_id = ? AND idx <= ?`,
    readTrace: `SELECT idx, entry FROM ${trace} WHERE execution_id = ? ORDER BY idx`,
    pendingOutbox: `SELECT seq, target_id, event FROM ${outbox} WHERE seq > ? ORDER BY seq LIMIT ?`,
    ackOutbox: `DELETE FROM ${outbox} WHERE seq = ?`,
    pendingSpawns: `SELECT seq, parent_id, child_id, root_path, context FROM ${spawns} WHERE seq > ? ORDER BY seq LIMIT ?`,
    ackSpawn: `DELETE FROM ${spawns} WHERE seq = ?`,
    dueTimers: `SELECT execution_id, path, fire_at FROM ${timers} WHERE fire_at <= ? ORDER BY fire_at, execution_id, path LIMIT ?`,
    dueTimersAfter: `SELECT execution_id, path, fire_at FROM ${timers} WHERE fire_at <= ? AND (fire_at, execution_id, path) > (?, ?, ?) ORDER BY fire_at, execution_id, path LIMIT ?`,
    deleteTimer: `DELETE FROM ${timers} WHERE execution_id = ? AND path = ? AND fire_at = ?`,
    idsFrom: `SELECT id FROM ${executions} WHERE id >= ? ORDER BY id`,
    idsBetween: `SELECT id FROM ${executions} WHERE id >= ? AND id < ? ORDER BY id`,
    publishDefinition: `INSERT INTO ${definitions} (id, version, definition, published_at) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING`,
    loadDefinition: `SELECT definition, published_at FROM ${definitions} WHERE id = ? AND version = ?`,
    purge: `DELETE FROM ${executions} WHERE id = ? AND version = ?`,
    otherVersion: `EXISTS (SELECT 1 FROM ${executions} WHERE id = ? AND version <> ?)`,
    purgeCompanions: [
      `DELETE FROM ${processed} WHERE execution_id = ?`,
      `DELETE FROM ${trace} WHERE execution_id = ?`,
      `DELETE FROM ${timers} WHERE execution_id = ?`,
      `DELETE FROM ${outbox} WHERE target_id = ?`,
      `DELETE FROM ${spawns} WHERE parent_id = ?`,
    ],
  }
  const statement = (sql: string, ...params: Sql['params']): Sql => ({ sql, params })

  return {
    load: (id: string) => statement(text.load, id),
    version: (id: string) => statement(text.version, id),
    /** One statement, and so one snapshot. */
    loadForEvent: (id: string, eventId: string) => statement(text.loadForEvent, eventId, id),

    /**
     * The updates of a commit, to be tried in turn until one changes the row. The first leaves out the columns that
     * stand in indexes, because SQLite rewrites an index for every column that is named, changed or not.
     */
    updates: (c: PreparedCommit): Sql[] => {
      if (!summary) return [statement(text.update, c.data, c.version, c.definitionId, c.id, c.expected)]
      const row = [
        c.data,
        c.version,
        c.version,
        toSummaryColumn(c.outcome),
        toSummaryColumn(c.activePath),
        c.finishedAt,
      ]
      const indexed = [c.status, c.parentId, c.definitionId]
      return [
        statement(text.updateUnindexed, ...row, c.id, c.expected, ...indexed),
        statement(text.updateIndexed, ...row, ...indexed, c.id, c.expected),
      ]
    },
    insert: (c: PreparedCommit): Sql =>
      summary
        ? statement(
            text.insertWithSummary,
            c.id,
            c.definitionId,
            c.version,
            c.data,
            c.version,
            c.status,
            c.parentId,
            toSummaryColumn(c.outcome),
            toSummaryColumn(c.activePath),
            c.finishedAt,
          )
        : statement(text.insert, c.id, c.definitionId, c.version, c.data),
    emit: ({ targetId, event }: PreparedEmit) => statement(text.emit, targetId, event),
    mark: (id: string, eventId: string) => statement(text.mark, id, eventId),
    spawn: (id: string, { childId, rootPath, context }: PreparedSpawn) =>
      statement(text.spawn, id, childId, rootPath, context),
    timer: (id: string, op: TimerOp) =>
      op.action === 'cancel' ? statement(text.cancel, id, op.path) : statement(text.schedule, id, op.path, op.fireAt),
    appendTrace: (id: string, entry: string) => statement(text.appendTrace, id, entry, id),
    trimTrace: (id: string, upTo: number) => statement(text.trimTrace, id, upTo),
    /** Adds a step and keeps the newest ones, or all with `traceMax` 0. */
    trace: (id: string, entry: string, traceMax: number): Sql[] => [
      statement(text.appendTrace, id, entry, id),
      ...(traceMax === 0 ? [] : [statement(text.keepNewest, id, id, traceMax)]),
    ],

    isProcessed: (id: string, eventId: string) => statement(text.isProcessed, id, eventId),
    readTrace: (id: string) => statement(text.readTrace, id),
    pendingOutbox: ({ after, limit }: CheckedQueuePage) => statement(text.pendingOutbox, after, limitOf(limit)),
    ackOutbox: (seq: number) => statement(text.ackOutbox, seq),
    pendingSpawns: ({ after, limit }: CheckedQueuePage) => statement(text.pendingSpawns, after, limitOf(limit)),
    ackSpawn: (seq: number) => statement(text.ackSpawn, seq),
    dueTimers: (now: number, { after, limit }: CheckedTimerPage) =>
      after === undefined
        ? statement(text.dueTimers, now, limitOf(limit))
        : statement(text.dueTimersAfter, now, after.fireAt, after.executionId, after.path, limitOf(limit)),
    deleteTimer: (id: string, path: string, fireAt: number) => statement(text.deleteTimer, id, path, fireAt),
    list: (query: CheckedListQuery) => (summary ? listingSql(executions, query) : scanningListingSql(summaries, query)),
    idsWithPrefix: (prefix: string) => {
      const end = prefixEnd(prefix)
      return end === undefined ? statement(text.idsFrom, prefix) : statement(text.idsBetween, prefix, end)
    },
    publishDefinition: ({ id, version, definition, publishedAt }: DefinitionRow) =>
      statement(text.publishDefinition, id, version, definition, publishedAt),
    loadDefinition: (id: string, version: string) => statement(text.loadDefinition, id, version),
    purge: (id: string, version: number) => statement(text.purge, id, version),
    purgeCompanions: (id: string) => text.purgeCompanions.map((sql) => statement(sql, id)),
    /** As `purgeCompanions`, unless the execution is stored at another version. */
    purgeCompanionsUnless: (id: string, version: number) =>
      text.purgeCompanions.map((sql) => statement(`${sql} AND NOT ${text.otherVersion}`, id, id, version)),
  }
}
