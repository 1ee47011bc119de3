// Commits without waiting for it: not-awaited.ts FILE
import { newEvent, newExecution } from '@harel/store-base'
import { AsyncSqliteStore } from '@harel/store-sqlite'

const [path = ''] = process.argv.slice(2)
const store = await AsyncSqliteStore.open(path)
store.commit(newExecution({ definitionId: 'd' }), { emits: [{ targetId: null, event: newEvent({ kind: 'e' }) }] })
