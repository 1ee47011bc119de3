import { writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { inspect } from 'node:util'
import { isWhole, type Outcome, type Scenario, scenarios } from '@harel/store-testing/faults'
import type { Backends, Place } from './backend.ts'
import { add, type Figures, none, type Run, table } from './figures.ts'
import { killedRunners } from './killed-runners.ts'
import { HELP, readArguments, type Settings } from './settings.ts'

/** How often a scenario that takes its time says how far it is, in milliseconds. */
const PROGRESS_EVERY = 10_000

const scenariosOn = (backend: string): Scenario[] => [...scenarios, killedRunners(backend)]

/** The names that were chosen: all where none was. @throws Error when one is unknown */
function chosen(kind: string, names: readonly string[], known: readonly string[]): readonly string[] {
  for (const name of names) {
    if (!known.includes(name)) throw new Error(`there is no ${kind} '${name}'; there are ${known.join(', ')}`)
  }
  return names.length === 0 ? known : names
}

/** What became of a round. */
interface Played {
  /** Absent when a call has failed in a way that it must not. */
  outcome?: Outcome
  /** What was lost or doubled, or has failed, and how to see it again. */
  wrong?: string
}

/**
 * Plays scenario after scenario until the time is over, each at least once, or until one of them ends badly.
 *
 * @param figures are kept up to date, the round that ends badly included
 * @returns whether all went well
 */
async function torment(name: string, { under }: Place, settings: Settings, figures: Figures[]): Promise<boolean> {
  const possible = scenariosOn(name).filter((scenario) => {
    if (!settings.scenario.includes(scenario.name)) return false
    const reason = scenario.reasonToSkip(under)
    if (reason !== undefined) console.log(`  no ${scenario.name}: ${reason}`)
    return reason === undefined
  })
  const sums = new Map(possible.map((scenario) => [scenario, none(scenario.name)]))
  figures.push(...sums.values())
  const end = performance.now() + settings.minutes * 60_000
  for (let seed = settings.seed; seed === settings.seed || performance.now() < end; seed++) {
    for (const [scenario, sum] of sums) {
      if (seed > settings.seed && performance.now() >= end) break
      const start = performance.now()
      const { outcome, wrong } = await play(name, scenario, under, { ...settings, seed })
      const seconds = (performance.now() - start) / 1000
      if (outcome !== undefined) {
        add(sum, outcome, seconds)
        const { commits, faults } = outcome
        console.log(`  ${scenario.name}, seed ${seed}: ${commits} commits, ${faults} faults, ${seconds.toFixed(1)} s`)
      }
      if (wrong === undefined) continue
      console.error(wrong)
      return false
    }
  }
  return true
}

async function play(
  name: string,
  scenario: Scenario,
  under: Place['under'],
  { seed, scale }: Settings,
): Promise<Played> {
  const wrong = (what: unknown) =>
    `${scenario.title}\n${inspect(what, { depth: 5 })}\nagain: npm run chaos -- --backend ${name} --seed ${seed} --scale ${scale} --scenario ${scenario.name}`
  let commits = 0
  const progress = (acknowledged: number) => {
    commits = acknowledged
  }
  const say = () => console.log(`  ${scenario.name}, seed ${seed}: ${commits} commits so far`)
  const ticker = setInterval(say, PROGRESS_EVERY)
  try {
    const outcome = await scenario.run({ under, seed, scale, progress })
    const { lost, doubled, breaches } = outcome
    return { outcome, ...(!isWhole(outcome) && { wrong: wrong({ lost, doubled, breaches }) }) }
  } catch (error) {
    return { wrong: wrong(error) }
  } finally {
    clearInterval(ticker)
  }
}

/** @returns whether all went well */
async function playAll(settings: Settings, backends: Backends): Promise<boolean> {
  console.log(`seed ${settings.seed}`)
  const { seed, scale, minutes, json } = settings
  const machine = `${availableParallelism()} cores, Node ${process.versions.node}`
  const runs: Run[] = []
  try {
    for (const name of settings.backend) {
      const start = await backends[name]?.()
      if (start === undefined) continue
      await using place = await start()
      console.log(`${name}: ${place.describe()}`)
      const date = new Date().toISOString().slice(0, 10)
      const figures: Figures[] = []
      runs.push({ backend: name, database: place.describe(), machine, date, minutes, seed, scale, figures })
      if (!(await torment(name, place, settings, figures))) return false
    }
    return true
  } finally {
    console.log(`\n${table(runs)}`)
    if (json !== undefined) writeFileSync(json, `${JSON.stringify(runs, null, 2)}\n`)
  }
}

/**
 * Does what the arguments of the command line say, and prints what comes of it.
 *
 * @returns the exit code: 1 when a round has ended badly, 2 when an argument is wrong or no database can be had
 */
export async function chaos(args: readonly string[], backends: Backends): Promise<0 | 1 | 2> {
  try {
    const { help, list, ...given } = readArguments(args)
    if (help) {
      console.log(HELP)
      return 0
    }
    const known = scenariosOn('')
    const backend = chosen('backend', given.backend, Object.keys(backends))
    const names = known.map(({ name }) => name)
    const settings = { ...given, backend, scenario: chosen('scenario', given.scenario, names) }
    if (list) {
      console.log([...backend, ...known.map(({ name, title }) => `${name}: ${title}`)].join('\n'))
      return 0
    }
    return (await playAll(settings, backends)) ? 0 : 1
  } catch (error) {
    console.error(error instanceof Error ? error.message : error)
    return 2
  }
}
