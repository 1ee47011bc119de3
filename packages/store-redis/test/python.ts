import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Redis } from 'ioredis'

const read = (file: string) => JSON.parse(readFileSync(join(import.meta.dirname, 'vectors', file), 'utf8'))

type Stored =
  | { type: 'string'; value: string }
  | { type: 'hash'; value: Record<string, string> }
  | { type: 'set'; value: string[] }
  | { type: 'list'; value: string[] }
  | { type: 'zset'; value: [member: string, score: number][] }

/** Stores the keys that Python harel has written, under this prefix. */
export async function restore(client: Redis, name: 'scenario' | 'runner', prefix: string): Promise<void> {
  const keys: Record<string, Stored> = read(`${name}.keys.json`)
  for (const [key, stored] of Object.entries(keys)) {
    const renamed = key.replace(/^harel:/, `${prefix}:`)
    if (stored.type === 'string') await client.set(renamed, stored.value)
    else if (stored.type === 'hash') await client.hset(renamed, stored.value)
    else if (stored.type === 'set') await client.sadd(renamed, ...stored.value)
    else if (stored.type === 'list') await client.rpush(renamed, ...stored.value)
    else for (const [member, score] of stored.value) await client.zadd(renamed, score, member)
  }
}

/** What Python reads from these keys. */
export function readByPython(name: 'scenario' | 'runner'): object {
  // What the program that wrote the keys noted down beside it.
  const { notes: _notes, definition_id: _definition, fired: _fired, ...stored } = read(`${name}.canonical.json`)
  return stored
}

/** The payload of an execution as Python writes it. */
export const payload = (id: string, version: number, fields: Record<string, unknown> = {}): string =>
  JSON.stringify({
    ...{ id, definition_id: 'd', definition_fqn: null, root_path: '', status: 'RUNNING', outcome: null, error: null },
    ...{ active_path: null, history: {}, context: {}, processed_events: 0, version, priority: 0, parent_id: null },
    ...{ child_id: null, deferred: [], children: {}, invoke_seq: {}, created_at: null, updated_at: null },
    ...{ finished_at: null, expires_at: null },
    ...fields,
  })

/** The text that Python's `json.dumps` makes of a string. */
const dumps = (text: string): string =>
  JSON.stringify(text).replace(/[\u0080-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)

/** An outbox entry as Python writes it. */
export const outboxEntry = (targetId: string | null, eventId: string): string =>
  `{"t": ${targetId === null ? 'null' : dumps(targetId)}, "e": ${dumps(JSON.stringify({ id: eventId, kind: 'k', created_time: null, received_time: null, data: {} }))}}`

/** A spawn as Python writes it. */
export const spawnEntry = (parentId: string, childId: string): string =>
  `{"p": ${dumps(parentId)}, "c": ${dumps(childId)}, "r": "", "x": {"text": ${dumps('ünï')}}}`
