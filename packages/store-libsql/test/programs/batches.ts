// Writes batches of the same rows as fast as it can, and reads between them: batches.ts URL NAME COUNT
import { LibsqlStore, newEvent, newExecution } from '@harel/store-libsql'

const [url = '', name = '', count = ''] = process.argv.slice(2)
await using store = await LibsqlStore.connect({ url })
for (let n = 0; n < Number(count); n++) {
  const batch = [0, 1, 2].map((part) => newExecution({ id: `${name}-${n}-${part}`, definitionId: 'd' }))
  const emits = [{ targetId: null, event: newEvent({ kind: 'e' }) }]
  await Promise.all(batch.map((execution) => store.commit(execution, { emits })))
  await store.load(`${name}-${n}-0`)
}
