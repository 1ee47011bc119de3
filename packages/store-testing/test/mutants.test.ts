import { AssertionError } from 'node:assert'
import { readFileSync, writeFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { type Check, type Contract, type ModelOptions, reasonToSkip, runCheck } from '../src/contract.js'
import { contracts } from '../src/contracts/index.js'
import { mutants } from './mutants/index.js'
import { type Mutant, openMutant } from './mutants/mutant.js'

/**
 * Which checks catch which mutant: those that must, not all that do. `HAREL_RECORD_MUTANTS=1 vitest run test/mutants`
 * writes this file anew, out of what has caught each mutant twice in a row.
 */
const RECORDED = new URL('mutants/caught-by.json', import.meta.url)
const recording = process.env.HAREL_RECORD_MUTANTS === '1'

/** Always the same sequences, so that a mutant is caught or not. */
const MODEL: ModelOptions = { seed: 1, runs: 60, milliseconds: 20_000 }

const checks = contracts.flatMap((contract) =>
  contract.checks.map((check) => ({ name: `${contract.name}: ${check.title}`, contract, check })),
)

/** Whether the check fails on a fresh database of the mutant. */
async function catches(mutant: Mutant, contract: Contract, check: Check): Promise<boolean> {
  const { capabilities, open, probes } = openMutant(mutant)
  const facts = { capabilities, probes: probes('harel'), canOpen: true, synchronous: false }
  const handle = async (options = {}) => open({ prefix: 'harel', ...options })
  if (reasonToSkip(check, facts) !== undefined) return false
  const store = await handle({ traceMax: 4 })
  const context = {
    ...facts,
    store,
    original: store,
    prefix: 'harel',
    ns: 'ns-',
    traceMax: 4,
    open: handle,
    model: MODEL,
  }
  try {
    await runCheck(contract, check, context)
    return false
  } catch (error) {
    expect(error).toBeInstanceOf(AssertionError)
    return true
  }
}

const recorded: Record<string, string[]> = recording ? {} : JSON.parse(readFileSync(RECORDED, 'utf8'))

describe.skipIf(recording)('the contracts catch a store that', () => {
  for (const mutant of mutants) {
    test(mutant.name, async () => {
      const names = recorded[mutant.name] ?? []
      expect(names, 'no check catches it').not.toEqual([])
      for (const name of names) {
        const found = checks.find((check) => check.name === name)
        expect(found, `there is no check "${name}"`).toBeDefined()
        if (found !== undefined) expect(await catches(mutant, found.contract, found.check), name).toBe(true)
      }
    })
  }
})

/** Whether a check is caught or not depends on the seed, unless the mutant is wrong at every turn. */
const isRandom = (name: string): boolean => name.startsWith('model:')

/**
 * For each mutant the three checks that catch the fewest others, and then for each check that is left the mutant that
 * the fewest others catch; for random ones that which the most do.
 */
function choose(caught: ReadonlyMap<string, readonly string[]>): Record<string, string[]> {
  const names = [...caught.values()].flat()
  const frequency = new Map(checks.map(({ name }) => [name, names.filter((other) => other === name).length]))
  const byFrequency = (a: string, b: string) => (frequency.get(a) ?? 0) - (frequency.get(b) ?? 0)
  const chosen = new Map<string, Set<string>>()
  for (const [mutant, by] of caught) {
    chosen.set(
      mutant,
      new Set(
        by
          .filter((name) => !isRandom(name))
          .sort(byFrequency)
          .slice(0, 3),
      ),
    )
  }
  const covered = new Set([...chosen.values()].flatMap((by) => [...by]))
  for (const { name } of checks) {
    if (covered.has(name)) continue
    const fitting = [...caught].filter(([, by]) => by.includes(name)).sort(([, a], [, b]) => a.length - b.length)
    const [mutant] = (isRandom(name) ? fitting.at(-1) : fitting[0]) ?? []
    if (mutant !== undefined) chosen.get(mutant)?.add(name)
  }
  return Object.fromEntries([...chosen].map(([mutant, by]) => [mutant, [...by].sort()]))
}

test.skipIf(recording)('every check catches a wrong store (weakness 57)', () => {
  const caught = new Set(Object.values(recorded).flat())
  expect(checks.map(({ name }) => name).filter((name) => !caught.has(name))).toEqual([])
})

test.runIf(recording)(
  'which checks catch which mutant is recorded [skipped unless HAREL_RECORD_MUTANTS=1]',
  { timeout: 3_600_000 },
  async () => {
    const caught = new Map<string, string[]>()
    for (const mutant of mutants) {
      const by: string[] = []
      for (const { name, contract, check } of checks) {
        if ((await catches(mutant, contract, check)) && (await catches(mutant, contract, check))) by.push(name)
      }
      caught.set(mutant.name, by)
    }
    writeFileSync(RECORDED, `${JSON.stringify(choose(caught), null, 2)}\n`)
  },
)
