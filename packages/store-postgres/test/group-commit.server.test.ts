import { type Execution, StoreConflict, StoreUnavailable } from '@harel/store-base'
import type { PostgresStore } from '@harel/store-postgres'
import { withServer } from '@harel-tooling/test-servers/vitest'
import type { Sql } from 'postgres'
import { describe, expect, test } from 'vitest'
import {
  connect,
  everything,
  execution,
  many,
  newSchema,
  open,
  pass,
  proxyTo,
  rows,
  useDatabase,
  versions,
} from './helpers.js'

/** Whether a promise settles while somebody else does something. */
function watch(promise: Promise<unknown>): { settled: boolean } {
  const watched = { settled: false }
  const note = () => {
    watched.settled = true
  }
  promise.then(note, note)
  return watched
}

/** A transaction of a stranger, who does something and lets go when told. */
async function stranger(sql: Sql, statement: string): Promise<(end: 'COMMIT' | 'ROLLBACK') => Promise<void>> {
  const connection = await sql.reserve()
  await connection.unsafe('BEGIN')
  await connection.unsafe(statement)
  return async (end) => {
    await connection.unsafe(end)
    connection.release()
  }
}

/** Advances executions that others advance too, so often. Returns how often that was done. */
async function contend(store: PostgresStore, ids: readonly string[], rounds: number): Promise<number> {
  const advance = async (id: string) => {
    const held = (await store.load(id)) ?? execution(id)
    await store.commit(held, { ...everything(id), processedEventId: crypto.randomUUID() })
  }
  let done = 0
  for (let round = 0; round < rounds; round++) {
    const shuffled = [...ids].sort(() => Math.random() - 0.5)
    for (const outcome of await Promise.allSettled(shuffled.map(advance))) {
      if (outcome.status === 'fulfilled') done++
      else if (!(outcome.reason instanceof StoreConflict)) throw outcome.reason
    }
  }
  return done
}

const ids = (count: number) => many(count, 'shared').map(({ id }) => id)
const sum = (numbers: readonly number[]) => numbers.reduce((total, number) => total + number, 0)

/** Every success is one version, and everything that belongs to it; nothing else is there. */
async function expectNoMoreThan(done: number, store: PostgresStore, shared: readonly string[], stored: number[]) {
  const held = await Promise.all(shared.map((id) => store.load(id)))
  expect(sum(held.map((each) => each?.version ?? 0))).toBe(done)
  expect(stored).toEqual([shared.length, done, done, shared.length, done, done])
}

withServer('postgres', (server) => {
  const database = useDatabase(server)

  test('two stores with overlapping batches never deadlock, and every commit is applied once or refused (B76)', async () => {
    const schema = newSchema()
    const stores = await Promise.all([1, 2].map(() => open(database.url, { schema, traceMax: 0 })))
    const sql = connect(database.url)
    const shared = ids(60)
    const done = sum(await Promise.all(stores.map((store) => contend(store, shared, 8))))
    const [store] = stores
    if (store !== undefined) await expectNoMoreThan(done, store, shared, await rows(sql, schema))
    const [row] = await sql`SELECT deadlocks::int FROM pg_stat_database WHERE datname = current_database()`
    expect(row?.deadlocks).toBe(0)
  })

  describe.each([
    {
      name: 'a row',
      sql: (schema: string) => `SELECT 1 FROM ${schema}.harel_executions WHERE id = 'e0013' FOR UPDATE`,
    },
    {
      name: 'a row that it has changed',
      sql: (schema: string) => `UPDATE ${schema}.harel_executions SET data = data WHERE id = 'e0013'`,
    },
    {
      name: 'the id of an execution that it creates',
      fresh: true,
      sql: (schema: string) => `INSERT INTO ${schema}.harel_executions VALUES ('e0013', 'd', 1, NULL, NULL, NULL, NULL,
        NULL, NULL, '{"version":1,"id":"e0013","definition_id":"d","status":"RUNNING"}')`,
    },
    {
      name: 'a timer',
      sql: (schema: string) => `DELETE FROM ${schema}.harel_timers WHERE execution_id = 'e0013'`,
    },
  ])('a transaction that holds $name', ({ sql: statement, fresh = false }) => {
    const setUp = async (max: number) => {
      const schema = newSchema()
      const store = await open(database.url, { schema, client: { max } })
      const held = many(50)
      if (!fresh) await Promise.all(held.map((each) => store.commit(each, everything(each.id))))
      const end = await stranger(connect(database.url), statement(schema))
      return { store, held, end }
    }
    const others = (held: readonly Execution[]) => held.filter(({ id }) => id !== 'e0013')

    test.each([1, 4])('delays one commit and nobody else, with %s connection(s)', async (max) => {
      const { store, held, end } = await setUp(max)
      const commits = held.map((each) => ({ id: each.id, done: store.commit(each, everything(each.id)) }))
      const waiting = commits.find(({ id }) => id === 'e0013')
      const watched = watch(waiting?.done ?? Promise.resolve())
      await Promise.all(commits.filter((each) => each !== waiting).map(({ done }) => done))
      for (let round = 0; round < 5; round++) {
        await Promise.all(others(held).map((each) => store.commit(each)))
        expect((await store.load('e0000'))?.version).toBe(fresh ? 2 + round : 3 + round)
      }
      expect(watched.settled).toBe(false)
      await end('ROLLBACK')
      await waiting?.done
      expect(held.find(({ id }) => id === 'e0013')?.version).toBe(fresh ? 1 : 2)
    })
  })

  test('a row that somebody holds costs the batch that it is in no second attempt', async () => {
    const schema = newSchema()
    const proxy = await proxyTo(database.url)
    const store = await open(proxy.url, { schema, lockTimeout: 0, client: { max: 1 } })
    const held = many(50)
    await Promise.all(held.map((each) => store.commit(each)))
    const end = await stranger(
      connect(database.url),
      `SELECT 1 FROM ${schema}.harel_executions WHERE id = 'e0013' FOR UPDATE`,
    )
    const before = proxy.roundTrips
    const outcomes = await Promise.allSettled(held.map((each) => store.commit(each)))
    expect(proxy.roundTrips - before).toBe(1)
    expect(outcomes.flatMap(({ status }, n) => (status === 'rejected' ? [n] : []))).toEqual([13])
    await end('ROLLBACK')
  })

  test('a row that others only refer to is not held', async () => {
    const schema = newSchema()
    const store = await open(database.url, { schema, lockTimeout: 0 })
    const held = many(2)
    for (const each of held) await store.commit(each)
    const end = await stranger(connect(database.url), `SELECT 1 FROM ${schema}.harel_executions FOR KEY SHARE`)
    await Promise.all(held.map((each) => store.commit(each)))
    await store.commit(held[0] ?? execution('none'))
    expect(versions(held)).toEqual([3, 2])
    await end('ROLLBACK')
  })

  test('a creation that meets another one under way becomes a conflict when that is committed (weakness 12)', async () => {
    const schema = newSchema()
    const store = await open(database.url, { schema })
    const end = await stranger(
      connect(database.url),
      `INSERT INTO ${schema}.harel_executions (id, definition_id, version, data) VALUES ('e0003', 'd', 1, '{"version":1}')`,
    )
    const held = many(10)
    const outcomes = Promise.allSettled(held.map((each) => store.commit(each, everything(each.id))))
    await pass(60)
    await end('COMMIT')
    expect((await outcomes).map(({ status }) => status)).toEqual(
      held.map(({ id }) => (id === 'e0003' ? 'rejected' : 'fulfilled')),
    )
    expect((await outcomes)[3]).toMatchObject({ reason: { code: 'STORE_CONFLICT', expected: 0, found: 1 } })
    expect(versions(held)).toEqual([1, 1, 1, 0, 1, 1, 1, 1, 1, 1])
  })

  test('a commit whose execution is held for longer than lockTimeout fails as unavailable, and can be done again (B49)', async () => {
    const schema = newSchema()
    const store = await open(database.url, { schema, lockTimeout: 200 })
    const held = execution('a')
    await store.commit(held)
    const end = await stranger(connect(database.url), `SELECT 1 FROM ${schema}.harel_executions FOR UPDATE`)
    const start = performance.now()
    const error = await store.commit(held, everything('a')).catch((error) => error)
    expect(error).toBeInstanceOf(StoreUnavailable)
    expect(error).toMatchObject({ retryable: true, message: 'another transaction has held the execution for 200 ms' })
    expect(performance.now() - start).toBeGreaterThan(190)
    expect(held.version).toBe(1)
    await expect(store.purge('a', 1)).rejects.toBeInstanceOf(StoreUnavailable)
    await end('ROLLBACK')
    await store.commit(held, everything('a'))
    expect(held.version).toBe(2)
  })

  test('a purge waits for who holds the execution, and judges by what was left', async () => {
    const schema = newSchema()
    const store = await open(database.url, { schema, client: { max: 1 } })
    for (const id of ['a', 'b']) await store.commit(execution(id), everything(id))
    const end = await stranger(
      connect(database.url),
      `UPDATE ${schema}.harel_executions SET version = 2 WHERE id = 'a'`,
    )
    const purges = ['a', 'b'].map((id) => store.purge(id, 1))
    const watched = watch(purges[0] ?? Promise.resolve())
    expect(await purges[1]).toBe(true)
    await pass(50)
    expect(watched.settled).toBe(false)
    await end('COMMIT')
    expect(await purges[0]).toBe(false)
    expect(await store.purge('a', 2)).toBe(true)
    expect(await rows(connect(database.url), schema)).toEqual([0, 0, 0, 0, 0, 0])
  })

  test.each([
    ['a constraint', 'ALTER TABLE $.harel_executions ADD CHECK (id <> $id)'],
    [
      'a trigger',
      `CREATE FUNCTION $.refuse() RETURNS trigger LANGUAGE plpgsql AS
         'BEGIN RAISE EXCEPTION $$no$$ USING ERRCODE = $$23505$$; END';
       CREATE TRIGGER refuse BEFORE INSERT ON $.harel_outbox FOR EACH ROW WHEN (NEW.target_id = $id)
         EXECUTE FUNCTION $.refuse()`,
    ],
  ])('a commit that %s refuses fails alone', async (_name, refusal) => {
    const schema = newSchema()
    const store = await open(database.url, { schema })
    const sql = connect(database.url)
    await sql.unsafe(refusal.replaceAll('$.', `${schema}.`).replaceAll('$id', `'e0017'`))
    const held = many(100)
    const outcomes = await Promise.allSettled(held.map((each) => store.commit(each, everything(each.id))))
    expect(outcomes.flatMap(({ status }, n) => (status === 'rejected' ? [n] : []))).toEqual([17])
    expect(outcomes[17]).toMatchObject({ reason: { code: 'STORE_UNAVAILABLE', retryable: false } })
    expect(versions(held)).toEqual(held.map((_, n) => (n === 17 ? 0 : 1)))
    expect(await rows(sql, schema)).toEqual([99, 99, 99, 99, 99, 99])
  })

  test('commits are stored for everybody when they are acknowledged, and so is what a conflict lost to', async () => {
    const schema = newSchema()
    const store = await open(database.url, { schema })
    const sql = connect(database.url)
    const stored = async (id: string) => {
      const [row] = await sql.unsafe(`SELECT version FROM ${schema}.harel_executions WHERE id = $1`, [id])
      return row?.version
    }
    await Promise.all(
      many(60).flatMap((each) => [
        store.commit(each).then(async () => expect(await stored(each.id)).toBe(1)),
        store.commit(execution(each.id)).then(
          () => expect.unreachable(),
          async (error) => {
            expect(error).toBeInstanceOf(StoreConflict)
            expect(await stored(each.id)).toBe(error.found)
          },
        ),
      ]),
    )
  })

  test('steps that are appended beside commits get numbers of their own', async () => {
    const store = await open(database.url, { schema: newSchema() })
    const held = execution('a')
    const appended = Array.from({ length: 30 }, (_, n) => store.appendTrace('a', { n }))
    for (let n = 0; n < 20; n++) await store.commit(held, { trace: { commit: n } })
    await Promise.all(appended)
    const steps = await store.readTrace('a')
    expect(steps.map(({ index }) => index)).toEqual(Array.from({ length: 50 }, (_, n) => n))
  })

  test('close waits for commits, also for one that waits for somebody else', async () => {
    const schema = newSchema()
    const store = await open(database.url, { schema })
    const held = many(20)
    await Promise.all(held.map((each) => store.commit(each)))
    const end = await stranger(
      connect(database.url),
      `SELECT 1 FROM ${schema}.harel_executions WHERE id = 'e0005' FOR UPDATE`,
    )
    const commits = Promise.all(held.map((each) => store.commit(each)))
    const closed = store.close()
    await pass(50)
    await end('ROLLBACK')
    await closed
    await commits
    expect(versions(held)).toEqual(Array(20).fill(2))
  })

  describe.each(['repeatable read', 'serializable'] as const)('where transactions are %s by default', (isolation) => {
    test('conflicts are conflicts, and nothing is lost or doubled (B76)', async () => {
      const schema = newSchema()
      const client = { connection: { default_transaction_isolation: isolation } }
      const stores = await Promise.all([1, 2].map(() => open(database.url, { schema, traceMax: 0, client })))
      const sql = connect(database.url)
      const shared = ids(12)
      const done = sum(await Promise.all(stores.map((store) => contend(store, shared, 8))))
      const [store] = stores
      if (store !== undefined) await expectNoMoreThan(done, store, shared, await rows(sql, schema))
      await expect(store?.commit(execution('shared0000'))).rejects.toMatchObject({
        expected: 0,
        found: expect.any(Number),
      })
    })
  })
})
