import { type ExecutionStore, newEvent, newExecution } from '@harel/store-rqlite'
import { expect } from 'vitest'
import { request } from './helpers.js'

/** Commits an execution once more, with one of everything, each numbered by the version, which is returned. */
export async function commitNext(store: ExecutionStore, id: string): Promise<number> {
  const execution = (await store.load(id)) ?? newExecution({ id, definitionId: 'd' })
  const n = execution.version + 1
  await store.commit(execution, {
    emits: [{ targetId: id, event: newEvent({ kind: 'e', id: `${id}:${n}` }) }],
    processedEventId: `${id}:${n}`,
    spawns: [{ childId: `${id}:${n}`, rootPath: '', context: {} }],
    timers: [{ action: 'schedule', path: 'P', fireAt: n }],
    trace: { n },
  })
  return n
}

/**
 * Checks that what `commitNext` has written is whole: each execution has one event, one mark, one child and one step for
 * each of its versions, and nothing else is there. Returns the versions.
 */
export async function expectWhole(store: ExecutionStore, url: string, prefix = 'harel'): Promise<Map<string, number>> {
  const column = async (sql: string) => (await request(url, sql)).map(([value]) => String(value)).sort()
  const versions = new Map<string, number>()
  for (const { id, version } of (await store.listExecutions({ limit: 1000 })).items) versions.set(id, version)
  const expected = [...versions].flatMap(([id, version]) => Array.from({ length: version }, (_, n) => `${id}:${n + 1}`))
  expected.sort()
  expect(await column(`SELECT event ->> 'id' FROM ${prefix}_outbox`)).toEqual(expected)
  expect(await column(`SELECT event_id FROM ${prefix}_processed_events`)).toEqual(expected)
  expect(await column(`SELECT child_id FROM ${prefix}_spawns`)).toEqual(expected)
  const step = `execution_id || ':' || (entry ->> 'n')`
  expect(await column(`SELECT ${step} FROM ${prefix}_trace WHERE entry ->> 'n' = idx + 1`)).toEqual(expected)
  const armed = [...versions].map(([id, version]) => `${id}:${version}`).sort()
  expect(await column(`SELECT execution_id || ':' || CAST(fire_at AS INTEGER) FROM ${prefix}_timers`)).toEqual(armed)
  for (const [id, version] of versions) expect((await store.load(id))?.version).toBe(version)
  return versions
}

/** Checks that every acknowledged commit, `ID VERSION`, is there. */
export function expectAcknowledged(versions: ReadonlyMap<string, number>, acknowledged: readonly string[]): void {
  for (const line of acknowledged) {
    const [id = '', version] = line.split(' ')
    expect(versions.get(id), `commit ${version} of ${id}`).toBeGreaterThanOrEqual(Number(version))
  }
}
