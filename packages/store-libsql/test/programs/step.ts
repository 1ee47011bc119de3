/**
 * Prints all that a store tells of an execution and of its queues, after it has committed it once more if that is wanted:
 * step.ts libsql|sqlite URL ID [commit]
 */
import { LibsqlStore, newEvent, newExecution } from '@harel/store-libsql'
import { AsyncSqliteStore } from '@harel/store-sqlite'

const [kind = '', url = '', id = '', commit] = process.argv.slice(2)
const onWarning = (text: string): never => {
  throw new Error(text)
}
await using store =
  kind === 'libsql'
    ? await LibsqlStore.connect({ url }, { onWarning })
    : await AsyncSqliteStore.open(url.slice('file:'.length), { onWarning })
if (commit !== undefined) {
  const execution = (await store.load(id)) ?? newExecution({ id, definitionId: 'd', status: 'RUNNING' })
  Object.assign(execution, { outcome: 'a\0b', activePath: '\u0001', finishedAt: 0.1, context: { text: 'ü😀\0', kind } })
  await store.commit(execution, {
    emits: [{ targetId: null, event: newEvent({ kind: 'a\0b' }) }],
    processedEventId: `${id}-${execution.version}`,
    timers: [{ action: 'schedule', path: kind, fireAt: 1749667779.125 + execution.version / 3 }],
    spawns: [{ childId: 'c', rootPath: '', context: {} }],
    trace: { kind },
  })
}
const read = {
  execution: await store.load(id),
  processed: await Promise.all([0, 1, 2, 3].map((version) => store.isProcessed(id, `${id}-${version}`))),
  outbox: await store.pendingOutbox(),
  spawns: await store.pendingSpawns(),
  timers: await store.dueTimers(1e18),
  trace: await store.readTrace(id),
  listing: await store.listExecutions({ status: ['PENDING', 'RUNNING'], rootsOnly: true }),
}
console.log(JSON.stringify(read))
