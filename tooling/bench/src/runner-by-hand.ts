/** What one would write by hand around XState: on a store, and on a row with a version. */
import { type ExecutionStore, newEvent, newExecution, stamp } from '@harel/store-base'
import Database from 'better-sqlite3'
import { Redis } from 'ioredis'
import postgres from 'postgres'
import { transition } from 'xstate'
import { counter, each, first, inTurn, type Stored } from './runner-machines.ts'

/** Load, transition, commit: what a runner does without its guarantees. */
export async function byHand(store: ExecutionStore): Promise<() => Promise<unknown>> {
  const { value, context } = first
  await each('hand', (id) =>
    store.save(newExecution({ id, definitionId: 'counter', context: { xstate: { value, context } } })),
  )
  const turn = inTurn('hand')
  return async () => {
    const event = newEvent({ kind: 'NEXT' })
    const { execution } = await store.loadForEvent(turn(), event.id)
    if (execution === undefined) throw new Error('an execution is gone')
    const [next] = transition(counter, counter.resolveState(execution.context.xstate as unknown as Stored), {
      type: 'NEXT',
    })
    execution.context = { xstate: { value: next.value, context: next.context } }
    stamp(execution, Date.now() / 1000)
    await store.commit(execution, { processedEventId: event.id })
  }
}

interface Row {
  readonly version: number
  readonly snapshot: string
}

/** Rows that are written if they still have the version that was read: no dedupe, no outbox, nothing else. */
interface Rows extends AsyncDisposable {
  insert(id: string, snapshot: string): Promise<unknown>
  select(id: string): Promise<Row | undefined>
  /** @returns whether it had this version */
  update(id: string, version: number, snapshot: string): Promise<boolean>
}

function sqliteRows(path: string): Rows {
  const db = new Database(path)
  db.pragma('journal_mode = WAL')
  db.pragma('synchronous = FULL')
  db.exec('CREATE TABLE machines (id TEXT PRIMARY KEY, version INTEGER, snapshot TEXT)')
  const insert = db.prepare('INSERT INTO machines VALUES (?, 1, ?)')
  const select = db.prepare<[string], Row>('SELECT version, snapshot FROM machines WHERE id = ?')
  const update = db.prepare('UPDATE machines SET version = version + 1, snapshot = ? WHERE id = ? AND version = ?')
  return {
    insert: async (id, snapshot) => insert.run(id, snapshot),
    select: async (id) => select.get(id),
    update: async (id, version, snapshot) => update.run(snapshot, id, version).changes === 1,
    [Symbol.asyncDispose]: async () => void db.close(),
  }
}

async function postgresRows(url: string): Promise<Rows> {
  const sql = postgres(url, { max: 10, onnotice: () => {} })
  await sql`CREATE TABLE machines (id text PRIMARY KEY, version integer, snapshot text)`
  return {
    insert: (id, snapshot) => sql`INSERT INTO machines VALUES (${id}, 1, ${snapshot})`,
    select: async (id) => (await sql<Row[]>`SELECT version, snapshot FROM machines WHERE id = ${id}`)[0],
    update: async (id, version, snapshot) => {
      const { count } = await sql`
        UPDATE machines SET version = version + 1, snapshot = ${snapshot} WHERE id = ${id} AND version = ${version}`
      return count === 1
    },
    [Symbol.asyncDispose]: () => sql.end(),
  }
}

const UPDATE = `
if redis.call('HGET', KEYS[1], 'version') ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'version', ARGV[1] + 1, 'snapshot', ARGV[2])
return 1
`

function redisRows(url: string): Rows {
  const client = new Redis(url, { scripts: { updateMachine: { numberOfKeys: 1, lua: UPDATE } } }) as Redis & {
    updateMachine(key: string, version: number, snapshot: string): Promise<number>
  }
  const key = (id: string) => `machines:${id}`
  return {
    insert: (id, snapshot) => client.hset(key(id), { version: 1, snapshot }),
    select: async (id) => {
      const [version, snapshot] = await client.hmget(key(id), 'version', 'snapshot')
      return version == null || snapshot == null ? undefined : { version: Number(version), snapshot }
    },
    update: async (id, version, snapshot) => (await client.updateMachine(key(id), version, snapshot)) === 1,
    [Symbol.asyncDispose]: async () => void client.disconnect(),
  }
}

const KINDS = { sqlite: sqliteRows, postgres: postgresRows, redis: redisRows }

/** XState and a row with a version, as one writes it without any store. */
export async function byRow(
  kind: keyof typeof KINDS,
  url: string,
): Promise<AsyncDisposable & { event(): Promise<void> }> {
  const rows = await KINDS[kind](url)
  const snapshot = JSON.stringify({ value: first.value, context: first.context })
  await each('row', (id) => rows.insert(id, snapshot))
  const turn = inTurn('row')
  return {
    async event() {
      const id = turn()
      const row = await rows.select(id)
      if (row === undefined) throw new Error('a row is gone')
      const [{ value, context }] = transition(counter, counter.resolveState(JSON.parse(row.snapshot) as Stored), {
        type: 'NEXT',
      })
      if (!(await rows.update(id, row.version, JSON.stringify({ value, context })))) throw new Error('a conflict')
    },
    [Symbol.asyncDispose]: () => rows[Symbol.asyncDispose](),
  }
}
