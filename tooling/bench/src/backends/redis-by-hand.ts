/** ioredis alone: scripts that do no more than the writes, and look at no version; and commands. */
import { createHash } from 'node:crypto'
import type { Redis } from 'ioredis'
import { type Actions, PAGE } from '../contender.ts'
import { KEPT, nextEventId, type Subject, wireEvent, wireFull } from '../subjects.ts'

const STATE = `
redis.call('SET', KEYS[1], ARGV[1])
return 1
`
const COMMIT = `
redis.call('SET', KEYS[1], ARGV[1])
local seq = redis.call('INCR', KEYS[2])
redis.call('HSET', KEYS[3], seq, ARGV[2])
redis.call('SADD', KEYS[4], ARGV[3])
return seq
`
const FULL = `
redis.call('SET', KEYS[1], ARGV[1])
local last = redis.call('INCRBY', KEYS[2], 2)
redis.call('HSET', KEYS[3], last - 1, ARGV[2], last, ARGV[3])
redis.call('SADD', KEYS[4], ARGV[4])
redis.call('HSET', KEYS[6], redis.call('INCR', KEYS[5]), ARGV[5])
redis.call('ZADD', KEYS[7], ARGV[6], ARGV[7], ARGV[8], ARGV[9])
redis.call('SADD', KEYS[8], ARGV[10], ARGV[11])
local index = redis.call('INCR', KEYS[10]) - 1
redis.call('RPUSH', KEYS[9], string.sub(ARGV[12], 1, -2) .. ', "index": ' .. index .. '}')
redis.call('LTRIM', KEYS[9], ARGV[13], -1)
return last - 1
`

const digest = (script: string): string => createHash('sha1').update(script).digest('hex')

const P = 'harel'

/** The execution at its next version. */
function payloadOf({ execution, wire }: Subject): string {
  wire.version = ++execution.version
  return JSON.stringify(wire)
}

const entryOf = (id: string, event: string): string => JSON.stringify({ t: id, e: event })

/** Pages of the outbox, which has no order: the numbers are counted up from the first one that is there. */
function outboxByHand(client: Redis) {
  let first = 0
  return async () => {
    const last = Number(await client.get(`${P}:outbox:seq`))
    const entries: { seq: number; event: unknown }[] = []
    for (let from = first + 1; from <= last && entries.length < PAGE; from += PAGE) {
      const seqs = Array.from({ length: PAGE }, (_, index) => from + index)
      const values = await client.hmget(`${P}:outbox`, ...seqs.map(String))
      for (const [index, value] of values.entries()) {
        if (value !== null) entries.push({ seq: from + index, event: JSON.parse(JSON.parse(value).e) })
      }
      if (entries.length === 0) first = from + PAGE - 1
    }
    return entries.slice(0, PAGE)
  }
}

/** What is asked for, on the store's keys. */
export async function byHand(client: Redis): Promise<Actions> {
  for (const script of [STATE, COMMIT, FULL]) await client.script('LOAD', script)
  const [state, commit, full] = [digest(STATE), digest(COMMIT), digest(FULL)]
  const page = outboxByHand(client)
  return {
    state: (subject) => client.evalsha(state, 1, `${P}:exe:${subject.wire.id}`, payloadOf(subject)),
    commit: (subject) => {
      const eventId = nextEventId()
      const { id } = subject.wire
      const keys = [`${P}:exe:${id}`, `${P}:outbox:seq`, `${P}:outbox`, `${P}:processed:${id}`]
      const event = entryOf(id, JSON.stringify(wireEvent(eventId)))
      return client.evalsha(commit, keys.length, ...keys, payloadOf(subject), event, eventId)
    },
    full: (subject) => {
      const eventId = nextEventId()
      const { id } = subject.wire
      const { events, timers, spawn, trace } = wireFull(eventId)
      const keys = [
        ...[`${P}:exe:${id}`, `${P}:outbox:seq`, `${P}:outbox`, `${P}:processed:${id}`, `${P}:spawns:seq`],
        ...[`${P}:spawns`, `${P}:timers`, `${P}:index:timers:${id}`, `${P}:trace:${id}`, `${P}:trace:seq:${id}`],
      ]
      const child = JSON.stringify({ p: id, c: spawn.childId, r: spawn.rootPath }).slice(0, -1)
      return client.evalsha(
        ...[full, keys.length, ...keys, payloadOf(subject), ...events.map((event) => entryOf(id, event)), eventId],
        ...[`${child},"x":${spawn.context}}`, ...timers.flatMap(({ path, fireAt }) => [fireAt, `${id}\0${path}`])],
        ...[...timers.map(({ path }) => path), trace, -KEPT],
      )
    },
    load: async (id) => JSON.parse((await client.get(`${P}:exe:${id}`)) ?? ''),
    loadForEvent: async (id) => {
      const answers = await client.multi().get(`${P}:exe:${id}`).sismember(`${P}:processed:${id}`, nextEventId()).exec()
      const [data, processed] = (answers ?? []).map(([, answer]) => answer)
      return { execution: JSON.parse(String(data)), processed: processed === 1 }
    },
    relay: async () => {
      const entries = await page()
      await client.hdel(`${P}:outbox`, ...entries.map(({ seq }) => String(seq)))
      return entries
    },
    page,
    timers: (now) => client.zrangebyscore(`${P}:timers`, '-inf', now, 'WITHSCORES', 'LIMIT', 0, PAGE),
    list: async ({ after }) => {
      const ids = await client.zrangebylex(`${P}:index:ids`, after === '' ? '-' : `(${after}`, '+', 'LIMIT', 0, PAGE)
      const payloads = await client.mget(ids.map((id) => `${P}:exe:${id}`))
      return payloads.map((payload) => JSON.parse(payload ?? ''))
    },
  }
}
