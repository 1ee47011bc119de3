import { newEvent, OutcomeUnknown, StoreConflict, StoreUnavailable } from '@harel/store-base'
import { PostgresStore } from '@harel/store-postgres'
import { type StartOptions, startServer, type TestServer } from '@harel-tooling/test-servers'
import { withServer } from '@harel-tooling/test-servers/vitest'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { connect, execution, newSchema, open, pass } from './helpers.js'

/** What a stream of commits has seen. */
interface Log {
  /** The event ids of acknowledged commits. */
  readonly acknowledged: string[]
  /** The event ids of commits that failed without a word about their outcome. */
  readonly unknown: string[]
  failures: number
}

/** Commits one step after the other, each with an event of its own, until it is told to stop; on failure it starts anew. */
async function stream(store: PostgresStore, id: string, log: Log, stopped: () => boolean): Promise<void> {
  let held = execution(id)
  for (let n = 0; !stopped(); n++) {
    const event = `${id}-${n}`
    try {
      await store.commit(held, {
        emits: [{ targetId: id, event: newEvent({ id: event, kind: 'Step' }) }],
        processedEventId: event,
        trace: { event },
      })
      log.acknowledged.push(event)
    } catch (error) {
      log.failures++
      if (error instanceof OutcomeUnknown) log.unknown.push(event)
      else if (!(error instanceof StoreUnavailable)) throw error
      held = await reload(store, id)
    }
  }
}

async function reload(store: PostgresStore, id: string) {
  for (;;) {
    try {
      return (await store.load(id)) ?? execution(id)
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error
      await pass(20)
    }
  }
}

// This file kills its server, so it has one of its own; without any, it says so like the others.
withServer('postgres', ({ version }) => {
  let server: TestServer
  const flavour = version.split('.', 1).join() as NonNullable<StartOptions<'postgres'>['flavour']>
  beforeAll(async () => {
    server = await startServer('postgres', { own: true, flavour })
  })
  afterAll(() => server.stop())

  const unhandled: unknown[] = []
  const note = (error: unknown) => unhandled.push(error)
  beforeEach(() => {
    process.on('unhandledRejection', note)
    process.on('uncaughtException', note)
  })
  afterEach(() => {
    process.off('unhandledRejection', note)
    process.off('uncaughtException', note)
    expect(unhandled.splice(0)).toEqual([])
  })

  const ownPool = (schema: string) => open(server.url, { schema, traceMax: 0 })
  const callersPool = async (schema: string) => {
    const sql = connect(server.url, { max: 10, connect_timeout: 2, backoff: () => 0.1, fetch_types: false })
    return new PostgresStore(sql, { schema, traceMax: 0 })
  }

  test.each([
    { end: 'kill', pool: 'a pool of its own', openStore: ownPool },
    { end: 'restart', pool: 'a pool of its own', openStore: ownPool },
    { end: 'kill', pool: "a pool of the caller's", openStore: callersPool },
  ])(
    'through a $end of the server no acknowledged commit is lost, and none is doubled, with $pool (B93)',
    async ({ end, openStore }) => {
      const schema = newSchema()
      const store = await openStore(schema)
      const log: Log = { acknowledged: [], unknown: [], failures: 0 }
      let stop = false
      const ids = Array.from({ length: 40 }, (_, n) => `e${n}`)
      const streams = ids.map((id) => stream(store, id, log, () => stop))
      for (let round = 0; round < 3; round++) {
        await pass(200)
        if (end === 'kill') await server.kill()
        await server.restart()
      }
      const before = log.acknowledged.length
      while (log.acknowledged.length < before + 200) await pass(10)
      stop = true
      await Promise.all(streams)

      expect(log.failures).toBeGreaterThan(0)
      const sql = connect(server.url)
      const column = async (text: string): Promise<string[]> =>
        (await sql.unsafe(text)).map((row) => Object.values(row)[0] as string)
      const processed = await column(`SELECT event_id FROM ${schema}.harel_processed_events`)
      const known = new Set([...log.acknowledged, ...log.unknown])
      expect(log.acknowledged.filter((id) => !processed.includes(id))).toEqual([])
      expect(processed.filter((id) => !known.has(id))).toEqual([])
      const events = await column(`SELECT event::jsonb->>'id' FROM ${schema}.harel_outbox`)
      expect(events.sort()).toEqual(processed.sort())
      const steps = await column(`SELECT entry::jsonb->>'event' FROM ${schema}.harel_trace`)
      expect(steps.sort()).toEqual(processed)
      const [sum] = await column(`SELECT sum(version)::text FROM ${schema}.harel_executions`)
      expect(Number(sum)).toBe(processed.length)
    },
    120_000,
  )

  test('a store goes on after a restart between two calls (B94)', async () => {
    const store = await open(server.url, { schema: newSchema() })
    const held = execution('a')
    await store.commit(held)
    await server.kill()
    await server.restart()
    await store.commit(held)
    expect(held.version).toBe(2)
    await expect(store.commit(execution('a'))).rejects.toBeInstanceOf(StoreConflict)
  })

  test('a store can be opened when the server is there again (B93)', async () => {
    await server.kill()
    await expect(PostgresStore.connect(server.url, { schema: newSchema() })).rejects.toBeInstanceOf(StoreUnavailable)
    const sql = connect(server.url)
    const store = new PostgresStore(sql, { schema: newSchema() })
    await expect(store.commit(execution('a'))).rejects.toBeInstanceOf(StoreUnavailable)
    await server.restart()
    await store.commit(execution('a'))
  })

  test.each(['with a statement under way', 'between two statements'])(
    'a transaction whose connection is cut %s rejects, and the store goes on (B51, B94)',
    async (when) => {
      const schema = newSchema()
      const store = await open(server.url, { schema, client: { max: 1 } })
      const sql = connect(server.url)
      const held = execution('a')
      const cut = (pid: number) => sql`SELECT pg_terminate_backend(${pid})`
      const error = await store
        .transaction(async (s, tx) => {
          await s.commit(held)
          const [row] = await tx`SELECT pg_backend_pid() AS pid`
          if (when === 'between two statements') await cut(row?.pid)
          else {
            setTimeout(() => cut(row?.pid).then(), 50)
            await tx.savepoint((inner) => inner`SELECT pg_sleep(5)`).catch(() => {})
          }
          await pass(50)
          await s.commit(held)
          await tx`SELECT 1`
        })
        .catch((error) => error)
      expect(error).toBeInstanceOf(StoreUnavailable)
      expect(held.version).toBe(0)
      // The work may go on, and must do no harm.
      await pass(150)
      await store.commit(held)
      expect(held.version).toBe(1)
    },
  )
})
