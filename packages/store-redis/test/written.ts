import type { Redis } from 'ioredis'
import { expect } from 'vitest'
import { keysOf } from './database.js'

const numbers = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, n) => from + n)

/**
 * Checks that what the processes of `programs/writer.ts` have left is whole: every execution has exactly what its
 * commits wrote, none lost and none twice.
 *
 * @returns the version of each execution
 */
export async function expectWhole(client: Redis, prefix: string): Promise<Map<string, number>> {
  const entries = async (queue: string) =>
    Object.entries(await client.hgetall(`${prefix}:${queue}`))
      .sort(([a], [b]) => Number(a) - Number(b))
      .map(([, text]) => JSON.parse(text))
  const [outbox, spawns] = [await entries('outbox'), await entries('spawns')]
  const versions = new Map<string, number>()
  for (const key of await keysOf(client, `${prefix}:exe:`)) {
    const payload = JSON.parse((await client.get(key)) ?? '')
    const { id, version } = payload
    versions.set(id, version)
    expect(payload.context.n).toBe(version)
    const ids = numbers(1, version).map((n) => `${id}:${n}`)
    expect(outbox.filter(({ t }) => t === id).map(({ e }) => JSON.parse(e).id)).toEqual(ids)
    expect(spawns.filter(({ p }) => p === id).map(({ c }) => c)).toEqual(ids)
    expect((await client.smembers(`${prefix}:processed:${id}`)).sort()).toEqual(ids.toSorted())
    expect(Number(await client.zscore(`${prefix}:timers`, `${id}\0P`))).toBe(version)
    const trace = (await client.lrange(`${prefix}:trace:${id}`, 0, -1)).map((text) => JSON.parse(text))
    expect(trace).toEqual(numbers(1, version).map((n) => ({ n, index: n - 1 })))
  }
  const total = [...versions.values()].reduce((sum, version) => sum + version, 0)
  expect([outbox.length, spawns.length]).toEqual([total, total])
  expect(await client.get(`${prefix}:outbox:seq`)).toBe(String(total))
  expect(await client.zcard(`${prefix}:index:ids`)).toBe(versions.size)
  return versions
}
