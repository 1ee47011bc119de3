import { RqliteStore } from '@harel/store-rqlite'
import { ANY_ID, DUE, sample, templates } from '../fill.ts'
import type { Subject } from '../subjects.ts'
import { databaseOf } from './rqlite-by-hand.ts'

/** In one transaction: the node answers nobody else in the meantime, and gives up after its time-out. */
const PART = 20_000

const ROWS = 'WITH RECURSIVE rows (n) AS (SELECT ? UNION ALL SELECT n + 1 FROM rows WHERE n < ?)'
const ID = `printf('%08x%024x', (n * 2654435761) % 4294967296, n)`

/** Fills a node with so many executions, pending events and due timers: the rows are made by the node itself. */
export async function fillRqlite(url: string, rows: number): Promise<readonly Subject[]> {
  const store = await RqliteStore.connect(url)
  // The schema is made when it is needed.
  await store.load('nothing')
  await store.close()
  const db = databaseOf(url)
  const { execution, event } = templates()
  for (let from = 0; from < rows; from += PART) {
    const part = [from, Math.min(rows, from + PART) - 1] as const
    await db.write([
      [
        `INSERT INTO harel_executions (id, definition_id, version, status, active_path, meta_version, data)
          ${ROWS} SELECT ${ID}, 'order', 1, 'RUNNING', 'Order.open.waiting', 1, replace(?, ?, ${ID}) FROM rows`,
        ...[...part, execution, ANY_ID],
      ],
      [`INSERT INTO harel_outbox (target_id, event) ${ROWS} SELECT ${ID}, ? FROM rows`, ...part, event],
      [
        `INSERT INTO harel_timers (execution_id, path, fire_at) ${ROWS} SELECT ${ID}, 'due', ? - n FROM rows`,
        ...[...part, DUE],
      ],
    ])
  }
  return sample(rows)
}
