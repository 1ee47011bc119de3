import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { type Emit, type ExecutionStore, executions, newEvent, newExecution, outbox } from '@harel/store-base'
import { AsyncSqliteStore } from '@harel/store-sqlite'
import { expect, onTestFinished, test } from 'vitest'
import { connect, freshFile } from './helpers.js'

const ROWS = 50_000
const MIB = 2 ** 20

/** A file with so many executions, each with an event that is pending. */
async function filled(): Promise<ExecutionStore> {
  const path = freshFile()
  const store = await AsyncSqliteStore.open(path)
  onTestFinished(() => store.close())
  const execution = newExecution({ id: 'template', definitionId: 'order', context: { note: 'x'.repeat(500) } })
  const emit: Emit = { targetId: 'template', event: newEvent({ kind: 'Shipped', data: { note: 'x'.repeat(500) } }) }
  await store.commit(execution, { emits: [emit] })
  const numbers = `WITH RECURSIVE n (n) AS (SELECT 2 UNION ALL SELECT n + 1 FROM n WHERE n < ${ROWS})`
  const db = connect(path)
  db.exec(
    `${numbers} INSERT INTO harel_outbox (target_id, event) SELECT target_id, event FROM n, harel_outbox WHERE seq = 1`,
  )
  db.exec(`${numbers} INSERT INTO harel_executions (id, definition_id, version, status, meta_version, data)
    SELECT 'execution-' || n, definition_id, version, status, meta_version, replace(data, '"template"', '"execution-' || n || '"')
    FROM n, harel_executions WHERE id = 'template'`)
  return store
}

setFlagsFromString('--expose-gc')
const collect: () => void = runInNewContext('gc')

const held = (): number => {
  collect()
  return process.memoryUsage().heapUsed
}

/** By how much the heap grows at most while rows go by, in MiB. */
async function growth(rows: AsyncIterable<unknown>): Promise<{ rows: number; mib: number }> {
  const before = held()
  let [count, most] = [0, before]
  for await (const _ of rows) if (++count % (ROWS / 5) === 0) most = Math.max(most, held())
  return { rows: count, mib: (most - before) / MIB }
}

async function* relayed(store: ExecutionStore): AsyncGenerator<number> {
  for await (const { seq } of outbox(store)) {
    if (seq % 100 === 0) await store.ackOutbox(Array.from({ length: 100 }, (_, n) => seq - n))
    yield seq
  }
}

test(`${ROWS} pending events are relayed, and as many executions listed, without holding more than some pages of them`, async () => {
  const store = await filled()
  const listed = await growth(executions(store))
  expect(listed).toEqual({ rows: ROWS, mib: expect.any(Number) })
  expect(listed.mib).toBeLessThan(4)
  const sent = await growth(relayed(store))
  expect(sent).toEqual({ rows: ROWS, mib: expect.any(Number) })
  expect(sent.mib).toBeLessThan(4)
  expect(await store.pendingOutbox({ limit: 1 })).toEqual([])
}, 120_000)
