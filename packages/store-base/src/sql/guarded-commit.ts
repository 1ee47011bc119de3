import type { Verdict } from '../backend.js'
import { Names } from '../names.js'
import type { PreparedCommit } from '../prepare.js'
import type { SqlResult } from './executor.js'
import type { Sql } from './listing.js'
import { toSummaryColumn } from './summary-text.js'

type Value = Sql['params'][number]

/** SQLite's own limit of parameters in a statement (SQLITE_MAX_VARIABLE_NUMBER), with some room. */
const MAX_PARAMS = 30_000

type Column = readonly [name: string, valueOf: (commit: PreparedCommit) => Value]

/** The columns of an execution but for its id. */
const COLUMNS: readonly Column[] = [
  ['version', ({ version }) => version],
  ['data', ({ data }) => data],
  ['definition_id', ({ definitionId }) => definitionId],
]
const SUMMARY_COLUMNS: readonly Column[] = [
  ['meta_version', ({ version }) => version],
  ['status', ({ status }) => status],
  ['parent_id', ({ parentId }) => parentId],
  ['outcome', ({ outcome }) => toSummaryColumn(outcome)],
  ['active_path', ({ activePath }) => toSummaryColumn(activePath)],
  ['finished_at', ({ finishedAt }) => finishedAt],
]

/** Commits as statements without a condition between them, to be sent as one transaction. */
export interface GuardedCommits {
  readonly statements: readonly Sql[]
  /** The verdicts, given the results of the statements. */
  verdicts(results: readonly SqlResult[]): Verdict[]
}

/**
 * Commits of distinct executions in SQLite's dialect, for databases that run a list of statements as one transaction
 * but cannot decide half-way.
 *
 * The stored versions are read first: they are the verdicts. Then come the companion rows of all commits, a statement
 * for each table, where every row is guarded: it is written only if the stored version is still the expected one. The
 * executions themselves come last, since after them no guard would hold. So a refused commit writes nothing.
 *
 * Values are parameters throughout. Packed into JSON they would be fewer, but SQLite does not read every number of a
 * JSON text as the same double, and a timer is found by its exact time.
 *
 * @param options `summary`: whether the executions have the summary columns
 */
export function guardedCommits(
  { prefix, traceMax, summary }: { prefix: string; traceMax: number; summary: boolean },
  commits: readonly PreparedCommit[],
): GuardedCommits {
  const names = Names(prefix)
  const executions = `"${names.executions}"`
  const trace = `"${names.trace}"`
  // column1 is the id of the execution, column2 the expected version.
  const guard = `CASE column2 WHEN 0 THEN NOT EXISTS (SELECT 1 FROM ${executions} WHERE id = column1 AND version <> 0)
    ELSE EXISTS (SELECT 1 FROM ${executions} WHERE id = column1 AND version = column2) END`
  const rowsOf = <Entry>(
    entriesOf: (commit: PreparedCommit) => readonly Entry[],
    rowOf: (entry: Entry) => readonly Value[],
  ): Value[][] => commits.flatMap((c) => entriesOf(c).map((entry) => [c.id, c.expected, ...rowOf(entry)]))
  const optional = <Entry>(entry: Entry | undefined): Entry[] => (entry === undefined ? [] : [entry])

  const versions = withRows(
    commits.map(({ id }) => [id]),
    (rows) => `SELECT (SELECT version FROM ${executions} WHERE id = column1) FROM (${rows})`,
  )
  const outbox = withRows(
    rowsOf(
      ({ emits }) => emits,
      ({ targetId, event }) => [targetId, event],
    ),
    (rows) => `INSERT INTO "${names.outbox}" (target_id, event) SELECT column3, column4 FROM (${rows}) WHERE ${guard}`,
  )
  const companions = [
    ...withRows(
      rowsOf(
        ({ processedEventId }) => optional(processedEventId),
        (eventId) => [eventId],
      ),
      (rows) =>
        `INSERT INTO "${names.processedEvents}" (execution_id, event_id) SELECT column1, column3 FROM (${rows}) WHERE ${guard} ON CONFLICT DO NOTHING`,
    ),
    ...withRows(
      rowsOf(
        ({ spawns }) => spawns,
        ({ childId, rootPath, context }) => [childId, rootPath, context],
      ),
      (rows) =>
        `INSERT INTO "${names.spawns}" (parent_id, child_id, root_path, context) SELECT column1, column3, column4, column5 FROM (${rows}) WHERE ${guard}`,
    ),
    ...withRows(
      rowsOf(
        ({ timers }) => timers.filter(({ action }) => action === 'cancel'),
        ({ path }) => [path],
      ),
      (rows) =>
        `DELETE FROM "${names.timers}" WHERE (execution_id, path) IN (SELECT column1, column3 FROM (${rows}) WHERE ${guard})`,
    ),
    ...withRows(
      rowsOf(
        ({ timers }) => timers.flatMap((op) => (op.action === 'schedule' ? [op] : [])),
        ({ path, fireAt }) => [path, fireAt],
      ),
      (rows) =>
        `INSERT INTO "${names.timers}" (execution_id, path, fire_at) SELECT column1, column3, column4 FROM (${rows}) WHERE ${guard} ON CONFLICT (execution_id, path) DO UPDATE SET fire_at = excluded.fire_at`,
    ),
    ...withRows(
      rowsOf(
        (commit) => optional(commit.trace),
        (entry) => [entry],
      ),
      (rows) =>
        `INSERT INTO ${trace} (execution_id, idx, entry) SELECT column1, (SELECT COALESCE(MAX(idx), -1) + 1 FROM ${trace} WHERE execution_id = column1), column3 FROM (${rows}) WHERE ${guard}`,
    ),
    ...withRows(
      rowsOf(
        (commit) => (commit.trace === undefined || traceMax === 0 ? [] : [traceMax]),
        (kept) => [kept],
      ),
      (rows) =>
        `DELETE FROM ${trace} WHERE (execution_id, idx) IN (SELECT t.execution_id, t.idx FROM (${rows}) JOIN ${trace} t ON t.execution_id = column1 WHERE t.idx <= (SELECT MAX(idx) FROM ${trace} WHERE execution_id = column1) - column3 AND ${guard})`,
    ),
  ]
  const columns = summary ? [...COLUMNS, ...SUMMARY_COLUMNS] : COLUMNS
  const written = columns.map(([name]) => name)
  const executionRows = [
    ...withRows(
      commits.filter(({ expected }) => expected === 0).map((c) => [c.id, ...columns.map(([, value]) => value(c))]),
      (rows) =>
        `INSERT INTO ${executions} (id, ${written.join(', ')}) SELECT * FROM (${rows}) WHERE true ON CONFLICT DO NOTHING`,
    ),
    ...withRows(
      commits.map((c) => [c.id, c.expected, ...columns.map(([, value]) => value(c))]),
      (rows) =>
        `UPDATE ${executions} AS e SET ${written.map((name, index) => `${name} = column${index + 3}`).join(', ')}
          FROM (${rows}) WHERE e.id = column1 AND e.version = column2`,
    ),
  ]
  return {
    statements: [...versions, ...outbox, ...companions, ...executionRows],
    verdicts(results) {
      const stored = results.slice(0, versions.length).flatMap(({ rows }) => rows.map(([version]) => version ?? null))
      const numbers = results.slice(versions.length, versions.length + outbox.length).flatMap(insertedIds)
      let taken = 0
      return commits.map(({ expected, emits }, index) => {
        const found = stored[index] ?? null
        if (Number(found ?? 0) !== expected) return { applied: false, found: found === null ? null : Number(found) }
        taken += emits.length
        return { applied: true, seqs: numbers.slice(taken - emits.length, taken) }
      })
    },
  }
}

/** The numbers of the rows that an insert into the outbox made: they follow each other, since nobody else writes meanwhile. */
const insertedIds = ({ changes, lastId }: SqlResult): number[] =>
  Array.from({ length: changes }, (_, index) => lastId - changes + 1 + index)

/** Statements over a list of rows, as many as the limit of parameters asks for; none for no rows. */
function withRows(rows: readonly (readonly Value[])[], text: (values: string) => string): Sql[] {
  const width = rows[0]?.length ?? 1
  const height = Math.floor(MAX_PARAMS / width)
  const place = `(${Array(width).fill('?').join(', ')})`
  const statements: Sql[] = []
  for (let start = 0; start < rows.length; start += height) {
    const part = rows.slice(start, start + height)
    statements.push({ sql: text(`VALUES ${part.map(() => place).join(', ')}`), params: part.flat() })
  }
  return statements
}
