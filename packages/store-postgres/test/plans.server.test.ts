import type { ExecutionStore } from '@harel/store-base'
import { withServer } from '@harel-tooling/test-servers/vitest'
import type { Sql, TransactionSql } from 'postgres'
import { expect, test } from 'vitest'
import { connect, everything, execution, many, newSchema, open, useDatabase } from './helpers.js'

/** Fills all tables; as many rows belong to each of a thousand executions. */
async function fill(sql: Sql, schema: string): Promise<void> {
  const rows = 'FROM generate_series(1, 20000) n'
  const id = `'e' || n % 1000`
  await sql.unsafe(`
    INSERT INTO ${schema}.harel_executions (id, definition_id, data, version)
      SELECT 'x' || n, 'd', '{"status":"DONE"}', 1 ${rows};
    INSERT INTO ${schema}.harel_outbox (target_id, event) SELECT ${id}, '{"id":"v","kind":"k"}' ${rows};
    INSERT INTO ${schema}.harel_spawns (parent_id, child_id, root_path, context) SELECT ${id}, 'c' || n, '', '{}' ${rows};
    INSERT INTO ${schema}.harel_processed_events SELECT ${id}, 'v' || n ${rows};
    INSERT INTO ${schema}.harel_timers SELECT ${id}, 'p' || n, n ${rows};
    INSERT INTO ${schema}.harel_trace SELECT ${id}, n, '{}' ${rows};
    INSERT INTO ${schema}.harel_definition_versions SELECT 'd' || n, '1', '{}' ${rows}`)
}

/** Runs every method but the listings, on a path through each of its statements. */
async function exercise(s: ExecutionStore): Promise<void> {
  const held = execution('new')
  await s.commit(held, everything('new'))
  await s.commit(held, { timers: [{ action: 'cancel', path: 'P' }], trace: { n: 1 } })
  await s.commit(execution('new')).catch(() => {})
  await s.load('new')
  await s.loadForEvent('new', 'event')
  await s.isProcessed('new', 'event')
  await s.pendingOutbox({ limit: 10 })
  await s.pendingOutbox({ limit: 10, after: 19_000 })
  await s.ackOutbox([1, 2, 3])
  await s.pendingSpawns({ limit: 10 })
  await s.ackSpawn([1, 2, 3])
  const [first] = await s.dueTimers(1e9, { limit: 10 })
  if (first !== undefined) await s.dueTimers(1e9, { limit: 10, after: first })
  await s.dueTimers(10)
  await s.deleteTimer('e1', 'p1', 1)
  await s.appendTrace('e1', {})
  await s.readTrace('e1')
  await s.idsWithPrefix('new')
  await s.publishDefinition({ id: 'd1', version: '1', definition: {} })
  await s.loadDefinition('d1', '1')
  await s.purge('new', 1)
  await s.purge('new', 2)
  await s.purge('e2', 1)
}

/** The tables of which a connection has lately scanned rows, with their number. */
async function scanned(tx: TransactionSql, schema: string): Promise<Record<string, number>> {
  const rows = await tx.unsafe(`SELECT relname, seq_tup_read::int AS scanned FROM pg_stat_xact_user_tables
    WHERE schemaname = '${schema}' AND seq_tup_read > 0`)
  return Object.fromEntries(rows.map(({ relname, scanned }) => [relname, scanned]))
}

withServer('postgres', (server) => {
  const database = useDatabase(server)

  test('no method reads a whole table (weakness 32, weakness 37)', async () => {
    const schema = newSchema()
    const store = await open(database.url, { schema })
    const sql = connect(database.url)
    await fill(sql, schema)
    await sql.unsafe('ANALYZE')
    await store.transaction(async (s, tx) => {
      const before = await scanned(tx, schema)
      // So often that the server settles for one plan of each statement.
      for (let run = 0; run < 8; run++) await exercise(s)
      expect(await scanned(tx, schema)).toEqual(before)
    })
  })

  test('nor do the commit functions when their plans were made for empty tables', async () => {
    const schema = newSchema()
    const store = await open(database.url, { schema, client: { max: 1 } })
    const sql = connect(database.url)
    await sql.unsafe('ANALYZE')
    const held = many(20)
    for (let run = 0; run < 8; run++) {
      await Promise.all(held.map((each) => store.commit(each, everything(each.id))))
      await store.commit(held[0] ?? execution('none'), everything('e0000'))
    }
    const scans = async () => {
      // Whatever the connection of the store has counted is seen by others when it is idle.
      await new Promise((resolve) => setTimeout(resolve, 1100))
      await store.load('none')
      await sql.unsafe('SELECT pg_stat_clear_snapshot()')
      const [row] = await sql.unsafe(`SELECT sum(seq_tup_read)::int AS scanned FROM pg_stat_user_tables
        WHERE schemaname = '${schema}'`)
      return row?.scanned
    }
    await fill(sql, schema)
    const before = await scans()
    await Promise.all(held.map((each) => store.commit(each, everything(each.id))))
    await store.commit(held[0] ?? execution('none'), everything('e0000'))
    expect(await scans()).toBe(before)
  })

  // How many updates find room depends on who else holds snapshots, so it is measured in the benchmark and not here.
  test('the executions keep room in their pages for new versions that need no new entries in the indexes', async () => {
    const schema = newSchema()
    await open(database.url, { schema })
    const [made] = await connect(database.url)`
      SELECT reloptions FROM pg_class WHERE oid = ${`${schema}.harel_executions`}::regclass`
    expect(made?.reloptions).toEqual(['fillfactor=70'])
  })
})
