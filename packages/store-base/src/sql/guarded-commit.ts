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
 * The stored versions are read first: they are the verdicts, together with whether a version that is in the way was
 * written by the very commit. Then come the companion rows of all commits, a statement for each table, where every row
 * is guarded: it is written only if the stored version is still the expected one. The executions themselves come last,
 * since after them no guard would hold. So a refused commit writes nothing.
 *
 * @param options `summary`: whether the executions have the summary columns
 */
export function guardedCommits({
  prefix,
  traceMax,
  summary,
}: {
  prefix: string
  traceMax: number
  summary: boolean
}): (commits: readonly PreparedCommit[]) => GuardedCommits {
  const names = Names(prefix)
  const executions = `"${names.executions}"`
  const trace = `"${names.trace}"`
  const lastIndexOf = (id?: string) => `(SELECT MAX(idx) FROM ${trace} WHERE execution_id = ${id})`
  // A stored version of 0 is as good as none.
  const guard = (id?: string, expected?: string) =>
    `COALESCE((SELECT version FROM ${executions} WHERE id = ${id}), 0) = ${expected}`
  const columns = summary ? [...COLUMNS, ...SUMMARY_COLUMNS] : COLUMNS
  const valuesOf = (c: PreparedCommit): Row => (summary ? [...columnsOf(c), ...summaryOf(c)] : columnsOf(c))

  // As one text, because a row takes a driver a multiple of the time of a member.
  const readVersions = over(
    3,
    ([id, version, token], from) =>
      `SELECT json_group_array(json_array(e.version, CASE e.version WHEN ${version} THEN instr(e.data, ${token}) END))${from() || ' FROM (SELECT 1)'} LEFT JOIN ${executions} AS e ON e.id = ${id}`,
  )
  const emit = over(
    4,
    ([id, expected, targetId, event], from) =>
      `INSERT INTO "${names.outbox}" (target_id, event) SELECT ${targetId}, ${event}${from()} WHERE ${guard(id, expected)}`,
  )
  const mark = over(
    3,
    ([id, expected, eventId], from) =>
      `INSERT INTO "${names.processedEvents}" (execution_id, event_id) SELECT ${id}, ${eventId}${from()} WHERE ${guard(id, expected)} ON CONFLICT DO NOTHING`,
  )
  const spawn = over(
    5,
    ([id, expected, childId, rootPath, context], from) =>
      `INSERT INTO "${names.spawns}" (parent_id, child_id, root_path, context) SELECT ${id}, ${childId}, ${rootPath}, ${context}${from()} WHERE ${guard(id, expected)}`,
  )
  const cancel = over(
    3,
    ([id, expected, path], from) =>
      `DELETE FROM "${names.timers}" WHERE (execution_id, path) IN (SELECT ${id}, ${path}${from()} WHERE ${guard(id, expected)})`,
  )
  const schedule = over(
    4,
    ([id, expected, path, fireAt], from) =>
      `INSERT INTO "${names.timers}" (execution_id, path, fire_at) SELECT ${id}, ${path}, ${fireAt}${from()} WHERE ${guard(id, expected)} ON CONFLICT (execution_id, path) DO UPDATE SET fire_at = excluded.fire_at`,
  )
  const addStep = over(
    3,
    ([id, expected, entry], from) =>
      `INSERT INTO ${trace} (execution_id, idx, entry) SELECT ${id}, COALESCE(${lastIndexOf(id)} + 1, 0), ${entry}${from()} WHERE ${guard(id, expected)}`,
  )
  const trim = over(
    2,
    ([id, expected], from) =>
      `DELETE FROM ${trace} WHERE (execution_id, idx) IN (SELECT t.execution_id, t.idx${from(`${trace} AS t`)} WHERE t.execution_id = ${id} AND t.idx <= ${lastIndexOf(id)} - ${traceMax} AND ${guard(id, expected)})`,
  )
  const create = over(
    2 + columns.length,
    ([id, expected, ...values], from) =>
      `INSERT INTO ${executions} (id, ${columns.join(', ')}) SELECT ${id}, ${values.join(', ')}${from()} WHERE ${guard(id, expected)}
        ON CONFLICT (id) DO UPDATE SET ${columns.map((name) => `${name} = excluded.${name}`).join(', ')}`,
  )
  const update = over(
    2 + columns.length,
    ([id, expected, ...values], from) =>
      `UPDATE ${executions} AS e SET ${columns.map((name, index) => `${name} = ${values[index]}`).join(', ')}${from()}
        WHERE e.id = ${id} AND e.version = ${expected}`,
  )

  return (commits) => {
    /** Rows of a table, behind the id and the expected version that their guard goes by. */
    const rowsOf = (of: (commit: PreparedCommit) => readonly Row[]): Row[] =>
      commits.flatMap((commit) => of(commit).map((row) => [commit.id, commit.expected, ...row]))

    const versions = readVersions(commits.map(({ id, version, token }) => [id, version, token]))
    const outbox = emit(rowsOf(({ emits }) => emits.map(({ targetId, event }) => [targetId, event])))
    const steps = rowsOf(({ trace }) => (trace === undefined ? [] : [[trace]]))
    const companions = [
      ...mark(rowsOf(({ processedEventId: eventId }) => (eventId === undefined ? [] : [[eventId]]))),
      ...spawn(rowsOf(({ spawns }) => spawns.map(({ childId, rootPath, context }) => [childId, rootPath, context]))),
      ...cancel(rowsOf(({ timers }) => timers.flatMap((op) => (op.action === 'cancel' ? [[op.path]] : [])))),
      ...schedule(
        rowsOf(({ timers }) => timers.flatMap((op) => (op.action === 'cancel' ? [] : [[op.path, exactly(op.fireAt)]]))),
      ),
      ...addStep(steps),
      ...trim(traceMax === 0 ? [] : steps.map(([id = null, expected = null]) => [id, expected])),
    ]
    const written = [
      ...create(rowsOf((commit) => (commit.expected === 0 ? [valuesOf(commit)] : []))),
      ...update(rowsOf((commit) => (commit.expected === 0 ? [] : [valuesOf(commit)]))),
    ]
    return {
      statements: [...versions, ...outbox, ...companions, ...written],
      verdicts(results) {
        const read = results
          .slice(0, versions.length)
          .flatMap(
            ({ rows: [row] }) => JSON.parse(String(row?.[0])) as [found: number | null, ownToken: number | null][],
          )
        const numbers = results.slice(versions.length, versions.length + outbox.length).flatMap(insertedIds)
        let taken = 0
        return commits.map(({ expected, emits }, index) => {
          const [found = null, ownToken] = read[index] ?? []
          if ((found ?? 0) !== expected) {
            const refusal = { applied: false, found } as const
            // Null where the stored version is not the one that this commit writes.
            return ownToken === 0 ? { ...refusal, foreign: true } : refusal
          }
          taken += emits.length
          return { applied: true, seqs: numbers.slice(taken - emits.length, taken) }
        })
      },
    }
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
 * A statement over rows, to be given their lists: one or several in their order, none for no rows. Rows travel together as
 * one JSON text, so that a statement is as long for many as for two; a row that is large, or the only one, travels as it is.
 *
 * @param width how many values a row has
 * @param text of the statement, given the expressions of a row's values and a FROM clause, into which it may put a table
 */
function over(
  width: number,
  text: (values: readonly string[], from: (table?: string) => string) => string,
): (rows: readonly Row[]) => Sql[] {
  const values = (expression: (index: number) => string) =>
    Array.from({ length: width }, (_, index) => expression(index))
  const one = text(
    values((index) => `?${index + 1}`),
    (table) => (table === undefined ? '' : ` FROM ${table}`),
  )
  // CROSS JOIN: in SQLite, rows first and then the table, whatever ANALYZE has found in it.
  const many = text(
    values((index) => `r.value ->> ${index}`),
    (table) => ` FROM json_each(?) AS r${table === undefined ? '' : ` CROSS JOIN ${table}`}`,
  )
  return (rows) =>
    partsOf(rows).map((part): Sql => {
      const [row = []] = part
      return part.length === 1 ? { sql: one, params: row } : { sql: many, params: [JSON.stringify(part)] }
    })
}

/** The rows in their order, in lists that are not too large; a row that is too large by itself is alone. */
function partsOf(rows: readonly Row[]): Row[][] {
  const parts: Row[][] = []
  let room = 0
  for (const row of rows) {
    const length = row.reduce<number>((sum, value) => sum + (typeof value === 'string' ? value.length : 0), 0)
    if (length <= room) parts.at(-1)?.push(row)
    else parts.push([row])
    room = (length <= room ? room : PART) - length
  }
  return parts
}
