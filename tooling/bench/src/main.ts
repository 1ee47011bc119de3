import { writeFileSync } from 'node:fs'
import { sqlite } from './backends/sqlite.ts'
import { codec } from './codec.ts'
import { describeMachine } from './machine.ts'
import { missed, type Result, table } from './report.ts'
import { HELP, type Measure, readArguments, type Settings } from './settings.ts'

const BACKENDS = [codec, sqlite]

const isChosen = ({ name }: Measure, { only }: Settings): boolean =>
  only.length === 0 || only.some((wanted) => name.startsWith(wanted))

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
  const measures = BACKENDS.flatMap((backend) => backend.measures)
  if (settings.help || settings.list) {
    console.log(settings.help ? HELP : measures.map(({ name }) => name).join('\n'))
    return
  }
  const chosen = measures.filter((measure) => isChosen(measure, settings))
  if (chosen.length === 0)
    throw new Error(`nothing is called so; there is ${measures.map(({ name }) => name).join(', ')}`)

  console.log(describeMachine(settings.dir).join('\n'))
  for (const backend of BACKENDS) for (const line of await backend.describe(settings.dir)) console.log(line)
  const results: Result[] = []
  for (const measure of chosen) {
    const progress = progressOf(measure.name)
    results.push(...(await measure.run(settings, progress.part)))
    progress.done()
  }
  console.log(`\n${table(results)}`)
  if (settings.json !== undefined) writeFileSync(settings.json, `${JSON.stringify(results, null, 2)}\n`)
  if (settings.check && missed(results) > 0) process.exitCode = 1
}

try {
  await main()
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 2
}
