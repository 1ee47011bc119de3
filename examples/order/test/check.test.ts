import { copyFileSync, mkdtempSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { asyncStore } from '@harel/store-base'
import { SqliteStore } from '@harel/store-sqlite'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { check, readHistories } from '../src/check.ts'
import { orderInputs } from '../src/workload.ts'
import { runQuickStart } from './run.ts'

const ORDERS = 20

const folder = mkdtempSync(join(tmpdir(), 'harel-check-'))
const finished = join(folder, 'finished.db')

beforeAll(async () => {
  const { path, output } = await runQuickStart('--orders', String(ORDERS), '--kills', '0', '--keep')
  if (path === undefined) throw new Error(output)
  renameSync(path, finished)
  rmSync(dirname(path), { recursive: true })
}, 120_000)

afterAll(() => rmSync(folder, { recursive: true }))

/** What the check objects to when the database has been changed by these statements. */
async function objectionsAfter(sql: string): Promise<string[]> {
  const path = join(folder, 'changed.db')
  copyFileSync(finished, path)
  const db = new DatabaseSync(path)
  db.exec(sql)
  db.close()
  await using store = asyncStore(SqliteStore.open(path, { traceMax: 0 }))
  const findings = await check(store, await readHistories(store), orderInputs(ORDERS))
  return findings.flatMap(({ objections }) => objections)
}

const withPayload = (id: string, ...changes: string[]) =>
  `UPDATE harel_executions SET data = json_set(data, ${changes.join(', ')}) WHERE id = '${id}';`

const order = 'order-00004'
const lastEvent = `DELETE FROM harel_trace WHERE execution_id = '${order}' AND idx =
  (SELECT MAX(idx) FROM harel_trace WHERE execution_id = '${order}');`
const versionOf = (id: string, by: string) =>
  `UPDATE harel_executions SET version = version ${by}, data = json_set(data, '$.version', version ${by}) WHERE id = '${id}';`

describe('the check', () => {
  test('has no objection to a finished run', async () => {
    expect(await objectionsAfter('')).toEqual([])
  })

  test('sees an order that has not heard of its parcel', async () => {
    const lost = `${lastEvent} ${versionOf(order, '- 1')} ${withPayload(order, "'$.status', 'RUNNING'", "'$.outcome', NULL")}`
    expect(await objectionsAfter(lost)).toEqual([
      `${order} is RUNNING, null; not delivered`,
      `${order} has not handled xstate.done.actor.shipment`,
      `${order} is at version 8, with 8 steps in its trace`,
    ])
  })

  test('sees an event that was handled twice', async () => {
    const again = `INSERT INTO harel_trace SELECT execution_id, 99, entry FROM harel_trace
      WHERE execution_id = '${order}' AND idx = 1; ${versionOf(order, '+ 1')}`
    expect(await objectionsAfter(again)).toEqual([
      `${order} has handled one event twice`,
      `${order} is at version 10, with 10 steps in its trace`,
    ])
  })

  test('sees one event that was handled in the place of another', async () => {
    const other = `UPDATE harel_trace SET entry = json_set(entry, '$.event_kind', 'RESERVED')
      WHERE execution_id = '${order}' AND entry LIKE '%"PACKED"%';`
    expect(await objectionsAfter(other)).toEqual([
      `${order} has handled RESERVED once too often`,
      `${order} has not handled PACKED`,
    ])
  })

  test('sees a reservation that was booked twice', async () => {
    const twice = withPayload('warehouse-00001', "'$.context.xstate.context.stock'", '60')
    expect(await objectionsAfter(twice)).toEqual([
      'warehouse-00001 has {"stock":60,"reserved":19,"packed":19}, not {"stock":63,"reserved":19,"packed":19}',
    ])
  })

  test('sees a state that was written without a step', async () => {
    expect(await objectionsAfter(versionOf(order, '+ 1'))).toEqual([
      `${order} is at version 10, with 9 steps in its trace`,
    ])
  })

  test('sees a parcel that nobody ordered', async () => {
    const extra = `INSERT INTO harel_executions (id, definition_id, version, data)
      SELECT 'order-00099:shipment', definition_id, version, json_set(data, '$.id', 'order-00099:shipment')
      FROM harel_executions WHERE id = '${order}:shipment';`
    expect(await objectionsAfter(extra)).toContain('order-00099:shipment should not exist')
  })

  test('sees what is left in the queues', async () => {
    const left = `
      INSERT INTO harel_outbox (target_id, event) VALUES ('${order}', '{"id": "e", "kind": "PACKED", "data": {}}');
      INSERT INTO harel_spawns (parent_id, child_id, root_path, context) VALUES ('${order}', 'child', '', '{}');
      INSERT INTO harel_timers (execution_id, path, fire_at) VALUES ('${order}', 'retry', 1e9);`
    expect(await objectionsAfter(left)).toEqual([
      expect.stringMatching(/^event \d+, PACKED, was not delivered$/),
      'child was not started',
      `${order} still waits for retry`,
    ])
  })
})
