/**
 * Writes to a file as fast as it can: writer.ts FILE sync|async NAME ROUNDS [ACKNOWLEDGED]
 *
 * Eight executions of its own get ROUNDS commits each (0: for ever), and one that all writers share gets one commit per
 * round. Commit n of an execution has one of everything, each numbered n, so that a reader can tell whether anything is
 * missing. Acknowledged commits are appended to ACKNOWLEDGED.
 */
import { appendFileSync } from 'node:fs'
import {
  asyncStore,
  type CommitChanges,
  type ExecutionStore,
  newEvent,
  newExecution,
  StoreConflict,
} from '@harel/store-base'
import { AsyncSqliteStore, SqliteStore } from '@harel/store-sqlite'

const [file = '', kind = '', name = '', rounds = '', acknowledged] = process.argv.slice(2)
const WRITERS = 8
const last = Number(rounds) || Number.POSITIVE_INFINITY

const changesOf = (id: string, n: number): CommitChanges => ({
  emits: [{ targetId: id, event: newEvent({ kind: 'e', id: `${id}:${n}` }) }],
  processedEventId: `${id}:${n}`,
  spawns: [{ childId: `${id}:${n}`, rootPath: '', context: {} }],
  timers: [{ action: 'schedule', path: 'P', fireAt: n }],
  trace: { n },
})

async function commitNext(store: ExecutionStore, id: string): Promise<number> {
  const execution = (await store.load(id)) ?? newExecution({ id, definitionId: 'd' })
  const next = execution.version + 1
  execution.context = { n: next, filler: 'x'.repeat((next * 97) % 6000) }
  await store.commit(execution, changesOf(id, next))
  if (acknowledged !== undefined) appendFileSync(acknowledged, `${id} ${next}\n`)
  return next
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
  let version = 0
  while (version < last) {
    version = await commitNext(store, id)
    await commitShared(store)
  }
}

await using store = kind === 'sync' ? asyncStore(SqliteStore.open(file)) : await AsyncSqliteStore.open(file)
console.log('open')
await Promise.all(Array.from({ length: WRITERS }, (_, n) => work(store, `${name}-${n}`)))
