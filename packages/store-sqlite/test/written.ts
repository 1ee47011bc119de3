import type { Database } from 'better-sqlite3'
import { expect } from 'vitest'

/** With which `programs/writer.ts` opens its store. */
const TRACE_MAX = 200

const numbers = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, n) => from + n)

/**
 * Checks that what the processes of `programs/writer.ts` have left is whole: every execution has exactly what its
 * commits wrote, none lost and none twice.
 *
 * @returns the version of each execution
 */
export function expectWhole(db: Database): Map<string, number> {
  expect(db.pragma('integrity_check', { simple: true })).toBe('ok')
  const column = (sql: string, ...params: string[]) =>
    db
      .prepare(sql)
      .pluck()
      .all(...params)
  const executions = db.prepare<[], { id: string; version: number; data: string }>(
    'SELECT id, version, data FROM harel_executions',
  )
  const versions = new Map<string, number>()
  for (const { id, version, data } of executions.all()) {
    versions.set(id, version)
    const ids = numbers(1, version).map((n) => `${id}:${n}`)
    const payload = JSON.parse(data)
    expect([payload.version, payload.context.n]).toEqual([version, version])
    expect(column("SELECT event ->> 'id' FROM harel_outbox WHERE target_id = ? ORDER BY seq", id)).toEqual(ids)
    expect(column('SELECT child_id FROM harel_spawns WHERE parent_id = ? ORDER BY seq', id)).toEqual(ids)
    expect(column('SELECT event_id FROM harel_processed_events WHERE execution_id = ? ORDER BY rowid', id)).toEqual(ids)
    expect(column('SELECT fire_at FROM harel_timers WHERE execution_id = ?', id)).toEqual([version])
    const kept = numbers(Math.max(0, version - TRACE_MAX), version - 1)
    expect(column('SELECT idx FROM harel_trace WHERE execution_id = ? ORDER BY idx', id)).toEqual(kept)
    expect(column("SELECT entry ->> 'n' FROM harel_trace WHERE execution_id = ? ORDER BY idx", id)).toEqual(
      kept.map((index) => index + 1),
    )
  }
  const total = [...versions.values()].reduce((sum, version) => sum + version, 0)
  for (const table of ['outbox', 'spawns', 'processed_events']) {
    expect(column(`SELECT COUNT(*) FROM harel_${table}`)).toEqual([total])
  }
  return versions
}
