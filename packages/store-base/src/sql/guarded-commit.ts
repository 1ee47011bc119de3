import type { Verdict } from '../backend.js'
import { Names } from '../names.js'
import type { PreparedCommit } from '../prepare.js'
import type { SqlResult } from './executor.js'
import type { Sql } from './listing.js'
import { toSummaryColumn } from './summary-text.js'

type Value = Sql['params'][number]
type Row = readonly Value[]

/** Commits as statements without a condition between them, to be sent as one transaction. */
export interface GuardedCommits {
  readonly statements: readonly Sql[]
  /** The verdicts, given the results of the statements. */
  verdicts(results: readonly SqlResult[]): Verdict[]
}

/** The columns of an execution behind its id. */
const COLUMNS = ['version', 'data', 'definition_id']
const SUMMARY_COLUMNS = ['meta_version', 'status', 'parent_id', 'outcome', 'active_path', 'finished_at']

const columnsOf = (c: PreparedCommit): Row => [c.version, c.data, c.definitionId]
const summaryOf = (c: PreparedCommit): Row => [
  c.version,
  c.status,
  c.parentId,
  toSummaryColumn(c.outcome),
  toSummaryColumn(c.activePath),
  c.finishedAt === null ? null : exactly(c.finishedAt),
]

/**
 * Commits of distinct executions in SQLite's dialect, for databases that run a list of statements as one transaction
 * but cannot decide half-way.
 *
 * The stored versions are read first: they are the verdicts. Then come the companion rows of all commits, a statement
 * for each table, where every row is guarded: it is written only if the stored version is still the expected one. The
 * executions themselves come last, since after them no guard would hold. So a refused commit writes nothing.
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
  const lastIndex = `(SELECT MAX(idx) FROM ${trace} WHERE execution_id = column1)`
  // A row of the version 0 is as good as none: nobody has committed it.
  const guard = `CASE column2 WHEN 0 THEN NOT EXISTS (SELECT 1 FROM ${executions} WHERE id = column1 AND version <> 0)
    ELSE EXISTS (SELECT 1 FROM ${executions} WHERE id = column1 AND version = column2) END`

  /** Rows of a table, behind the id (column1) and the expected version (column2) that their guard goes by. */
  const rowsOf = (of: (commit: PreparedCommit) => readonly Row[]): Row[] =>
    commits.flatMap((commit) => of(commit).map((row) => [commit.id, commit.expected, ...row]))

  const versions = over(
    commits.map(({ id }) => [id]),
    (rows) => `SELECT (SELECT version FROM ${executions} WHERE id = column1) FROM ${rows}`,
  )
  const outbox = over(
    rowsOf(({ emits }) => emits.map(({ targetId, event }) => [targetId, event])),
    (rows) => `INSERT INTO "${names.outbox}" (target_id, event) SELECT column3, column4 FROM ${rows} WHERE ${guard}`,
  )
  const processed = over(
    rowsOf(({ processedEventId }) => (processedEventId === undefined ? [] : [[processedEventId]])),
    (rows) =>
      `INSERT INTO "${names.processedEvents}" (execution_id, event_id) SELECT column1, column3 FROM ${rows} WHERE ${guard} ON CONFLICT DO NOTHING`,
  )
  const spawns = over(
    rowsOf(({ spawns }) => spawns.map(({ childId, rootPath, context }) => [childId, rootPath, context])),
    (rows) =>
      `INSERT INTO "${names.spawns}" (parent_id, child_id, root_path, context) SELECT column1, column3, column4, column5 FROM ${rows} WHERE ${guard}`,
  )
  const cancelled = over(
    rowsOf(({ timers }) => timers.flatMap((op) => (op.action === 'cancel' ? [[op.path]] : []))),
    (rows) =>
      `DELETE FROM "${names.timers}" WHERE (execution_id, path) IN (SELECT column1, column3 FROM ${rows} WHERE ${guard})`,
  )
  const scheduled = over(
    rowsOf(({ timers }) => timers.flatMap((op) => (op.action === 'schedule' ? [[op.path, exactly(op.fireAt)]] : []))),
    (rows) =>
      `INSERT INTO "${names.timers}" (execution_id, path, fire_at) SELECT column1, column3, column4 FROM ${rows} WHERE ${guard} ON CONFLICT (execution_id, path) DO UPDATE SET fire_at = excluded.fire_at`,
  )
  const steps = rowsOf((commit) => (commit.trace === undefined ? [] : [[commit.trace]]))
  const traced = over(
    steps,
    (rows) =>
      `INSERT INTO ${trace} (execution_id, idx, entry) SELECT column1, COALESCE(${lastIndex} + 1, 0), column3 FROM ${rows} WHERE ${guard}`,
  )
  const trimmed = over(
    traceMax === 0 ? [] : steps.map(([id = null, expected = null]) => [id, expected]),
    (rows) =>
      `DELETE FROM ${trace} WHERE (execution_id, idx) IN (SELECT t.execution_id, t.idx FROM ${rows} JOIN ${trace} t ON t.execution_id = column1 WHERE t.idx <= ${lastIndex} - ${traceMax} AND ${guard})`,
  )

  const columns = summary ? [...COLUMNS, ...SUMMARY_COLUMNS] : COLUMNS
  const values = columns.map((_, index) => `column${index + 3}`)
  const executionsAt = (wanted: (expected: number) => boolean): Row[] =>
    rowsOf((c) => (wanted(c.expected) ? [summary ? [...columnsOf(c), ...summaryOf(c)] : columnsOf(c)] : []))
  const created = over(
    executionsAt((expected) => expected === 0),
    (rows) =>
      `INSERT INTO ${executions} (id, ${columns.join(', ')}) SELECT column1, ${values.join(', ')} FROM ${rows} WHERE ${guard}
        ON CONFLICT (id) DO UPDATE SET ${columns.map((name) => `${name} = excluded.${name}`).join(', ')}`,
  )
  const updated = over(
    executionsAt((expected) => expected !== 0),
    (rows) =>
      `UPDATE ${executions} AS e SET ${columns.map((name, index) => `${name} = ${values[index]}`).join(', ')}
        FROM ${rows} WHERE e.id = column1 AND e.version = column2`,
  )

  const companions = [...processed, ...spawns, ...cancelled, ...scheduled, ...traced, ...trimmed]
  return {
    statements: [...versions, ...outbox, ...companions, ...created, ...updated],
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

/**
 * A number as a text from which every version of SQLite makes the same double again: it does not do so with the
 * fewest digits that JavaScript writes. The column makes a number of it.
 */
const exactly = (number: number): string => number.toExponential(16)

/** The numbers of the rows that an insert into the outbox made: they follow each other, since nobody else writes meanwhile. */
const insertedIds = ({ changes, lastId }: SqlResult): number[] =>
  Array.from({ length: changes }, (_, index) => lastId - changes + 1 + index)

/** How many characters of rows travel as one parameter at most: as JSON they are more, and sqld takes 5 MB. */
const PART = 500_000

/**
 * Statements over rows whose values are column1, column2, … of the source that `text` is given, in their order; none
 * for no rows. The rows travel together as one JSON text, so that a statement is as long for many as for one; a large
 * row travels alone and as it is.
 */
function over(rows: readonly Row[], text: (source: string) => string): Sql[] {
  const statements: Sql[] = []
  const columns = (rows[0] ?? []).map((_, index) => `value ->> ${index} AS column${index + 1}`)
  let part: Row[] = []
  let size = 0
  const end = () => {
    if (part.length === 0) return
    const sql = text(`(SELECT ${columns.join(', ')} FROM json_each(?))`)
    statements.push({ sql, params: [JSON.stringify(part)] })
    part = []
    size = 0
  }
  for (const row of rows) {
    const length = row.reduce<number>((sum, value) => sum + (typeof value === 'string' ? value.length : 0), 0)
    if (size + length > PART) end()
    if (length > PART) {
      statements.push({ sql: text(`(VALUES (${row.map(() => '?').join(', ')}))`), params: row })
    } else {
      part.push(row)
      size += length
    }
  }
  end()
  return statements
}
