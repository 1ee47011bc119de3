import { type ExecutionStore, newEvent, newExecution } from '@harel/store-rqlite'

/** Commits an execution once more, with one of everything, each numbered by the version, which is returned. */
export async function commitNext(store: ExecutionStore, id: string): Promise<number> {
  const execution = (await store.load(id)) ?? newExecution({ id, definitionId: 'd' })
  const n = execution.version + 1
  await store.commit(execution, {
    emits: [{ targetId: id, event: newEvent({ kind: 'e', id: `${id}:${n}` }) }],
    processedEventId: `${id}:${n}`,
    spawns: [{ childId: `${id}:${n}`, rootPath: '', context: {} }],
    timers: [{ action: 'schedule', path: 'P', fireAt: n }],
    trace: { n },
  })
  return n
}
