// Commits and forgets to close: left-open.ts FILE
import { newExecution } from '@harel/store-base'
import { AsyncSqliteStore } from '@harel/store-sqlite'

async function commit(path = ''): Promise<void> {
  const store = await AsyncSqliteStore.open(path)
  const execution = newExecution({ definitionId: 'd' })
  await store.commit(execution)
  console.log(`version ${execution.version}`)
}

commit(process.argv[2])
