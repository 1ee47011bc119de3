// Runs test tasks in all packages and ends with one line that sums them up: node test.ts TASK... [--FILTER...] [-- ARGUMENT...]
// Options go to turbo, arguments behind `--` to vitest.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Outcome } from './reporter.ts'

const [turboArguments, vitestArguments] = [process.argv.slice(2), [] as string[]]
const separator = turboArguments.indexOf('--')
if (separator >= 0) vitestArguments.push(...turboArguments.splice(separator).slice(1))

const folder = mkdtempSync(join(tmpdir(), 'harel-test-'))
const results = join(folder, 'results.jsonl')
writeFileSync(results, '')

const reporters = ['--reporter=default', `--reporter=${join(import.meta.dirname, 'reporter.ts')}`]
const { status } = spawnSync(
  'turbo',
  [
    'run',
    ...turboArguments,
    '--continue=dependencies-successful',
    '--',
    '--passWithNoTests',
    ...reporters,
    ...vitestArguments,
  ],
  { stdio: 'inherit', env: { ...process.env, HAREL_TEST_RESULTS: results } },
)

const outcomes: Outcome[] = readFileSync(results, 'utf8')
  .split('\n')
  .filter((line) => line !== '')
  .map((line) => JSON.parse(line))
rmSync(folder, { recursive: true })

const sum = (key: keyof Outcome): number => outcomes.reduce((total, outcome) => total + outcome[key], 0)
const skipped = sum('skipped')
// A package that did not get as far as its tests has failed too.
const failed = Math.max(sum('failed'), status === 0 ? 0 : 1)
console.log(`${sum('passed')} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`)
process.exitCode = failed > 0 ? 1 : 0
