/** As faults-writer.ts, but fails to open where another process makes its first entry at the same time. */
import { newExecution } from '@harel/store-base'
import { runWriter } from '@harel/store-testing/faults'
import { openRemote } from '../faults/memory-server.ts'

const writing = runWriter(async ({ address = '', ...options }) => {
  const store = openRemote(address, options)
  if ((await store.load('tables')) === undefined) await store.save(newExecution({ id: 'tables', definitionId: 'd' }))
  return store
})
await writing.catch(() => process.exit(1))
