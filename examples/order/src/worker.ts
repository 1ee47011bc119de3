/**
 * The process that works: it places orders and runs them, until it is let go or killed. It holds nothing that matters:
 * whatever is under way when it dies is in the store for the next one.
 */
import { setTimeout } from 'node:timers/promises'
import { ExecutionAlreadyExists } from '@harel/store-base'
import { AsyncSqliteStore } from '@harel/store-sqlite'
import { DurableRunner } from '@harel/xstate'
import { machines } from './machine.ts'
import { orderInputs, STOCK, warehouseIds } from './workload.ts'

const [path = '', orders = ''] = process.argv.slice(2)
const released = new AbortController()
process.once('disconnect', () => released.abort())
// Whoever started this process may be gone already.
if (process.connected === false) released.abort()

await using store = await AsyncSqliteStore.open(path, { traceMax: 0 })
const worker = String(process.pid)
// Short, so that a worker takes up quickly what the one before it has left.
await using runner = new DurableRunner(store, {
  machines,
  trace: true,
  worker,
  concurrency: 256,
  grace: 0.2,
  maxPause: 0.2,
})

await Promise.all([runner.run({ signal: released.signal }), placeOrders(Number(orders))])

/** Little by little, those that the workers before this one have not placed. */
async function placeOrders(count: number): Promise<void> {
  const ids = warehouseIds(count)
  await Promise.all(ids.map((id) => once(runner.create('warehouse', { id, input: { stock: STOCK } }))))
  const portion = Math.ceil(count / 40)
  const inputs = orderInputs(count)
  for (let from = 0; from < count && !released.signal.aborted; from += portion) {
    const some = inputs.slice(from, from + portion)
    await Promise.all(some.map((input) => once(runner.create('order', { id: input.id, input }))))
    await setTimeout(40)
  }
}

/** It may have been created before. */
async function once(creation: Promise<unknown>): Promise<void> {
  await creation.catch((error) => {
    if (!(error instanceof ExecutionAlreadyExists)) throw error
  })
}
