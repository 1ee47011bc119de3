import { newEvent, newExecution } from '@harel/store-base'
import { AsyncSqliteStore, SqliteStore } from '@harel/store-sqlite'

const file = 'packed.db'
const changes = { emits: [{ targetId: null, event: newEvent({ kind: 'placed' }) }] }

const committed = (): string => {
  using store = SqliteStore.open(file)
  const execution = newExecution({ definitionId: 'order', context: { total: 3 } })
  store.commit(execution, changes)
  if (store.load(execution.id)?.version !== 1) throw new Error('SqliteStore did not keep the commit')
  return execution.id
}

const committedOnThread = async (id: string): Promise<void> => {
  await using store = await AsyncSqliteStore.open(file)
  const execution = await store.load(id)
  if (execution === undefined) throw new Error('AsyncSqliteStore does not see the commit of SqliteStore')
  await store.commit(execution, changes)
  if ((await store.load(id))?.version !== 2) throw new Error('AsyncSqliteStore did not keep the commit')
}

committedOnThread(committed())
