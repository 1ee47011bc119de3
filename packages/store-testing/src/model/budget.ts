import type { ModelOptions } from '../contract.js'

// A test should end within the five seconds that many runners allow.
const MILLISECONDS = 3000

const numberFrom = (variable: string): number | undefined => {
  const text = process.env[variable]
  return text === undefined || text === '' ? undefined : Number(text)
}

/** `HAREL_TEST_SEED`, else the one that is given, else another one each time. */
export const seedFor = (given: number | undefined): number =>
  numberFrom('HAREL_TEST_SEED') ?? given ?? Math.floor(Math.random() * 2 ** 31)

/** How often something random is tried, from which seed on, and until when it may begin again. */
export function budgetOf({ seed, runs = 100, milliseconds }: ModelOptions) {
  const wanted = numberFrom('HAREL_TEST_RUNS')
  // Who says how many wants them all.
  const most = wanted === undefined ? (milliseconds ?? MILLISECONDS) : Number.POSITIVE_INFINITY
  return {
    seed: seedFor(seed),
    runs: wanted ?? runs,
    deadline: performance.now() + most,
  }
}
