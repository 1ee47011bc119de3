import { expect, onTestFinished, test } from 'vitest'
import { placeOf } from './helpers.js'
import { killRunners } from './programs/killed-runners.js'

test.for(['sqlite', 'redis', 'postgres'] as const)(
  'processes that are killed at random end where a run without faults ends, each effect under its one key (%s)',
  { timeout: 300_000 },
  async (kind, { skip }) => {
    const place = await placeOf(kind)
    if (place.reason !== undefined) return skip(place.reason)
    onTestFinished(place.remove)
    const { kills, different, doubled } = await killRunners({
      shared: { kind, address: place.address },
      orders: 80,
      processes: 3,
      kills: 15,
      seed: Math.floor(Math.random() * 2 ** 32),
      pauses: [0.05, 0.25],
      settings: { lease: 1, grace: 0.3, maxPause: 0.3 },
    })
    expect({ different, doubled }).toEqual({ different: [], doubled: [] })
    // How many there are depends on how fast the machine is.
    expect(kills).toBeGreaterThan(0)
  },
)
