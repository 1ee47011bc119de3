import { RedisStore } from '@harel/store-redis'
import { Redis } from 'ioredis'
import { ANY_ID, DUE, sample, templates } from '../fill.ts'
import type { Subject } from '../subjects.ts'

const PART = 10_000

const FILL = `
local from, to, due = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local before, behind, event, prefix = ARGV[4], ARGV[5], ARGV[6], ARGV[7]
for n = from, to - 1 do
  local id = string.format('%08x%024x', (n * 2654435761) % 4294967296, n)
  redis.call('SET', prefix .. ':exe:' .. id, before .. id .. behind)
  redis.call('ZADD', prefix .. ':index:ids', 0, id)
  redis.call('HSET', prefix .. ':outbox', n + 1, '{"t":"' .. id .. '","e":' .. event .. '}')
  redis.call('ZADD', prefix .. ':timers', due - n, id .. '\\0due')
  redis.call('SADD', prefix .. ':index:timers:' .. id, 'due')
end
redis.call('SET', prefix .. ':outbox:seq', to)
`

/** Fills a server with so many executions, pending events and due timers. */
export async function fillRedis(url: string, rows: number): Promise<readonly Subject[]> {
  // Says of an empty server that its index of ids is whole.
  const store = await RedisStore.connect(url)
  await store.listExecutions()
  await store.close()
  const client = new Redis(url)
  const { execution, event } = templates()
  const [before = '', behind = ''] = execution.split(ANY_ID)
  try {
    for (let from = 0; from < rows; from += PART) {
      const to = Math.min(rows, from + PART)
      await client.eval(FILL, 0, from, to, DUE, before, behind, JSON.stringify(event), 'harel')
    }
  } finally {
    client.disconnect()
  }
  return sample(rows)
}
