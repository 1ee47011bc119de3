import { writeFileSync } from 'node:fs'
import { backends } from './backends/index.ts'
import { describeMachine } from './machine.ts'
import { allCharts } from './report/charts.ts'
import { svg } from './report/drawing.ts'
import { writeReport } from './report/page.ts'
import { table } from './report/table.ts'
import { missed, type Result, toJson } from './results.ts'
import { type Backend, HELP, type Measure, readArguments, type Settings } from './settings.ts'

function isChosen({ name, workload }: Measure, { only, workload: wanted }: Settings): boolean {
  if (only.length > 0 && !only.some((beginning) => name.startsWith(beginning))) return false
  if (wanted === undefined) return only.length > 0 || workload === undefined || workload === 'commit'
  return wanted.includes('all') || (workload !== undefined && wanted.includes(workload))
}

/** @throws Error when one is unknown */
function choose(names: readonly string[]): Promise<Backend[]> {
  const known = Object.keys(backends)
  const wanted = (names.length === 0 ? known : names).map((name) => {
    const load = backends[name]
    if (load === undefined) throw new Error(`there is no backend '${name}'; there are ${known.join(', ')}`)
    return load()
  })
  return Promise.all(wanted)
}

const describeSettings = ({ seconds, concurrency, payload, rows }: Settings): string =>
  `${seconds} s for each variant, ${concurrency.join(', ')} at once, payloads of ${payload.join(', ')} B, up to ${rows} stored`

/** A line that is written over while something runs; without a terminal, only what it says at the end. */
function progressOf(name: string) {
  const start = performance.now()
  const write = (text: string, end: string) => process.stderr.write(`${name.padEnd(24)} ${text}${end}`)
  let shown = -1
  return {
    part: (part: number) => {
      const percent = Math.floor(part * 100)
      if (process.stderr.isTTY && percent !== shown) write(`${percent} %   `, '\r')
      shown = percent
    },
    done: () => write(`${((performance.now() - start) / 1000).toFixed(1)} s   `, '\n'),
  }
}

async function main(): Promise<void> {
  const settings = readArguments(process.argv.slice(2))
  if (settings.help) return console.log(HELP)
  const loaded = await choose(settings.backend)
  const names = loaded.flatMap(({ measures }) => measures.map(({ name }) => name))
  if (settings.list) return console.log(names.join('\n'))
  const chosen = loaded
    .map((backend) => ({ ...backend, measures: backend.measures.filter((measure) => isChosen(measure, settings)) }))
    .filter(({ measures }) => measures.length > 0)
  if (chosen.length === 0) throw new Error(`nothing is called so; there is ${names.join(', ')}`)

  const description = [...describeMachine(settings.dir), describeSettings(settings)]
  for (const { describe } of chosen) description.push(...(await describe(settings.dir)))
  console.log(description.join('\n'))
  const results: Result[] = []
  for (const measure of chosen.flatMap(({ measures }) => measures)) {
    const progress = progressOf(measure.name)
    try {
      results.push(...(await measure.run(settings, progress.part)))
      progress.done()
    } catch (error) {
      // The others are worth having.
      console.error(`${measure.name}:`, error)
      process.exitCode = 2
    }
    if (settings.report !== undefined) writeReport(settings.report, description, results)
  }
  console.log(`\n${table(results)}`)
  if (settings.json !== undefined) writeFileSync(settings.json, toJson(results))
  if (settings.chart !== undefined) writeFileSync(settings.chart, svg(allCharts(results)))
  if (settings.check && missed(results) > 0) process.exitCode = 1
}

try {
  await main()
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 2
}
