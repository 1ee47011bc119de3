/** `worker.ts <database> <effects>`: runs everything that is in the database, until it is killed. */
import { AsyncSqliteStore } from '@harel/store-sqlite'
import { DurableRunner } from '@harel/xstate'
import { machinesWritingTo } from './machines.ts'

const [database = '', effects = ''] = process.argv.slice(2)
const store = await AsyncSqliteStore.open(database, { traceMax: 0 })
const runner = new DurableRunner(store, {
  machines: machinesWritingTo(effects),
  lease: 1,
  grace: 0.3,
  maxPause: 0.3,
  onWarning: (message, cause) => console.error(message, cause),
})
process.stdout.write('running\n')
await runner.run()
