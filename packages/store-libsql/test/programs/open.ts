// Opens a database and writes one commit: open.ts URL ID
import { LibsqlStore, newExecution } from '@harel/store-libsql'

const [url = '', id = ''] = process.argv.slice(2)
await using store = await LibsqlStore.connect({ url })
await store.save(newExecution({ id, definitionId: 'd' }))
