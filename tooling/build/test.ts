// Runs test tasks in all packages and ends with one line that sums them up:
// node test.ts TASK... [OPTION of turbo]... [-- [ARGUMENT of vitest]...]
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Outcome } from './reporter.ts'

const options = process.argv.slice(2)
const separator = options.indexOf('--')
const vitestArguments = separator < 0 ? [] : options.splice(separator).slice(1)
const firstOption = options.findIndex((option) => option.startsWith('-'))
const tasks = options.splice(0, firstOption < 0 ? options.length : firstOption)

const folder = mkdtempSync(join(tmpdir(), 'harel-test-'))
const results = join(folder, 'results.jsonl')
writeFileSync(results, '')
const env = { ...process.env, HAREL_TEST_RESULTS: results }

const turbo = (...args: string[]): boolean =>
  spawnSync('turbo', ['run', ...args], { stdio: 'inherit', env }).status === 0

// Two runs: arguments behind `--` would become part of the key under which turbo keeps a build.
const reporters = ['--reporter=default', `--reporter=${join(import.meta.dirname, 'reporter.ts')}`]
const succeeded =
  turbo('build', ...options) &&
  turbo(...tasks, '--only', '--continue', ...options, '--', '--passWithNoTests', ...reporters, ...vitestArguments)

const outcomes: Outcome[] = readFileSync(results, 'utf8')
  .split('\n')
  .filter((line) => line !== '')
  .map((line) => JSON.parse(line))
rmSync(folder, { recursive: true })

for (const failure of outcomes.flatMap(({ failures }) => failures)) console.log(`FAILED ${failure}`)
const sum = (key: 'passed' | 'failed' | 'skipped'): number =>
  outcomes.reduce((total, outcome) => total + outcome[key], 0)
const skipped = sum('skipped')
// A package that did not get as far as its tests has failed too.
const failed = Math.max(sum('failed'), succeeded ? 0 : 1)
console.log(`${sum('passed')} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`)
process.exitCode = failed > 0 ? 1 : 0
