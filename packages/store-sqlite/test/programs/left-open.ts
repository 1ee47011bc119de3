// Commits and forgets to close: left-open.ts FILE
import { newExecution } from '@harel/store-base'
import { AsyncSqliteStore } from '@harel/store-sqlite'

const [path = ''] = process.argv.slice(2)
const store = await AsyncSqliteStore.open(path)
const execution = newExecution({ definitionId: 'd' })
await store.commit(execution)
console.log(`version ${execution.version}`)
