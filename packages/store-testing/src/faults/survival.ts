import { AssertionError } from 'node:assert'
import { skip, type TestRunner } from '../describe-store.js'
import { seedFor } from '../model/budget.js'
import { isWhole } from './audit.js'
import { type Scenario, scenarios } from './scenarios.js'
import type { Outcome, UnderFaults } from './site.js'

export interface SurvivalOptions {
  /** What happens when. Default: another one each time; a failure names it, and `HAREL_TEST_SEED` goes before it. */
  seed?: number
  /** 1 is the whole length: 200 cuts in 5,000 commits, 2,000 commits in the storm. Default: 0.1. */
  scale?: number
}

/** What became of one scenario. */
export interface Survival {
  name: string
  title: string
  seed: number
  /** Absent where `skipped` says why it was not played. */
  outcome?: Outcome
  skipped?: string
}

/**
 * Plays every scenario that says something about this store, one after the other.
 *
 * @throws AssertionError when anything was lost or doubled; it says what, and the seed
 */
export async function assertSurvives(under: UnderFaults, options: SurvivalOptions = {}): Promise<Survival[]> {
  const survivals: Survival[] = []
  for (const scenario of scenarios) survivals.push(await play(scenario, under, options))
  return survivals
}

/** Registers every scenario as a test of any runner; what says nothing about this store is skipped with the reason. */
export function describeSurvival(
  runner: TestRunner,
  name: string,
  under: UnderFaults,
  options: SurvivalOptions = {},
): void {
  runner.describe(name, () => {
    for (const scenario of scenarios) {
      const reason = scenario.reasonToSkip(under)
      if (reason !== undefined) skip(runner, scenario.title, reason)
      else runner.test(scenario.title, async () => void (await play(scenario, under, options)))
    }
  })
}

/** One scenario; throws as `assertSurvives` does. */
async function play(scenario: Scenario, under: UnderFaults, options: SurvivalOptions): Promise<Survival> {
  const { scale = 0.1 } = options
  const seed = seedFor(options.seed)
  const { name, title } = scenario
  const skipped = scenario.reasonToSkip(under)
  if (skipped !== undefined) return { name, title, seed, skipped }
  const outcome = await scenario.run({ under, seed, scale })
  if (isWhole(outcome)) return { name, title, seed, outcome }
  const { lost, doubled, breaches } = outcome
  throw new AssertionError({
    message: `${title} (seed ${seed}): ${[
      ...first('lost', lost),
      ...first('not to be there', doubled),
      ...first('wrong', breaches),
    ].join('; ')}`,
    actual: { lost, doubled, breaches },
    expected: { lost: [], doubled: [], breaches: [] },
  })
}

/** How many there are, and the first of them. */
const first = (what: string, items: readonly string[]): string[] =>
  items.length === 0 ? [] : [`${items.length} ${what}: ${items.slice(0, 3).join(', ')}${items.length > 3 ? ', …' : ''}`]
