/** `worker.ts <kind of store> <address> <file of effects>`: runs everything that is in the store, until it is killed. */
import { DurableRunner } from '@harel/xstate'
import { machinesWritingTo } from './machines.ts'
import { openShared } from './stores.ts'

const [kind = '', address = '', effects = ''] = process.argv.slice(2)
const store = await openShared(kind, address)
const runner = new DurableRunner(store, {
  machines: machinesWritingTo(effects),
  lease: 1,
  grace: 0.3,
  maxPause: 0.3,
  onWarning: (message, cause) => console.error(message, cause),
})
process.stdout.write('running\n')
await runner.run()
