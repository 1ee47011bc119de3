/** Databases to measure on. */
import { mkdtempSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { STATUSES, type Status } from '@harel/store-base'
import { storeSchema } from '@harel/store-base/sql'
import Database from 'better-sqlite3'
import { DUE, type Fill, idOf, SAMPLE } from '../fill.ts'
import { BYTES, nextEventId, type Subject, subject, wireEvent } from '../subjects.ts'

export interface Filled {
  readonly path: string
  /** Some of the stored executions, in no order. */
  readonly subjects: readonly Subject[]
}

/** Where a new file can be, in a folder that is removed with whatever is in it. */
export function fileIn(dir: string): AsyncDisposable & { url: string } {
  const folder = mkdtempSync(join(dir, 'harel-bench-'))
  const remove = () => rmSync(folder, { recursive: true, force: true })
  process.once('exit', remove)
  return {
    url: join(folder, 'bench.db'),
    async [Symbol.asyncDispose]() {
      process.off('exit', remove)
      remove()
    },
  }
}

/** Runs `work` in a new folder, which is removed afterwards. */
export async function inFolder<T>(dir: string, work: (folder: string) => Promise<T>): Promise<T> {
  await using file = fileIn(dir)
  return await work(dirname(file.url))
}

/** Of 100 executions, so many are in each status: most are finished, some are at work. */
const SHARES: Readonly<Record<Status, number>> = {
  DONE: 60,
  RUNNING: 20,
  PENDING: 4,
  SUSPENDED: 4,
  CANCELLED: 4,
  CANCELLING: 4,
  FAILED: 4,
}
const STATUS = STATUSES.flatMap((status) => Array<Status>(SHARES[status]).fill(status))
const DEFINITIONS = ['order', 'payment', 'shipment', 'refund'] as const

const at = <T>(list: readonly T[], n: number): T => list[n % list.length] as T

const fieldsOf = (n: number) => ({
  id: idOf(n),
  definitionId: at(DEFINITIONS, Math.floor(n / 100)),
  status: at(STATUS, n),
  parentId: Math.floor(n / 400) % 5 === 0 ? idOf(n + 1) : null,
})

/**
 * A database with so many executions, pending events and due timers. The rows are written before the indexes are
 * made and without a journal, which takes a fraction of the time of commits.
 */
export function fill(path: string, rows: number, onProgress: (part: number) => void = () => {}): Filled {
  const db = new Database(path)
  for (const pragma of ['journal_mode = OFF', 'synchronous = OFF', 'cache_size = -500000']) db.pragma(pragma)
  const schema = storeSchema('sqlite').filter(({ kind }) => kind !== 'column')
  for (const { kind, sql } of schema) if (kind === 'table') db.exec(sql)
  const execution = db.prepare(
    'INSERT INTO harel_executions (id, definition_id, version, status, parent_id, active_path, meta_version, data) ' +
      'VALUES (?, ?, 1, ?, ?, ?, 1, ?)',
  )
  const event = db.prepare('INSERT INTO harel_outbox (target_id, event) VALUES (?, ?)')
  const timer = db.prepare('INSERT INTO harel_timers (execution_id, path, fire_at) VALUES (?, ?, ?)')
  const template = subject(fieldsOf(0), BYTES, 1).wire
  const pending = JSON.stringify(wireEvent(nextEventId()))
  const subjects: Subject[] = []
  const every = Math.ceil(rows / SAMPLE)
  db.exec('BEGIN')
  for (let n = 0; n < rows; n++) {
    const fields = fieldsOf(n)
    const { id, definitionId, status, parentId } = fields
    const payload = { ...template, id, definition_id: definitionId, status, parent_id: parentId }
    execution.run(id, definitionId, status, parentId, template.active_path, JSON.stringify(payload))
    event.run(id, pending)
    timer.run(id, 'due', DUE - n)
    if (n % every === 0) subjects.push(subject(fields, BYTES, 1))
    if (n % 1000 === 0) onProgress(n / rows)
  }
  db.exec('COMMIT')
  for (const { kind, sql } of schema) if (kind !== 'table') db.exec(sql)
  db.pragma('journal_mode = WAL')
  db.close()
  return { path, subjects }
}

export const fillFile: Fill = async (path, rows) => fill(path, rows).subjects
