/** As faults-writer.ts, but fails to open where another process makes its tables at the same time. */
import { setTimeout as sleep } from 'node:timers/promises'
import { newExecution } from '@harel/store-base'
import { runWriter } from '@harel/store-testing/faults'
import { openRemote } from '../faults/memory-server.ts'

const writing = runWriter(async ({ address = '', ...options }) => {
  const store = openRemote(address, options)
  const make = (id: string) => store.save(newExecution({ id, definitionId: 'd' }))
  if ((await store.load('tables')) === undefined) {
    await make(`asked-${process.pid}`)
    // So that in every run another one has found no tables either.
    while ((await store.idsWithPrefix('asked-')).length < 2) await sleep(5)
    await make('tables')
  }
  return store
})
await writing.catch(() => process.exit(1))
