// Opens a file and writes one commit: open.ts FILE sync|async ID
import { asyncStore, newExecution } from '@harel/store-base'
import { AsyncSqliteStore, SqliteStore } from '@harel/store-sqlite'

const [file = '', kind = '', id = ''] = process.argv.slice(2)
await using store = kind === 'sync' ? asyncStore(SqliteStore.open(file)) : await AsyncSqliteStore.open(file)
await store.save(newExecution({ id, definitionId: 'd' }))
