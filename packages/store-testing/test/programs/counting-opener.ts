/** As faults-writer.ts, but signs in when it starts, and opens only where nine others have done so. */
import { newExecution } from '@harel/store-base'
import { runWriter } from '@harel/store-testing/faults'
import { openRemote } from '../faults/memory-server.ts'

const { address } = JSON.parse(process.argv[2] ?? '{}').open
const list = openRemote(address, { prefix: 'harel' })
await list.save(newExecution({ id: `opener-${process.pid}`, definitionId: 'd' }))

await runWriter(async (options) => {
  const { length } = await list.idsWithPrefix('opener-')
  if (length !== 10) throw new Error(`${length} of ten are there`)
  return openRemote(address, options)
})
