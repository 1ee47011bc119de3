/**
 * By hand in SQLite's dialect, where a list of statements is one transaction but none can go by what another one has
 * found: nothing is written unless the version is the expected one, and the execution comes last.
 */
import { type Actions, PAGE } from '../contender.ts'
import { KEPT, nextEventId, type Subject, wireEvent, wireFull } from '../subjects.ts'
import { gather } from './gather.ts'

type Value = string | number | null
export type Statement = readonly [sql: string, ...params: Value[]]

/** The bare driver. */
export interface Database {
  /** @returns for each statement the number of rows, and the key of the last one that it has inserted */
  write(statements: readonly Statement[]): Promise<readonly { changes: number; lastId: number }[]>
  read(statement: Statement): Promise<readonly { readonly [column: number]: unknown }[]>
}

/** What a commit adds to each table. The first values of a row are the id and the version that its guard goes by. */
type Row = readonly [id: string, version: number, ...values: Value[]]
const TABLES = ['event', 'mark', 'spawn', 'timer', 'step', 'trim', 'execution'] as const
type Rows = Partial<Record<(typeof TABLES)[number], readonly Row[]>>

const EXECUTION = ['data', 'definition_id', 'status', 'parent_id', 'outcome', 'active_path', 'finished_at']

/** @param from the rows, with a comma behind them; empty for one row */
function writesOf(value: (index: number) => string, from: string): Record<(typeof TABLES)[number], string> {
  const [id, version, ...rest] = Array.from({ length: 2 + EXECUTION.length }, (_, index) => value(index))
  const [first, second, third] = rest
  const guarded = `FROM ${from}harel_executions e WHERE e.id = ${id} AND e.version = ${version}`
  const last = `(SELECT max(idx) FROM harel_trace WHERE execution_id = ${id})`
  const set = EXECUTION.map((column, index) => `${column} = ${rest[index]}`)
  return {
    event: `INSERT INTO harel_outbox (target_id, event) SELECT ${id}, ${first} ${guarded}`,
    mark: `INSERT INTO harel_processed_events (execution_id, event_id) SELECT ${id}, ${first} ${guarded} ON CONFLICT DO NOTHING`,
    spawn: `INSERT INTO harel_spawns (parent_id, child_id, root_path, context) SELECT ${id}, ${first}, ${second}, ${third} ${guarded}`,
    timer: `INSERT INTO harel_timers (execution_id, path, fire_at) SELECT ${id}, ${first}, ${second} ${guarded}
      ON CONFLICT (execution_id, path) DO UPDATE SET fire_at = excluded.fire_at`,
    step: `INSERT INTO harel_trace (execution_id, idx, entry) SELECT ${id}, coalesce(${last} + 1, 0), ${first} ${guarded}`,
    trim: `DELETE FROM harel_trace WHERE (execution_id, idx) IN (SELECT t.execution_id, t.idx
      FROM ${from}harel_executions e, harel_trace t
      WHERE e.id = ${id} AND e.version = ${version} AND t.execution_id = ${id} AND t.idx <= ${last} - ${first})`,
    execution: `UPDATE harel_executions AS e SET version = e.version + 1, meta_version = e.version + 1, ${set}
      ${from.replace(/(.*), $/, 'FROM $1')} WHERE e.id = ${id} AND e.version = ${version}`,
  }
}

const ONE = writesOf((index) => `?${index + 1}`, '')
const ALL = writesOf((index) => `r.value ->> ${index}`, 'json_each(?) r, ')

const READ = {
  execution: 'SELECT data FROM harel_executions WHERE id = ?',
  withMark: `SELECT data, EXISTS (SELECT 1 FROM harel_processed_events WHERE execution_id = id AND event_id = ?)
    FROM harel_executions WHERE id = ?`,
  events: 'SELECT seq, target_id, event FROM harel_outbox ORDER BY seq LIMIT ?',
  timers: `SELECT execution_id, path, fire_at FROM harel_timers WHERE fire_at <= ?
    ORDER BY fire_at, execution_id, path LIMIT ?`,
  list: `SELECT id, definition_id, version, status, outcome, active_path, parent_id, finished_at FROM harel_executions
    WHERE id > ? ORDER BY id LIMIT ?`,
}
const ACKNOWLEDGE = 'DELETE FROM harel_outbox WHERE seq IN (SELECT value FROM json_each(?))'

function stateOf({ execution: { id, version }, wire }: Subject): Rows {
  wire.version = version + 1
  const { definition_id, status, parent_id, outcome, active_path, finished_at } = wire
  const summary = [definition_id, status, parent_id, outcome, active_path, finished_at]
  return { execution: [[id, version, JSON.stringify(wire), ...summary]] }
}

function commitOf(subject: Subject): Rows {
  const { id, version } = subject.execution
  const eventId = nextEventId()
  return {
    event: [[id, version, JSON.stringify(wireEvent(eventId))]],
    mark: [[id, version, eventId]],
    ...stateOf(subject),
  }
}

function fullOf(subject: Subject): Rows {
  const { id, version } = subject.execution
  const eventId = nextEventId()
  const { events, timers, spawn, trace } = wireFull(eventId)
  return {
    event: events.map((event) => [id, version, event]),
    mark: [[id, version, eventId]],
    spawn: [[id, version, spawn.childId, spawn.rootPath, spawn.context]],
    timer: timers.map(({ path, fireAt }) => [id, version, path, fireAt]),
    step: [[id, version, trace]],
    trim: [[id, version, KEPT]],
    ...stateOf(subject),
  }
}

/** A transaction for each commit, and a statement for each question. */
export function guardedByHand(db: Database): Actions {
  const commit = (of: (subject: Subject) => Rows) => async (subject: Subject) => {
    const { execution } = subject
    const rows = of(subject)
    const statements = TABLES.flatMap((table) => (rows[table] ?? []).map((row): Statement => [ONE[table], ...row]))
    const results = await db.write(statements)
    if (results.at(-1)?.changes !== 1) throw new Error(`version ${execution.version} of ${execution.id} is not stored`)
    execution.version += 1
    return (rows.event ?? []).map((_, index) => results[index]?.lastId)
  }
  const page = async () => {
    const rows = await db.read([READ.events, PAGE])
    return rows.map((row) => ({ seq: Number(row[0]), event: JSON.parse(String(row[2])) }))
  }
  return {
    state: commit(stateOf),
    commit: commit(commitOf),
    full: commit(fullOf),
    load: async (id) => {
      const [row] = await db.read([READ.execution, id])
      return JSON.parse(String(row?.[0]))
    },
    loadForEvent: async (id) => {
      const [row] = await db.read([READ.withMark, nextEventId(), id])
      return { execution: JSON.parse(String(row?.[0])), processed: row?.[1] === 1 }
    },
    relay: async () => {
      const entries = await page()
      await db.write([[ACKNOWLEDGE, JSON.stringify(entries.map(({ seq }) => seq))]])
      return entries
    },
    page,
    timers: (now) => db.read([READ.timers, now, PAGE]),
    list: ({ after }) => db.read([READ.list, after, PAGE]),
  }
}

/** One transaction for all commits that wait, with a statement for each table, and one at a time. */
export function batchesByHand(db: Database): Partial<Actions> {
  const write = gather(async (commits: readonly Rows[]) => {
    const tables = TABLES.filter((table) => commits.some((rows) => rows[table] !== undefined))
    const statements = tables.map((table): Statement => {
      return [ALL[table], JSON.stringify(commits.flatMap((rows) => rows[table] ?? []))]
    })
    const results = await db.write(statements)
    if (results.at(-1)?.changes !== commits.length) throw new Error('a version is not stored')
    const { changes = 0, lastId = 0 } = results[tables.indexOf('event')] ?? {}
    let next = lastId - changes + 1
    return commits.map(({ event = [] }) => event.map(() => next++))
  })
  const commit = (of: (subject: Subject) => Rows) => async (subject: Subject) => {
    const seqs = await write(of(subject))
    subject.execution.version += 1
    return seqs
  }
  return { state: commit(stateOf), commit: commit(commitOf), full: commit(fullOf) }
}
