/** @libsql/client alone: statements that write nothing unless the version is the expected one. */
import type { Client, InStatement } from '@libsql/client'
import { type Actions, PAGE } from '../contender.ts'
import { nextEventId, type Subject, wireEvent } from '../subjects.ts'

const AT_VERSION = 'WHERE EXISTS (SELECT 1 FROM harel_executions WHERE id = ? AND version = ?)'
const EMIT = `INSERT INTO harel_outbox (target_id, event) SELECT ?, ? ${AT_VERSION}`
const MARK = `INSERT INTO harel_processed_events (execution_id, event_id) SELECT ?, ? ${AT_VERSION}`
const UPDATE =
  'UPDATE harel_executions SET data = ?, version = ?, meta_version = ?, definition_id = ?, status = ?, parent_id = ?, ' +
  'outcome = ?, active_path = ?, finished_at = ? WHERE id = ? AND version = ?'

function stateOf({ execution: { id, version: expected }, wire }: Subject): InStatement {
  wire.version = expected + 1
  const summary = [wire.definition_id, wire.status, wire.parent_id, wire.outcome, wire.active_path, wire.finished_at]
  return { sql: UPDATE, args: [JSON.stringify(wire), wire.version, wire.version, ...summary, id, expected] }
}

/** The outbox comes first, the execution last. */
function commitOf(subject: Subject): InStatement[] {
  const eventId = nextEventId()
  const { id, version: expected } = subject.execution
  return [
    { sql: EMIT, args: [id, JSON.stringify(wireEvent(eventId)), id, expected] },
    { sql: MARK, args: [id, eventId, id, expected] },
    stateOf(subject),
  ]
}

async function write(client: Client, subjects: readonly Subject[], of: (subject: Subject) => InStatement[]) {
  const parts = subjects.map(of)
  const results = await client.batch(parts.flat(), 'write')
  let next = 0
  return subjects.map(({ execution }, index) => {
    const first = next
    next += parts[index]?.length ?? 0
    const updated = results[next - 1]
    if (updated?.rowsAffected !== 1) throw new Error(`version ${execution.version} of ${execution.id} is not stored`)
    execution.version += 1
    return Number(results[first]?.lastInsertRowid)
  })
}

/** One batch for one commit, and one statement for each question. */
export const byHand = (client: Client): Partial<Actions> => ({
  state: (subject) => write(client, [subject], (each) => [stateOf(each)]),
  commit: (subject) => write(client, [subject], commitOf),
  load: async (id) => {
    const { rows } = await client.execute({ sql: 'SELECT data FROM harel_executions WHERE id = ?', args: [id] })
    return JSON.parse(String(rows[0]?.data))
  },
  relay: async () => {
    const sql = 'SELECT seq, target_id, event FROM harel_outbox ORDER BY seq LIMIT ?'
    const { rows } = await client.execute({ sql, args: [PAGE] })
    const events = rows.map(({ event }) => JSON.parse(String(event)))
    const seqs = JSON.stringify(rows.map(({ seq }) => seq))
    const gone = 'DELETE FROM harel_outbox WHERE seq IN (SELECT value FROM json_each(?))'
    await client.execute({ sql: gone, args: [seqs] })
    return events
  },
})

/** One batch for all commits that wait. */
export function sharedByHand(client: Client): Partial<Actions> {
  let waiting: { subject: Subject; resolve: (seq: number) => void; reject: (error: unknown) => void }[] = []
  const send = async () => {
    const sent = waiting
    waiting = []
    const subjects = sent.map(({ subject }) => subject)
    try {
      const seqs = await write(client, subjects, commitOf)
      for (const [index, { resolve }] of sent.entries()) resolve(seqs[index] ?? Number.NaN)
    } catch (error) {
      for (const { reject } of sent) reject(error)
    }
  }
  return {
    commit: (subject) =>
      new Promise<number>((resolve, reject) => {
        waiting.push({ subject, resolve, reject })
        if (waiting.length === 1) setImmediate(send)
      }),
  }
}
