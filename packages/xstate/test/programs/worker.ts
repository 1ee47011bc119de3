/** Says that it is running, and runs everything that is in the store, until it is killed. Its argument is an `Assignment`, as JSON. */
import { DurableRunner, type RunnerOptions } from '@harel/xstate'
import { machinesWritingTo } from './machines.ts'
import { openShared, type Shared } from './stores.ts'

export interface Assignment {
  readonly shared: Shared
  /** The file of the effects. */
  readonly effects: string
  readonly settings: Pick<RunnerOptions, 'lease' | 'grace' | 'maxPause'>
}

if (import.meta.main) {
  const { shared, effects, settings }: Assignment = JSON.parse(process.argv[2] ?? '{}')
  const runner = new DurableRunner(await openShared(shared), {
    machines: machinesWritingTo(effects),
    onWarning: (message, cause) => console.error(message, cause),
    ...settings,
  })
  // Whoever has started it is gone: there is nobody left to kill it.
  process.stdin.on('end', () => process.exit()).resume()
  process.stdout.write('running\n')
  await runner.run()
}
