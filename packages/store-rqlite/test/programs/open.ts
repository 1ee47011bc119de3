// Opens a database and writes one commit: open.ts URL PREFIX ID
import { newExecution, RqliteStore } from '@harel/store-rqlite'

const [url = '', prefix = '', id = ''] = process.argv.slice(2)
await using store = await RqliteStore.connect(url, { prefix })
await store.save(newExecution({ id, definitionId: 'd' }))
