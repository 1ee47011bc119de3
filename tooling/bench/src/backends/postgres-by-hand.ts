/** postgres.js alone: functions that do no more than the writes, their prepared calls, and prepared statements. */
import type { Sql } from 'postgres'
import { type Actions, PAGE } from '../contender.ts'
import { KEPT, nextEventId, type Subject, wireEvent, wireFull } from '../subjects.ts'
import { ALL, FULL, ONE, STATE } from './postgres-by-hand-sql.ts'

type Row = readonly (string | number | null)[]

/** The execution at its next version: the parameters of `by_hand_state`, which the others begin with. */
function stateRow({ execution, wire }: Subject): Row {
  wire.version = execution.version + 1
  const { id, definition_id, status, parent_id, outcome, active_path, finished_at } = wire
  const data = JSON.stringify(wire)
  return [id, execution.version, definition_id, status, parent_id, outcome, active_path, finished_at, data]
}

function commitRow(subject: Subject): Row {
  const eventId = nextEventId()
  return [...stateRow(subject), eventId, JSON.stringify(wireEvent(eventId))]
}

function fullRow(subject: Subject): Row {
  const eventId = nextEventId()
  const { events, timers, spawn, trace } = wireFull(eventId)
  const more = [spawn.childId, spawn.rootPath, spawn.context, trace, KEPT]
  return [...stateRow(subject), eventId, ...events, ...more, ...timers.flatMap(({ path, fireAt }) => [path, fireAt])]
}

/** One call for one commit, and one statement for each question. */
export function byHand(sql: Sql): Actions {
  const call = async (subject: Subject, text: string, row: Row) => {
    const [answer] = await sql.unsafe(text, [...row], { prepare: true }).values()
    if (answer?.[0] == null) throw new Error(`version ${subject.execution.version} of ${subject.wire.id} is not stored`)
    subject.execution.version += 1
    return [Number(answer[0])]
  }
  const ask = (text: string, ...params: (string | number)[]) => sql.unsafe(text, params, { prepare: true }).values()
  const page = async () => {
    const rows = await ask('SELECT seq, target_id, event FROM harel_outbox ORDER BY seq LIMIT $1', PAGE)
    return rows.map(([seq, , event]) => ({ seq, event: JSON.parse(event) }))
  }
  return {
    state: (subject) => call(subject, STATE, stateRow(subject)),
    commit: (subject) => call(subject, ONE, commitRow(subject)),
    full: (subject) => call(subject, FULL, fullRow(subject)),
    load: async (id) => {
      const [row] = await ask('SELECT data FROM harel_executions WHERE id = $1', id)
      return JSON.parse(row?.[0])
    },
    loadForEvent: async (id) => {
      const [row] = await ask(
        `SELECT data, EXISTS (SELECT 1 FROM harel_processed_events WHERE execution_id = $1 AND event_id = $2)
          FROM harel_executions WHERE id = $1`,
        id,
        nextEventId(),
      )
      return { execution: JSON.parse(row?.[0]), processed: row?.[1] }
    },
    relay: async () => {
      const entries = await page()
      const seqs = `{${entries.map(({ seq }) => seq).join()}}`
      await ask('DELETE FROM harel_outbox WHERE seq = ANY ($1::bigint[])', seqs)
      return entries
    },
    page,
    timers: (now) =>
      ask(
        `SELECT execution_id, path, fire_at FROM harel_timers WHERE fire_at <= $1
          ORDER BY fire_at, execution_id COLLATE "C", path COLLATE "C" LIMIT $2`,
        now,
        PAGE,
      ),
    list: ({ after }) =>
      ask(
        `SELECT id, definition_id, version, status, outcome, active_path, parent_id, finished_at FROM harel_executions
          WHERE id COLLATE "C" > $1 ORDER BY id COLLATE "C" LIMIT $2`,
        after,
        PAGE,
      ),
  }
}

/** So many commits share a call at most: of 256 at once, half are prepared here while the server writes the others. */
const TOGETHER = 128

/** One call for commits that wait, with another one under way. */
export function batchesByHand(sql: Sql): Partial<Actions> {
  const waiting: { row: Row; resolve: (seq: number) => void; reject: (error: unknown) => void }[] = []
  let underWay = 0
  const send = async () => {
    if (underWay === 2 || waiting.length === 0) return
    const sent = waiting.splice(0, TOGETHER)
    underWay++
    try {
      const columns = sent[0]?.row.map((_, column) => sent.map(({ row }) => row[column] ?? null)) ?? []
      const rows = await sql.unsafe(ALL, columns, { prepare: true }).values()
      if (rows.length !== sent.length) throw new Error('a version is not stored')
      for (const [index, { resolve }] of sent.entries()) resolve(Number(rows[index]?.[0]))
    } catch (error) {
      for (const { reject } of sent) reject(error)
    }
    underWay--
    setImmediate(send)
  }
  const commit = async (subject: Subject) => {
    const row = commitRow(subject)
    const seq = await new Promise<number>((resolve, reject) => {
      waiting.push({ row, resolve, reject })
      if (waiting.length === 1) queueMicrotask(send)
    })
    subject.execution.version += 1
    return [seq]
  }
  return { commit }
}
