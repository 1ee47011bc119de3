import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { measureInTurns, percentile, type Timing, timesLonger } from '../src/measure.ts'
import { compare, type Result, table } from '../src/report.ts'

const timing = (rounds: number[]): Timing => ({ rounds, opsPerSecond: 0, p50Ms: 0, p99Ms: 0, cpuMs: 0 })

test('a percentile is a value that was measured', () => {
  const values = Array.from({ length: 200 }, (_, i) => 200 - i)
  expect(percentile(values, 0.5)).toBe(100)
  expect(percentile(values, 0.99)).toBe(198)
  expect(percentile([7], 0.99)).toBe(7)
})

test('a ratio compares turns of the same round, so a machine that slows down does not change it', () => {
  expect(timesLonger(timing([2, 40, 60]), timing([1, 20, 10]))).toBe(2)
})

test('operations are measured in turns, and with as many under way as wanted', async () => {
  const order: string[] = []
  let underWay = 0
  let most = 0
  const timings = await measureInTurns(
    {
      a: { run: () => order.push('a') },
      b: {
        run: async () => {
          order.push('b')
          most = Math.max(most, ++underWay)
          await new Promise(setImmediate)
          underWay--
        },
        concurrency: 5,
      },
    },
    { seconds: 0.02, turnMs: 5 },
  )
  const turns = order.filter((name, index) => name !== order[index - 1])
  expect(turns.join('')).toBe('abababa'.slice(0, turns.length))
  expect(turns.length).toBeGreaterThanOrEqual(5)
  expect(most).toBe(5)
  expect(timings.a.rounds).toHaveLength(4)
  expect(timings.b.p50Ms).toBeGreaterThan(0)
})

test('a missed target is told in the table', () => {
  const measured = { opsPerSecond: 1234.5, p50Ms: 0.5, p99Ms: 1, cpuMs: 0.25 }
  const comparisons = [compare(1.31, '× the time by hand', { max: 1.3 }), compare(5, '× the speed', { min: 5 })]
  const result: Result = { backend: 'x', workload: 'w', variant: 'v', concurrency: 1, ...measured, comparisons }
  const [, first, second] = table([result]).split('\n')
  expect(first).toMatch(/^x w +v +1 +1,235 +0\.500 +1\.000 +0\.250 +1\.31 × the time by hand +≤ 1\.3 +OVER$/)
  expect(second).toMatch(/^ +5\.00 × the speed +≥ 5 +ok$/)
})

describe('the program', () => {
  let folder: string
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'bench-test-'))
  })
  afterEach(() => rmSync(folder, { recursive: true }))

  const run = (...args: string[]) =>
    spawnSync(process.execPath, [join(import.meta.dirname, '../src/main.ts'), '--dir', folder, ...args], {
      encoding: 'utf8',
      env: { ...process.env, INIT_CWD: folder },
    })

  const measured = (...args: string[]): { stdout: string; results: Result[]; judged: string[] } => {
    const { status, stdout, stderr } = run('--seconds', '0.02', '--json', 'bench.json', ...args)
    expect(stderr).not.toMatch(/error/i)
    expect(status).toBe(0)
    const results = JSON.parse(readFileSync(join(folder, 'bench.json'), 'utf8')) as Result[]
    for (const { opsPerSecond, p50Ms, p99Ms } of results) {
      expect(opsPerSecond).toBeGreaterThan(0)
      expect(p50Ms).toBeGreaterThan(0)
      expect(p99Ms).toBeGreaterThanOrEqual(p50Ms)
    }
    const judged = results.filter(({ comparisons }) => comparisons.length > 0)
    return { stdout, results, judged: judged.map(({ workload, variant }) => `${workload}: ${variant}`) }
  }

  test('measures SQLite on durable databases, writes it as JSON and leaves no files', () => {
    const { stdout, judged } = measured('--backend', 'codec', '--backend', 'sqlite', '--rows', '3000')
    expect(stdout).toContain('synchronous FULL')
    expect(judged).toEqual([
      'encode and decode, 2 kB: codec',
      'commit, 600 B: SqliteStore',
      'commit, 600 B: AsyncSqliteStore alone',
      'commit, 600 B: AsyncSqliteStore',
      'commit, 600 B, 3000 stored: SqliteStore',
      ...['all', 'one status', 'rare status', 'three statuses', 'definition', 'roots'].map((filter) =>
        expect.stringMatching(`list ${filter}, 3000 stored: page \\d+`),
      ),
      expect.stringMatching(/list status of a definition, 3000 stored: page \d+/),
      expect.stringMatching(/list statuses of root orders, 3000 stored: page \d+/),
    ])
    expect(readdirSync(folder)).toEqual(['bench.json'])
  }, 120_000)

  test.each([
    { backend: 'libsql', store: 'LibsqlStore', durable: 'journal WAL, synchronous FULL' },
    { backend: 'rqlite', store: 'RqliteStore', durable: 'each write synced in its Raft log' },
    { backend: 'postgres', store: 'PostgresStore', durable: 'fsync on, synchronous_commit on' },
    { backend: 'redis', store: 'RedisStore', durable: 'appendonly yes, appendfsync always' },
  ])(
    'measures $backend at each concurrency',
    ({ backend, store, durable }) => {
      const { stdout, results, judged } = measured('--only', `${backend}-commit`, '--concurrency', '1,256')
      expect(stdout).toContain(durable)
      const ours = results.filter(({ variant }) => variant === store)
      expect(ours.map(({ concurrency }) => concurrency)).toEqual([1, 256])
      expect(judged).toEqual([`commit, 600 B: ${store}`, `commit, 600 B: ${store}`])
    },
    600_000,
  )

  test('measures the runner on SQLite, beside what is written by hand', () => {
    const { results, judged } = measured('--only', 'runner-sqlite', '--concurrency', '1,16')
    expect(judged).toEqual(['event: DurableRunner', 'event: DurableRunner'])
    expect(results.map(({ workload }) => workload)).toContain('parent and child')
    expect(readdirSync(folder)).toEqual(['bench.json'])
  }, 120_000)

  test.each([
    { args: ['--backend', 'sqlite', '--only', 'nothing'], there: 'sqlite-commit' },
    {
      args: ['--backend', 'nothing'],
      there: 'codec, sqlite, libsql, rqlite, dynamodb, postgres, redis, runner, mongo',
    },
  ])(
    'refuses what does not exist, and says what does: $args',
    ({ args, there }) => {
      const { status, stderr } = run(...args)
      expect(status).toBe(2)
      expect(stderr).toContain(there)
    },
    60_000,
  )
})
