import type { CommitChanges, Execution, ExecutionStore, TimerOp } from '@harel/store-base'
import { DurableRunner } from '@harel/xstate'
import { setup } from 'xstate'

const light = setup({ types: { events: {} as { type: 'TOGGLE' } } }).createMachine({
  id: 'light',
  initial: 'off',
  states: { off: { on: { TOGGLE: 'on' } }, on: { on: { TOGGLE: 'off' }, after: { 60000: 'off' } } },
})

/** As much of a store as this program needs. */
const held = new Map<string, Execution>()
const timers: TimerOp[] = []
const store = {
  load: async (id: string) => structuredClone(held.get(id)),
  loadForEvent: async (id: string) => ({ execution: structuredClone(held.get(id)), processed: false }),
  commit: async (execution: Execution, changes?: CommitChanges) => {
    execution.version += 1
    held.set(execution.id, structuredClone(execution))
    timers.push(...(changes?.timers ?? []))
    return []
  },
  publishDefinition: async (record: object) => record,
  [Symbol.asyncDispose]: async () => {},
} as unknown as ExecutionStore

const main = async (): Promise<void> => {
  const runner = new DurableRunner(store, { machines: [light] })
  await runner.create('light', { id: 'lamp' })
  await runner.send('lamp', { type: 'TOGGLE' })
  await runner.close()
  if (held.get('lamp')?.activePath !== 'on' || timers.length !== 1) throw new Error('the lamp is not on')
}

main()
