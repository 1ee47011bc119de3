import type { Scenario } from '@harel/store-testing/faults'
import type { RunnerOptions } from '@harel/xstate'
import { killRunners } from '../../../packages/xstate/test/programs/killed-runners.ts'

const size = (whole: number, scale: number): number => Math.max(1, Math.round(whole * scale))

/** As a user's processes run. */
const settings: Pick<RunnerOptions, 'lease' | 'grace' | 'maxPause'> = {}

/** The scenario for `DurableRunner`: an order makes four executions, so that 1 is more than 10,000 of them. */
export const killedRunners = (backend: string): Scenario => ({
  name: 'killed-runners',
  title: 'runners that are killed end where runners end that live, with each effect under one key',
  reasonToSkip: ({ address }) => (address === undefined ? 'it has no address' : undefined),
  async run({ under: { address }, seed, scale }) {
    const survived = await killRunners({
      shared: { kind: backend, address: address?.() ?? '', prefix: `runners${seed}` },
      orders: size(2500, scale),
      processes: 5,
      kills: Number.POSITIVE_INFINITY,
      seed,
      pauses: [1, 3],
      settings,
      onProgress: (text) => console.log(`    ${text}`),
    })
    const { executions, commits, effects, calls, kills, different, doubled } = survived
    console.log(`    ${executions} executions; ${effects} effects, ${calls} calls for them; ${kills} processes killed`)
    const none = { acknowledged: 0, refused: 0, unknown: 0, breaches: [] }
    return { ...none, commits, faults: kills, lost: [...different], doubled: [...doubled] }
  },
})
