/** `fetch` alone: a transactional request for one commit, and for all that wait. */
import { type Actions, PAGE } from '../contender.ts'
import { nextEventId, type Subject, wireEvent } from '../subjects.ts'

interface Result {
  error?: string
  rows_affected?: number
  last_insert_id?: number
}

type Value = string | number | null
type Statement = readonly [sql: string, ...params: Value[]]

async function send(url: string, statements: readonly Statement[]): Promise<Result[]> {
  const headers = { 'content-type': 'application/json' }
  const reply = await fetch(`${url}/db/execute?transaction`, {
    method: 'POST',
    headers,
    body: JSON.stringify(statements),
  })
  const { results = [], error } = (await reply.json()) as { results?: Result[]; error?: string }
  const failed = error ?? results.find((result) => result.error !== undefined)?.error
  if (failed !== undefined) throw new Error(failed)
  return results
}

/** Rows with every acknowledged write in them, as the store reads them by default. */
async function ask(url: string, ...statement: Statement): Promise<Value[][]> {
  const headers = { 'content-type': 'application/json' }
  const body = JSON.stringify([statement])
  const reply = await fetch(`${url}/db/query?level=strong`, { method: 'POST', headers, body })
  const { results = [] } = (await reply.json()) as { results?: { values?: Value[][]; error?: string }[] }
  if (results[0]?.error !== undefined) throw new Error(results[0].error)
  return results[0]?.values ?? []
}

/** Serialises one commit: what its event, its mark and its execution need. */
function rowOf({ execution, wire }: Subject): readonly Value[] {
  const eventId = nextEventId()
  wire.version = execution.version + 1
  const event = JSON.stringify(wireEvent(eventId))
  const summary = [wire.definition_id, wire.status, wire.parent_id, wire.outcome, wire.active_path, wire.finished_at]
  return [wire.id, execution.version, eventId, event, JSON.stringify(wire), ...summary]
}

const COLUMNS = ['data', 'definition_id', 'status', 'parent_id', 'outcome', 'active_path', 'finished_at']
const SET = (nth: (index: number) => string) => COLUMNS.map((column, index) => `${column} = ${nth(index)}`).join()

const STORED = 'EXISTS (SELECT 1 FROM harel_executions WHERE id = ?1 AND version = ?2)'
const ONE = {
  event: `INSERT INTO harel_outbox (target_id, event) SELECT ?1, ?3 WHERE ${STORED}`,
  mark: `INSERT INTO harel_processed_events (execution_id, event_id) SELECT ?1, ?3 WHERE ${STORED} ON CONFLICT DO NOTHING`,
  execution: `UPDATE harel_executions SET version = ?2 + 1, meta_version = ?2 + 1, ${SET((index) => `?${index + 3}`)}
    WHERE id = ?1 AND version = ?2`,
}

/** One request for one commit, and for each question. */
export const byHand = (url: string): Partial<Actions> => ({
  state: async (subject) => {
    const [id = null, version = null, , , ...columns] = rowOf(subject)
    const [updated] = await send(url, [[ONE.execution, id, version, ...columns]])
    if (updated?.rows_affected !== 1) throw new Error(`version ${version} of ${id} is not stored`)
    subject.execution.version += 1
  },
  commit: async (subject) => {
    const [id = null, version = null, eventId = null, event = null, ...columns] = rowOf(subject)
    const [emitted, , updated] = await send(url, [
      [ONE.event, id, version, event],
      [ONE.mark, id, version, eventId],
      [ONE.execution, id, version, ...columns],
    ])
    if (updated?.rows_affected !== 1) throw new Error(`version ${version} of ${id} is not stored`)
    subject.execution.version += 1
    return [emitted?.last_insert_id]
  },
  load: async (id) => {
    const [row] = await ask(url, 'SELECT data FROM harel_executions WHERE id = ?', id)
    return JSON.parse(String(row?.[0]))
  },
  relay: async () => {
    const rows = await ask(url, 'SELECT seq, target_id, event FROM harel_outbox ORDER BY seq LIMIT ?', PAGE)
    const events = rows.map(([, , event]) => JSON.parse(String(event)))
    const seqs = JSON.stringify(rows.map(([seq]) => seq))
    await send(url, [['DELETE FROM harel_outbox WHERE seq IN (SELECT value FROM json_each(?))', seqs]])
    return events
  },
})

const value = (index: number) => `r.value ->> ${index}`
const ALL_STORED = `EXISTS (SELECT 1 FROM harel_executions WHERE id = ${value(0)} AND version = ${value(1)})`
const ALL = {
  event: `INSERT INTO harel_outbox (target_id, event) SELECT ${value(0)}, ${value(2)} FROM json_each(?) r WHERE ${ALL_STORED}`,
  mark: `INSERT INTO harel_processed_events (execution_id, event_id) SELECT ${value(0)}, ${value(2)} FROM json_each(?) r
    WHERE ${ALL_STORED} ON CONFLICT DO NOTHING`,
  execution: `UPDATE harel_executions AS e SET version = ${value(1)} + 1, meta_version = ${value(1)} + 1,
    ${SET((index) => value(index + 2))} FROM json_each(?) r WHERE e.id = ${value(0)} AND e.version = ${value(1)}`,
}

/** One request for all commits that wait, and one at a time. */
export function batchesByHand(url: string): Partial<Actions> {
  let waiting: { row: readonly Value[]; resolve: (seq: number) => void; reject: (error: unknown) => void }[] = []
  let underWay = false
  const part = (rows: readonly (readonly Value[])[], of: (row: readonly Value[]) => readonly Value[]) =>
    JSON.stringify(rows.map((row) => [row[0], row[1], ...of(row)]))
  const write = async () => {
    if (underWay || waiting.length === 0) return
    const sent = waiting
    waiting = []
    underWay = true
    try {
      const rows = sent.map(({ row }) => row)
      const [emitted, , updated] = await send(url, [
        [ALL.event, part(rows, (row) => [row[3] ?? null])],
        [ALL.mark, part(rows, (row) => [row[2] ?? null])],
        [ALL.execution, part(rows, (row) => row.slice(4))],
      ])
      if (updated?.rows_affected !== sent.length) throw new Error('a version is not stored')
      const last = emitted?.last_insert_id ?? 0
      for (const [index, { resolve }] of sent.entries()) resolve(last - sent.length + 1 + index)
    } catch (error) {
      for (const { reject } of sent) reject(error)
    }
    underWay = false
    setImmediate(write)
  }
  const commit = async (subject: Subject) => {
    const row = rowOf(subject)
    const seq = await new Promise<number>((resolve, reject) => {
      waiting.push({ row, resolve, reject })
      if (waiting.length === 1) queueMicrotask(write)
    })
    subject.execution.version += 1
    return [seq]
  }
  return { commit }
}
