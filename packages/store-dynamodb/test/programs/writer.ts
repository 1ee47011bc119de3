/**
 * Writes as fast as it can: writer.ts URL PREFIX NAME ROUNDS
 *
 * Eight executions of its own get ROUNDS commits each (0: for ever), and one that all writers share gets one commit per
 * round. Commit n of an execution has one of everything, each numbered n, so that a reader can tell whether anything is
 * missing. Acknowledged commits are printed.
 */
import {
  type CommitChanges,
  DynamoStore,
  newEvent,
  newExecution,
  OutcomeUnknown,
  StoreConflict,
  StoreUnavailable,
} from '@harel/store-dynamodb'

const [endpoint = '', prefix = '', name = '', rounds = ''] = process.argv.slice(2)
const last = Number(rounds) || Number.POSITIVE_INFINITY

const changesOf = (id: string, n: number): CommitChanges => ({
  emits: [{ targetId: id, event: newEvent({ kind: 'e', id: `${id}:${n}` }) }],
  processedEventId: `${id}:${n}`,
  spawns: [{ childId: `${id}:${n}`, rootPath: '', context: {} }],
  timers: [{ action: 'schedule', path: 'P', fireAt: n }],
  trace: { n },
})

async function commitNext(store: DynamoStore, id: string): Promise<number> {
  const execution = (await store.load(id)) ?? newExecution({ id, definitionId: 'd' })
  const next = execution.version + 1
  execution.context = { n: next, filler: 'x'.repeat((next * 97) % 6000) }
  await store.commit(execution, changesOf(id, next))
  console.log(`${id} ${next}`)
  return next
}

/** Goes on until the next commit is in, whatever happens to the server. */
async function persist(store: DynamoStore, id: string): Promise<number> {
  for (;;) {
    try {
      return await commitNext(store, id)
    } catch (error) {
      if (![StoreConflict, StoreUnavailable, OutcomeUnknown].some((type) => error instanceof type)) throw error
    }
  }
}

async function work(store: DynamoStore, id: string): Promise<void> {
  let version = 0
  while (version < last) {
    version = await persist(store, id)
    await persist(store, 'shared')
  }
}

const credentials = { accessKeyId: 'key', secretAccessKey: 'secret' }
const config = { endpoint, region: 'eu-central-1', credentials }
await using store = await DynamoStore.connect(config, { prefix, traceMax: 0 })
await Promise.all(Array.from({ length: 8 }, (_, n) => work(store, `${name}-${n}`)))
