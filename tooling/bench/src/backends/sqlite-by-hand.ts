/** better-sqlite3 alone: the same statements on the same tables, prepared once. */
import { Worker } from 'node:worker_threads'
import type { Database } from 'better-sqlite3'
import { type Actions, PAGE } from '../contender.ts'
import { KEPT, nextEventId, type Subject, wireEvent, wireFull } from '../subjects.ts'

/** What a commit writes, flat, which is the fastest to send to a thread: the state, then an event, then all the rest. */
export type Row = readonly (string | number | null)[]

const STATE = 9
const COMMIT = STATE + 2

/** The execution at its next version. */
function stateRow({ execution, wire }: Subject): Row {
  wire.version = execution.version + 1
  const { version, outcome, active_path, finished_at, id, status, parent_id, definition_id } = wire
  return [JSON.stringify(wire), version, outcome, active_path, finished_at, id, status, parent_id, definition_id]
}

function commitRow(subject: Subject): Row {
  const eventId = nextEventId()
  return [...stateRow(subject), eventId, JSON.stringify(wireEvent(eventId))]
}

function fullRow(subject: Subject): Row {
  const eventId = nextEventId()
  const { events, timers, spawn, trace } = wireFull(eventId)
  const more = [spawn.childId, spawn.rootPath, spawn.context, trace]
  return [...stateRow(subject), eventId, ...events, ...more, ...timers.flatMap(({ path, fireAt }) => [path, fireAt])]
}

/** Writes rows in one transaction, and returns the seqs of their first events. */
export function writerByHand(db: Database) {
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
  const spawn = db.prepare('INSERT INTO harel_spawns (parent_id, child_id, root_path, context) VALUES (?, ?, ?, ?)')
  const timer = db.prepare(
    'INSERT INTO harel_timers (execution_id, path, fire_at) VALUES (?, ?, ?) ' +
      'ON CONFLICT (execution_id, path) DO UPDATE SET fire_at = excluded.fire_at',
  )
  const trace = db
    .prepare(
      'INSERT INTO harel_trace (execution_id, idx, entry) ' +
        'SELECT ?, COALESCE(MAX(idx), -1) + 1, ? FROM harel_trace WHERE execution_id = ? RETURNING idx',
    )
    .pluck()
  const trim = db.prepare('DELETE FROM harel_trace WHERE execution_id = ? AND idx <= ?')
  const rest = (id: string, row: Row) => {
    const [event, childId, rootPath, context, step, ...timers] = row.slice(COMMIT)
    emit.run(id, event)
    spawn.run(id, childId, rootPath, context)
    for (let n = 0; n < timers.length; n += 2) timer.run(id, timers[n], timers[n + 1])
    trim.run(id, Number(trace.get(id, step, id)) - KEPT)
  }
  const write = (row: Row): number => {
    const [data, version, outcome, activePath, finishedAt, id, status, parentId, definitionId, eventId, event] = row
    const before = Number(version) - 1
    const summary = [outcome, activePath, finishedAt]
    const { changes } = update.run(data, version, version, ...summary, id, before, status, parentId, definitionId)
    if (changes === 0) throw new Error(`version ${before} of ${id} is not stored`)
    if (row.length === STATE) return 0
    const { lastInsertRowid } = emit.run(id, event)
    mark.run(id, eventId)
    if (row.length > COMMIT) rest(String(id), row)
    return Number(lastInsertRowid)
  }
  return (rows: readonly Row[]): number[] => {
    begin.run()
    try {
      const seqs = rows.map(write)
      commit.run()
      return seqs
    } catch (error) {
      rollback.run()
      throw error
    }
  }
}

type Pending = readonly [seq: number, targetId: string, event: string]

/** What is asked for, on this connection. */
export function byHand(db: Database): Actions {
  const write = writerByHand(db)
  const commit = (subject: Subject, row: Row) => {
    const seqs = write([row])
    subject.execution.version += 1
    return seqs
  }
  const load = db.prepare('SELECT data FROM harel_executions WHERE id = ?').pluck()
  const loadForEvent = db
    .prepare<[string, string], [data: string, processed: number]>(
      'SELECT data, EXISTS (SELECT 1 FROM harel_processed_events WHERE execution_id = id AND event_id = ?) ' +
        'FROM harel_executions WHERE id = ?',
    )
    .raw()
  const pending = db
    .prepare<[number], Pending>('SELECT seq, target_id, event FROM harel_outbox ORDER BY seq LIMIT ?')
    .raw()
  const acknowledge = db.prepare('DELETE FROM harel_outbox WHERE seq = ?')
  const acknowledgeAll = db.transaction((rows: readonly Pending[]) => {
    for (const [seq] of rows) acknowledge.run(seq)
  })
  const due = db
    .prepare(
      'SELECT execution_id, path, fire_at FROM harel_timers WHERE fire_at <= ? ' +
        'ORDER BY fire_at, execution_id, path LIMIT ?',
    )
    .raw()
  const list = db
    .prepare(
      'SELECT id, definition_id, version, status, outcome, active_path, parent_id, finished_at ' +
        'FROM harel_executions WHERE id > ? ORDER BY id LIMIT ?',
    )
    .raw()
  const eventsOf = (rows: readonly Pending[]) => rows.map(([, , event]) => JSON.parse(event))
  return {
    state: (subject) => commit(subject, stateRow(subject)),
    commit: (subject) => commit(subject, commitRow(subject)),
    full: (subject) => commit(subject, fullRow(subject)),
    load: (id) => JSON.parse(String(load.get(id))),
    loadForEvent: (id) => {
      const [data = '', processed] = loadForEvent.get(nextEventId(), id) ?? []
      return { execution: JSON.parse(data), processed: processed === 1 }
    },
    relay: () => {
      const rows = pending.all(PAGE)
      const events = eventsOf(rows)
      acknowledgeAll.immediate(rows)
      return events
    },
    page: () => eventsOf(pending.all(PAGE)),
    timers: (now) => due.all(now, PAGE),
    list: ({ after }) => list.all(after, PAGE),
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
  const commit = async (subject: Subject, row: Row) => {
    const seq = await new Promise<number>((resolve) => {
      waiting.push({ row, resolve })
      if (scheduled) return
      scheduled = true
      queueMicrotask(send)
    })
    subject.execution.version += 1
    return [seq]
  }
  const does: Partial<Actions> = {
    state: (subject) => commit(subject, stateRow(subject)),
    commit: (subject) => commit(subject, commitRow(subject)),
    full: (subject) => commit(subject, fullRow(subject)),
  }
  return { does, close: () => worker.terminate() }
}
