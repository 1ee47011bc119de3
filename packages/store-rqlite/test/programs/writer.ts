/**
 * Writes to a database: writer.ts URL PREFIX NAME ROUNDS
 *
 * Four executions of its own get ROUNDS commits each (0: for ever), one after the other but all four at once, and after
 * each the writer commits one that all writers share. Acknowledged commits are printed.
 */
import { type ExecutionStore, RqliteStore, StoreConflict } from '@harel/store-rqlite'
import { commitNext } from './commit-next.ts'

const [url = '', prefix = '', name = '', rounds = ''] = process.argv.slice(2)
const last = Number(rounds) || Number.POSITIVE_INFINITY

async function commit(store: ExecutionStore, id: string): Promise<number> {
  for (;;) {
    try {
      const n = await commitNext(store, id)
      console.log(`${id} ${n}`)
      return n
    } catch (error) {
      if (!(error instanceof StoreConflict)) throw error
    }
  }
}

async function work(store: ExecutionStore, id: string): Promise<void> {
  while ((await commit(store, id)) < last) await commit(store, 'shared')
}

await using store = await RqliteStore.connect(url, { prefix, traceMax: 0 })
await Promise.all(Array.from({ length: 4 }, (_, n) => work(store, `${name}-${n}`)))
