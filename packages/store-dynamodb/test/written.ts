import type { DynamoDBClient } from '@aws-sdk/client-dynamodb'
import { expect } from 'vitest'
import { type Item, itemsOf } from './database.js'

const numbers = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, n) => from + n)
const bySeq = (a: Item, b: Item) => Number(a.seq?.N) - Number(b.seq?.N)

/**
 * Checks that what the processes of `programs/writer.ts` have left is whole: every execution has exactly what its
 * commits wrote, none lost and none twice.
 *
 * @returns the version of each execution
 */
export async function expectWhole(client: DynamoDBClient, prefix: string): Promise<Map<string, number>> {
  const read = (table: string) => itemsOf(client, `${prefix}_${table}`)
  const [outbox, spawns] = [(await read('outbox')).sort(bySeq), (await read('spawns')).sort(bySeq)]
  const [processed, timers, trace] = [await read('processed'), await read('timers'), await read('trace')]
  const versions = new Map<string, number>()
  for (const item of await read('executions')) {
    const { id, version, context } = JSON.parse(item.data?.S ?? '')
    versions.set(id, version)
    expect([Number(item.version?.N), context.n]).toEqual([version, version])
    const ids = numbers(1, version).map((n) => `${id}:${n}`)
    expect(
      outbox.filter(({ target_id }) => target_id?.S === id).map(({ event }) => JSON.parse(event?.S ?? '').id),
    ).toEqual(ids)
    expect(spawns.filter(({ parent_id }) => parent_id?.S === id).map(({ child_id }) => child_id?.S)).toEqual(ids)
    const own = (items: Item[]) => items.filter(({ execution_id }) => execution_id?.S === id)
    expect(
      own(processed)
        .map(({ event_id }) => event_id?.S)
        .sort(),
    ).toEqual(ids.toSorted())
    expect(own(timers).map(({ fire_at }) => Number(fire_at?.N))).toEqual([version])
    const steps = own(trace).sort((a, b) => Number(a.idx?.N) - Number(b.idx?.N))
    expect(steps.map(({ idx, entry }) => [Number(idx?.N), JSON.parse(entry?.S ?? '').n])).toEqual(
      numbers(1, version).map((n) => [n - 1, n]),
    )
  }
  const total = [...versions.values()].reduce((sum, version) => sum + version, 0)
  expect([outbox.length, spawns.length, processed.length, trace.length]).toEqual([total, total, total, total])
  return versions
}
