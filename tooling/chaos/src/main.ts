import { writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { isWhole, type Outcome, type Scenario, scenarios } from '@harel/store-testing/faults'
import type { Place } from './backend.ts'
import { backends } from './backends/index.ts'
import { add, none, type Run, table } from './figures.ts'
import { killedRunners } from './killed-runners.ts'
import { HELP, readArguments, type Settings } from './settings.ts'

/** How often a scenario that takes its time says how far it is, in milliseconds. */
const PROGRESS_EVERY = 10_000

/** Something was lost or doubled, or a call has failed in a way that it must not. */
class Broken extends Error {}

const scenariosOn = (backend: string): Scenario[] => [...scenarios, killedRunners(backend)]

/** @throws Error when a name is unknown */
function chosen(settings: Settings): string[] {
  const names = settings.backend.length === 0 ? Object.keys(backends) : [...settings.backend]
  for (const name of names) if (!(name in backends)) throw new Error(`there is no backend '${name}'`)
  const known = scenariosOn('').map(({ name }) => name)
  for (const name of settings.scenario) if (!known.includes(name)) throw new Error(`there is no scenario '${name}'`)
  return names
}

/** Plays scenario after scenario until the time is over; each at least once. */
async function torment(name: string, { under }: Place, settings: Settings) {
  const isChosen = (scenario: Scenario) => settings.scenario.length === 0 || settings.scenario.includes(scenario.name)
  const played = scenariosOn(name).filter(isChosen)
  const reasons = new Map(played.map((scenario) => [scenario, scenario.reasonToSkip(under)]))
  const possible = played.filter((scenario) => reasons.get(scenario) === undefined)
  for (const [scenario, reason] of reasons) if (reason !== undefined) console.log(`  no ${scenario.name}: ${reason}`)
  const figures = new Map(possible.map((scenario) => [scenario, none(scenario.name)]))
  const end = performance.now() + settings.minutes * 60_000
  for (let seed = settings.seed; seed === settings.seed || performance.now() < end; seed++) {
    for (const [scenario, sum] of figures) {
      if (seed > settings.seed && performance.now() >= end) break
      const start = performance.now()
      const outcome = await play(name, scenario, under, { ...settings, seed })
      const seconds = (performance.now() - start) / 1000
      add(sum, outcome, seconds)
      console.log(
        `  ${scenario.name}, seed ${seed}: ${outcome.commits} commits, ${outcome.faults} faults, ${seconds.toFixed(1)} s`,
      )
    }
  }
  return [...figures.values()]
}

/** @throws Broken with what is wrong and how to see it again */
async function play(
  name: string,
  scenario: Scenario,
  under: Place['under'],
  { seed, scale }: Settings,
): Promise<Outcome> {
  const again = `npm run chaos -- --backend ${name} --seed ${seed} --scale ${scale} --scenario ${scenario.name}`
  let commits = 0
  const progress = (acknowledged: number) => {
    commits = acknowledged
  }
  const say = () => console.log(`  ${scenario.name}, seed ${seed}: ${commits} commits so far`)
  const ticker = setInterval(say, PROGRESS_EVERY)
  let outcome: Outcome
  try {
    outcome = await scenario.run({ under, seed, scale, progress })
  } catch (cause) {
    throw new Broken(`${scenario.title}\nagain: ${again}`, { cause })
  } finally {
    clearInterval(ticker)
  }
  if (isWhole(outcome)) return outcome
  const { lost, doubled, breaches } = outcome
  throw new Broken(`${scenario.title}\n${JSON.stringify({ lost, doubled, breaches }, null, 2)}\nagain: ${again}`)
}

async function main(): Promise<void> {
  const settings = readArguments(process.argv.slice(2))
  if (settings.help) return console.log(HELP)
  const names = chosen(settings)
  if (settings.list)
    return console.log([...names, ...scenariosOn('').map(({ name, title }) => `${name}: ${title}`)].join('\n'))
  console.log(`seed ${settings.seed}`)
  const { seed, scale, minutes } = settings
  const machine = `${availableParallelism()} cores, Node ${process.versions.node}`
  const runs: Run[] = []
  for (const name of names) {
    const start = await backends[name]?.()
    if (start === undefined) continue
    await using place = await start()
    console.log(`${name}: ${place.describe()}`)
    const date = new Date().toISOString().slice(0, 10)
    const figures = await torment(name, place, settings)
    runs.push({ backend: name, database: place.describe(), machine, date, minutes, seed, scale, figures })
  }
  console.log(`\n${table(runs)}`)
  if (settings.json !== undefined) writeFileSync(settings.json, `${JSON.stringify(runs, null, 2)}\n`)
}

try {
  await main()
} catch (error) {
  console.error(error instanceof Broken ? error : error instanceof Error ? error.message : error)
  process.exitCode = error instanceof Broken ? 1 : 2
}
