import type { ExecutionStore } from '@harel/store-libsql'
import { expect } from 'vitest'

/**
 * Checks that what the program `writer.ts` has written is whole: each execution has one event, one mark and one step for
 * each of its versions, and nothing else is there. Returns the versions.
 */
export async function expectWhole(store: ExecutionStore): Promise<Map<string, number>> {
  const versions = new Map<string, number>()
  for (const { id, version } of (await store.listExecutions({ limit: 1000 })).items) versions.set(id, version)
  const events = (await store.pendingOutbox()).map(({ event }) => event.id)
  const expected = [...versions].flatMap(([id, version]) => Array.from({ length: version }, (_, n) => `${id}:${n + 1}`))
  expect(events.toSorted()).toEqual(expected.toSorted())
  for (const [id, version] of versions) {
    expect((await store.load(id))?.version).toBe(version)
    expect(await store.isProcessed(id, `${id}:${version}`)).toBe(true)
    expect(await store.isProcessed(id, `${id}:${version + 1}`)).toBe(false)
    const steps = await store.readTrace(id)
    expect(steps.at(-1)).toEqual({ n: version, index: version - 1 })
    expect(steps).toHaveLength(Math.min(version, 200))
  }
  return versions
}

/** Checks that every commit that was acknowledged, a line of `ID VERSION` for each, is there. */
export function expectAcknowledged(versions: Map<string, number>, lines: string): void {
  for (const line of lines.split('\n').slice(0, -1)) {
    const [id = '', version] = line.split(' ')
    expect(versions.get(id), `commit ${version} of ${id}`).toBeGreaterThanOrEqual(Number(version))
  }
}
