import { newEvent, newExecution } from '@harel/store-base'
import { AsyncDictStore, DictStore } from '@harel/store-dict'

const execution = newExecution({ definitionId: 'order', context: { total: 3 } })
const changes = { emits: [{ targetId: null, event: newEvent({ kind: 'placed' }) }] }

const inMemory = (): void => {
  using store = new DictStore()
  store.commit(execution, changes)
  if (store.load(execution.id)?.version !== 1) throw new Error('DictStore did not keep the commit')
}

const behindPromises = async (): Promise<void> => {
  await using store = new AsyncDictStore({ copy: true })
  await store.commit({ ...execution, version: 0 }, changes)
  if ((await store.load(execution.id))?.version !== 1) throw new Error('AsyncDictStore did not keep the commit')
}

inMemory()
behindPromises()
