import { withServer } from '@harel-tooling/test-servers/vitest'
import { expect, test } from 'vitest'
import { describeContracts } from '../contract.js'
import { connect, everything, many, newSchema, open, rows, useDatabase, versions } from '../helpers.js'

// A statement that was prepared meets another session of the server behind the pool.
const client = { prepare: false }

withServer('postgres', (server) => {
  describeContracts(server, client)

  const database = useDatabase(server)

  test('commits and transactions of more connections than there are sessions are done, and leave none in a transaction (B48)', async () => {
    const schema = newSchema()
    const stores = await Promise.all([1, 2].map(() => open(database.url, { schema, client: { ...client, max: 10 } })))
    const sql = connect(database.url, client)
    await sql.unsafe(`CREATE TABLE ${schema}.orders (id text PRIMARY KEY)`)
    const work = stores.flatMap((store, s) => {
      const alone = many(50, `alone-${s}-`).map(async (held) => {
        for (let n = 0; n < 4; n++) await store.commit(held, everything(`${held.id}-${n}`))
        return held
      })
      const withRows = many(10, `rows-${s}-`).map(async (held) => {
        await store.transaction(async (inner, tx) => {
          await tx.unsafe(`INSERT INTO ${schema}.orders VALUES ($1)`, [held.id])
          await inner.commit(held, everything(held.id))
        })
        return held
      })
      return [...alone, ...withRows]
    })
    const held = await Promise.all(work)
    expect(versions(held)).toEqual(held.map(({ id }) => (id.startsWith('alone') ? 4 : 1)))
    const [orders] = await sql.unsafe(`SELECT count(*)::int AS count FROM ${schema}.orders`)
    expect(orders?.count).toBe(20)
    expect(await rows(sql, schema)).toEqual([120, 420, 420, 120, 420, 420])
    const [left] = await sql`SELECT count(*)::int AS count FROM pg_stat_activity
      WHERE datname = current_database() AND state LIKE 'idle in transaction%'`
    expect(left?.count).toBe(0)
  })
})
