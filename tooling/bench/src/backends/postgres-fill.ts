import { PostgresStore } from '@harel/store-postgres'
import client from 'postgres'
import { ANY_ID, DUE, sample, templates } from '../fill.ts'
import type { Subject } from '../subjects.ts'

const ID = `(lpad(to_hex((n * 2654435761) % 4294967296), 8, '0') || lpad(to_hex(n), 24, '0'))`

/** Fills a database with so many executions, pending events and due timers. Indexes are made when the rows are there. */
export async function fillPostgres(url: string, rows: number): Promise<readonly Subject[]> {
  const store = await PostgresStore.connect(url)
  // The schema is made when it is needed.
  await store.load('nothing')
  await store.close()
  const sql = client(url, { max: 1, onnotice: () => {} })
  const { execution, event } = templates()
  try {
    const indexes = await sql`SELECT indexname AS name, indexdef AS text FROM pg_indexes
      WHERE tablename LIKE 'harel%' AND indexname NOT LIKE '%pkey'`
    for (const { name } of indexes) await sql.unsafe(`DROP INDEX ${name}`)
    await sql`SET synchronous_commit = off`
    await sql.unsafe(
      `INSERT INTO harel_executions (id, definition_id, version, status, active_path, meta_version, data)
        SELECT ${ID}, 'order', 1, 'RUNNING', 'Order.open.waiting', 1, replace($1::text, $2::text, ${ID})
        FROM generate_series(0, $3::bigint - 1) n`,
      [execution, ANY_ID, rows],
    )
    await sql.unsafe(
      `INSERT INTO harel_outbox (target_id, event) SELECT ${ID}, $1::text FROM generate_series(0, $2::bigint - 1) n`,
      [event, rows],
    )
    await sql.unsafe(
      `INSERT INTO harel_timers (execution_id, path, fire_at)
        SELECT ${ID}, 'due', $1::float8 - n FROM generate_series(0, $2::bigint - 1) n`,
      [DUE, rows],
    )
    for (const { text } of indexes) await sql.unsafe(text)
    await sql.unsafe('VACUUM ANALYZE')
    // What is still to be written would be paid for by those who are measured.
    await sql.unsafe('CHECKPOINT')
  } finally {
    await sql.end()
  }
  return sample(rows)
}
