import { LibsqlStore, newEvent, newExecution } from '@harel/store-libsql'

const commitAndLoad = async (): Promise<void> => {
  await using store = await LibsqlStore.connect({ url: 'file:packed.db' })
  const execution = newExecution({ definitionId: 'order', context: { total: 3 } })
  await store.commit(execution, { emits: [{ targetId: null, event: newEvent({ kind: 'placed' }) }] })
  if ((await store.load(execution.id))?.version !== 1) throw new Error('LibsqlStore did not keep the commit')
}

commitAndLoad()
