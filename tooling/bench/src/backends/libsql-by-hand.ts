/** The writes of a commit with @libsql/client alone: statements that write nothing unless the version is the expected one. */
import type { Client, InStatement } from '@libsql/client'
import { nextEventId, type Subject, wireEvent } from '../workload.ts'

const AT_VERSION = 'WHERE EXISTS (SELECT 1 FROM harel_executions WHERE id = ? AND version = ?)'
const EMIT = `INSERT INTO harel_outbox (target_id, event) SELECT ?, ? ${AT_VERSION}`
const MARK = `INSERT INTO harel_processed_events (execution_id, event_id) SELECT ?, ? ${AT_VERSION}`
const UPDATE =
  'UPDATE harel_executions SET data = ?, version = ?, meta_version = ?, definition_id = ?, status = ?, parent_id = ?, ' +
  'outcome = ?, active_path = ?, finished_at = ? WHERE id = ? AND version = ?'

/** Serialises one commit. The outbox comes first, the execution last. */
function statementsOf({ execution, wire }: Subject): InStatement[] {
  const eventId = nextEventId()
  const { id, version: expected } = execution
  wire.version = expected + 1
  const summary = [wire.definition_id, wire.status, wire.parent_id, wire.outcome, wire.active_path, wire.finished_at]
  return [
    { sql: EMIT, args: [id, JSON.stringify(wireEvent(eventId)), id, expected] },
    { sql: MARK, args: [id, eventId, id, expected] },
    { sql: UPDATE, args: [JSON.stringify(wire), wire.version, wire.version, ...summary, id, expected] },
  ]
}

const STATEMENTS = 3

async function write(client: Client, subjects: readonly Subject[]): Promise<number[]> {
  const results = await client.batch(subjects.flatMap(statementsOf), 'write')
  return subjects.map(({ execution }, index) => {
    const [emitted, , updated] = results.slice(index * STATEMENTS)
    if (updated?.rowsAffected !== 1) throw new Error(`version ${execution.version} of ${execution.id} is not stored`)
    execution.version += 1
    return Number(emitted?.lastInsertRowid)
  })
}

/** One batch for one commit. */
export const singleBatches = (client: Client) => (subject: Subject) => write(client, [subject])

/** One batch for all commits that wait. */
export function sharedBatches(client: Client) {
  let waiting: { subject: Subject; resolve: (seq: number) => void; reject: (error: unknown) => void }[] = []
  const send = async () => {
    const sent = waiting
    waiting = []
    try {
      const seqs = await write(
        client,
        sent.map(({ subject }) => subject),
      )
      for (const [index, { resolve }] of sent.entries()) resolve(seqs[index] ?? Number.NaN)
    } catch (error) {
      for (const { reject } of sent) reject(error)
    }
  }
  return (subject: Subject) =>
    new Promise<number>((resolve, reject) => {
      waiting.push({ subject, resolve, reject })
      if (waiting.length === 1) setImmediate(send)
    })
}
