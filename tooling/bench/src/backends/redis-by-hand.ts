/** The writes of a commit with ioredis alone: a script that does no more, and looks at no version. */
import { createHash } from 'node:crypto'
import type { Redis } from 'ioredis'
import { nextEventId, type Subject, wireEvent } from '../workload.ts'

const SCRIPT = `
redis.call('SET', KEYS[1], ARGV[1])
local seq = redis.call('INCR', KEYS[2])
redis.call('HSET', KEYS[3], seq, ARGV[2])
redis.call('SADD', KEYS[4], ARGV[3])
return seq
`
const DIGEST = createHash('sha1').update(SCRIPT).digest('hex')

/** Serialises one commit and sends it. */
export async function bareScript(client: Redis, prefix: string): Promise<(subject: Subject) => Promise<unknown>> {
  await client.script('LOAD', SCRIPT)
  return ({ execution, wire }) => {
    const eventId = nextEventId()
    wire.version = ++execution.version
    return client.evalsha(
      DIGEST,
      4,
      `${prefix}:exe:${wire.id}`,
      `${prefix}:outbox:seq`,
      `${prefix}:outbox`,
      `${prefix}:processed:${wire.id}`,
      JSON.stringify(wire),
      JSON.stringify({ t: wire.id, e: JSON.stringify(wireEvent(eventId)) }),
      eventId,
    )
  }
}
