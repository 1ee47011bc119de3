/** The writes of a commit with better-sqlite3 alone: the same statements on the same tables, prepared once. */
import { Worker } from 'node:worker_threads'
import type { Database } from 'better-sqlite3'
import { type Subject, wireEvent } from '../workload.ts'

/** What a commit writes, as texts and numbers. */
export type Row = readonly [
  data: string,
  version: number,
  outcome: string | null,
  activePath: string | null,
  finishedAt: number | null,
  id: string,
  status: string,
  parentId: string | null,
  definitionId: string,
  target: string,
  event: string,
  eventId: string,
]

/** Serialises one commit: the execution at its next version, an event to itself, and the id of the event handled. */
export function rowOf({ execution, wire }: Subject, eventId: string): Row {
  wire.version = execution.version + 1
  return [
    JSON.stringify(wire),
    wire.version,
    wire.outcome,
    wire.active_path,
    wire.finished_at,
    wire.id,
    wire.status,
    wire.parent_id,
    wire.definition_id,
    wire.id,
    JSON.stringify(wireEvent(eventId)),
    eventId,
  ]
}

/** The statements, and what runs them in one transaction. */
export function byHand(db: Database) {
  const begin = db.prepare('BEGIN IMMEDIATE')
  const commit = db.prepare('COMMIT')
  const rollback = db.prepare('ROLLBACK')
  const update = db.prepare(
    'UPDATE harel_executions SET data = ?, version = ?, meta_version = ?, outcome = ?, active_path = ?, finished_at = ? ' +
      'WHERE id = ? AND version = ? AND status = ? AND parent_id IS ? AND definition_id = ?',
  )
  const emit = db.prepare('INSERT INTO harel_outbox (target_id, event) VALUES (?, ?)')
  const mark = db.prepare(
    'INSERT INTO harel_processed_events (execution_id, event_id) VALUES (?, ?) ON CONFLICT DO NOTHING',
  )
  const apply = (row: Row): number => {
    const [data, version, outcome, activePath, finishedAt, id, status, parentId, definitionId, target, event, eventId] =
      row
    const { changes } = update.run(
      data,
      version,
      version,
      outcome,
      activePath,
      finishedAt,
      id,
      version - 1,
      status,
      parentId,
      definitionId,
    )
    if (changes === 0) throw new Error(`version ${version - 1} of ${id} is not stored`)
    const { lastInsertRowid } = emit.run(target, event)
    mark.run(id, eventId)
    return Number(lastInsertRowid)
  }
  return (rows: readonly Row[]): number[] => {
    begin.run()
    try {
      const seqs = rows.map(apply)
      commit.run()
      return seqs
    } catch (error) {
      rollback.run()
      throw error
    }
  }
}

/** A thread that writes batches: those that wait are sent together when the batch before has come back. */
export function workerByHand(path: string) {
  const worker = new Worker(new URL('./sqlite-by-hand-worker.ts', import.meta.url), { workerData: path })
  let waiting: { row: Row; resolve: (seq: number) => void }[] = []
  let sent: typeof waiting = []
  let scheduled = false
  const send = () => {
    scheduled = false
    if (sent.length > 0 || waiting.length === 0) return
    sent = waiting
    waiting = []
    worker.postMessage(sent.map(({ row }) => row))
  }
  worker.on('message', (seqs: number[]) => {
    for (const [index, { resolve }] of sent.entries()) resolve(seqs[index] ?? Number.NaN)
    sent = []
    scheduled = true
    setImmediate(send)
  })
  worker.on('error', (error) => {
    throw error
  })
  return {
    commit: (row: Row) =>
      new Promise<number>((resolve) => {
        waiting.push({ row, resolve })
        if (scheduled) return
        scheduled = true
        queueMicrotask(send)
      }),
    close: () => worker.terminate(),
  }
}
