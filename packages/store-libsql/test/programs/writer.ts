/**
 * Writes to a database, with the store of this package or on a file with that of store-sqlite:
 * writer.ts libsql|sqlite URL NAME ROUNDS [ACKNOWLEDGED]
 *
 * Four executions of its own get ROUNDS commits each (0: for ever), one after the other but all four at once, and after
 * each the writer commits one that all writers share. Commit n of an execution has one event, one mark and one step, each
 * numbered n. Acknowledged commits are appended to ACKNOWLEDGED.
 */
import { appendFileSync } from 'node:fs'
import { type ExecutionStore, LibsqlStore, newEvent, newExecution, StoreConflict } from '@harel/store-libsql'
import { AsyncSqliteStore } from '@harel/store-sqlite'

const [kind = '', url = '', name = '', rounds = '', acknowledged] = process.argv.slice(2)
const last = Number(rounds) || Number.POSITIVE_INFINITY

async function commitNext(store: ExecutionStore, id: string): Promise<number> {
  const execution = (await store.load(id)) ?? newExecution({ id, definitionId: 'd' })
  const n = execution.version + 1
  await store.commit(execution, {
    emits: [{ targetId: id, event: newEvent({ kind: 'e', id: `${id}:${n}` }) }],
    processedEventId: `${id}:${n}`,
    trace: { n },
  })
  if (acknowledged !== undefined) appendFileSync(acknowledged, `${id} ${n}\n`)
  return n
}

async function commitShared(store: ExecutionStore): Promise<void> {
  for (;;) {
    try {
      await commitNext(store, 'shared')
      return
    } catch (error) {
      if (!(error instanceof StoreConflict)) throw error
    }
  }
}

async function work(store: ExecutionStore, id: string): Promise<void> {
  while ((await commitNext(store, id)) < last) await commitShared(store)
}

await using store =
  kind === 'libsql' ? await LibsqlStore.connect({ url }) : await AsyncSqliteStore.open(url.slice('file:'.length))
console.log('open')
await Promise.all(Array.from({ length: 4 }, (_, n) => work(store, `${name}-${n}`)))
