import { NoServer, startServer } from '@harel-tooling/test-servers'
import { expect, onTestFinished, test } from 'vitest'
import { freshFile } from './helpers.js'
import { killRunners } from './programs/killed-runners.js'

type Kind = 'sqlite' | 'redis' | 'postgres'

/** Where the processes meet, for as long as the test takes; the reason, where no server can be had. */
async function addressOf(kind: Kind): Promise<{ address: string } | { reason: string }> {
  if (kind === 'sqlite') return { address: freshFile() }
  try {
    const server = await startServer(kind, { own: true })
    onTestFinished(() => server.stop())
    return { address: server.url }
  } catch (error) {
    if (!(error instanceof NoServer) || ['1', 'true'].includes(process.env.CI ?? '')) throw error
    return { reason: error.message }
  }
}

test.for<Kind>(['sqlite', 'redis', 'postgres'])(
  'processes that are killed at random end where a run without faults ends, each effect under its one key (%s)',
  { timeout: 300_000 },
  async (kind, { skip }) => {
    const at = await addressOf(kind)
    if ('reason' in at) return skip(at.reason)
    const { kills, different, doubled } = await killRunners({
      shared: { kind, ...at },
      orders: 60,
      processes: 3,
      kills: 15,
      seed: Math.floor(Math.random() * 2 ** 32),
      pauses: [0.1, 0.4],
      settings: { lease: 1, grace: 0.3, maxPause: 0.3 },
    })
    expect({ different, doubled }).toEqual({ different: [], doubled: [] })
    expect(kills).toBeGreaterThan(2)
  },
)
