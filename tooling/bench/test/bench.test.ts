import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { measureInTurns, percentile, type Timing, timesLonger } from '../src/measure.ts'
import { table } from '../src/report/table.ts'
import { compare } from '../src/results.ts'

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
  // Each is warmed up first; whoever ends a round begins the next one.
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
  const ratios = { ratioToDriver: 1.31, ratioToBestPeer: null, roundTrips: 1 }
  const what = { backend: 'x', workload: 'w', variant: 'v', role: 'store', concurrency: 1 } as const
  const [, first, second] = table([{ ...what, ...measured, ...ratios, comparisons }]).split('\n')
  expect(first).toMatch(
    /^x w +v +1 +1,235 +0\.500 +1\.000 +1\.31 +0\.250 +1\.00 +1\.31 × the time by hand +≤ 1\.3 +OVER$/,
  )
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

  type Entry = Record<'opsPerSecond' | 'p50Ms' | 'p99Ms' | 'concurrency', number> &
    Record<'ratioToDriver' | 'ratioToBestPeer', number | null> &
    Record<'backend' | 'workload' | 'variant', string>

  const measured = (...args: string[]): { stdout: string; results: Entry[] } => {
    const { status, stdout, stderr } = run('--seconds', '0.02', '--json', 'bench.json', ...args)
    expect(stderr).not.toMatch(/error/i)
    expect(status).toBe(0)
    const results = JSON.parse(readFileSync(join(folder, 'bench.json'), 'utf8')) as Entry[]
    for (const { opsPerSecond, p50Ms, p99Ms } of results) {
      expect(opsPerSecond).toBeGreaterThan(0)
      expect(p50Ms).toBeGreaterThan(0)
      expect(p99Ms).toBeGreaterThanOrEqual(p50Ms)
    }
    return { stdout, results }
  }

  const namesOf = (results: Entry[]) => results.map(({ workload, variant }) => `${workload}: ${variant}`)

  test('measures every workload on durable SQLite files beside the driver by hand, and leaves no files', () => {
    const workloads = [
      'state',
      'commit',
      'full',
      'load',
      'load-for-event',
      'relay',
      'timers',
      'list-first',
      'list-deep',
    ]
    const { stdout, results } = measured('--backend', 'sqlite', '--workload', workloads.join(), '--concurrency', '1')
    expect(stdout).toContain('synchronous FULL')
    const judged = results.filter(({ ratioToDriver }) => ratioToDriver !== null)
    expect(namesOf(judged)).toEqual(workloads.flatMap((name) => [`${name}: SqliteStore`, `${name}: AsyncSqliteStore`]))
    const beside = results.filter(({ ratioToBestPeer }) => ratioToBestPeer !== null)
    expect(new Set(beside.map(({ workload }) => workload))).toEqual(new Set(['state', 'commit', 'full']))
    expect(readdirSync(folder)).toEqual(['bench.json'])
  }, 120_000)

  test('writes exactly what the results are as JSON', () => {
    const { results } = measured('--backend', 'codec')
    const members = ['backend', 'workload', 'concurrency', 'variant', 'opsPerSecond', 'p50Ms', 'p99Ms']
    for (const result of results) expect(Object.keys(result)).toEqual([...members, 'ratioToDriver', 'ratioToBestPeer'])
  }, 120_000)

  test('profiles commits of the store and by hand, and writes whose code they are into the page', () => {
    writeFileSync(join(folder, 'page.md'), '<!-- profile-redis -->\n<!-- /profile-redis -->\n')
    const { stdout, results } = measured('--only', 'redis-profile', '--report', 'page')
    expect(results.map(({ variant, concurrency }) => `${variant} ${concurrency}`)).toEqual(
      [1, 256].flatMap((atOnce) => [`RedisStore ${atOnce}`, `bare scripts ${atOnce}`]),
    )
    const page = readFileSync(join(folder, 'page.md'), 'utf8')
    const rows = page.split('\n').filter((line) => line.startsWith('| redis |'))
    expect(rows).toHaveLength(4)
    for (const row of rows) {
      const [code, driver, node, , all, ownSpace, space, trips, sent, received] = row
        .split('|')
        .slice(4)
        .map((cell) => Number(cell.replaceAll(',', '')))
      expect(Math.min(code ?? 0, driver ?? 0, node ?? 0, ownSpace ?? 0, trips ?? 0, received ?? 0)).toBeGreaterThan(0)
      expect(all).toBeGreaterThan(Math.max(code ?? 0, driver ?? 0, node ?? 0))
      expect(space).toBeGreaterThan(ownSpace ?? 0)
      // The payload alone has 600 bytes.
      expect(sent).toBeGreaterThan(600)
    }
    expect(stdout).toMatch(/^redis +RedisStore +256 /m)
  }, 120_000)

  test('draws what was measured into one file', () => {
    const { results } = measured(
      ...['--backend', 'sqlite', '--workload', 'load,growth', '--rows', '1000', '--concurrency', '1,16'],
      ...['--chart', 'run.svg'],
    )
    const drawn = readFileSync(join(folder, 'run.svg'), 'utf8')
    expect(drawn).not.toMatch(/NaN|undefined|Infinity/)
    const loads = results.filter(({ workload }) => workload === 'load')
    expect(drawn.match(/<rect /g)).toHaveLength(loads.length)
    for (const { variant } of loads) expect(drawn).toContain(`>${variant}</text>`)
    for (const title of ['load, one by one', 'load, 16 at once', 'list-deep, by hand']) {
      expect(drawn).toContain(`>${title}</text>`)
    }
    expect(readdirSync(folder).sort()).toEqual(['bench.json', 'run.svg'])
  }, 120_000)

  test('measures listings of SQLite with every kind of filter', () => {
    const { results } = measured('--only', 'sqlite-listings', '--rows', '3000')
    expect(new Set(results.map(({ workload }) => workload)).size).toBe(8)
    expect(readdirSync(folder)).toEqual(['bench.json'])
  }, 120_000)

  test('measures growth and memory, and writes the figures into a page that is otherwise left alone', () => {
    const blocks = (content: string) =>
      ['machine', 'growth-sqlite', 'targets', 'redis'].map((name) => `<!-- ${name} -->${content}<!-- /${name} -->\n`)
    writeFileSync(join(folder, 'page.md'), `# Title\n${blocks('\nold\n').join('between\n')}end\n`)
    const { results } = measured(
      ...['--backend', 'sqlite', '--workload', 'growth,memory', '--rows', '1000', '--report', 'page'],
    )
    expect(new Set(results.map(({ workload }) => workload))).toEqual(
      new Set([
        ...['commit', 'page', 'relay', 'timers', 'list-deep'].map((name) => `${name}, 1000 stored`),
        ...['list all of 1000', 'relay all of 1000'],
      ]),
    )
    const page = readFileSync(join(folder, 'page.md'), 'utf8')
    expect(page.replace(/(<!-- (\S+) -->)[\s\S]*?(<!-- \/\2 -->)/g, '$1$3')).toBe(
      `# Title\n${blocks('').join('between\n')}end\n`,
    )
    expect(page).toContain('synchronous FULL')
    expect(page).toMatch(/\| relay, 1000 stored \| SqliteStore \| 1 \|/)
    expect(page).toMatch(
      /\| sqlite relay all of 1000 \| AsyncSqliteStore \| 1 \| \S+ MiB more of heap \| ≤ 16 \| ok \|/,
    )
    expect(page.match(/old/g)).toHaveLength(1)
    const chart = readFileSync(join(folder, 'page', 'growth-sqlite.svg'), 'utf8')
    expect(chart.match(/<polyline /g)).toHaveLength(12)
    expect(chart).not.toContain('NaN')
    expect(readdirSync(folder).sort()).toEqual(['bench.json', 'page', 'page.md'])
  }, 120_000)

  test('measures each size of payload that is asked for', () => {
    const { results } = measured('--only', 'libsql-load', '--payload', '600,20000', '--concurrency', '1')
    expect(new Set(results.map(({ workload }) => workload))).toEqual(new Set(['load', 'load 20 kB', 'load-for-event']))
  }, 120_000)

  test.each([
    { backend: 'libsql', store: 'LibsqlStore', durable: 'journal WAL, synchronous FULL' },
    { backend: 'rqlite', store: 'RqliteStore', durable: 'each write synced in its Raft log' },
    { backend: 'postgres', store: 'PostgresStore', durable: 'fsync on, synchronous_commit on' },
    { backend: 'redis', store: 'RedisStore', durable: 'appendonly yes, appendfsync always' },
    { backend: 'mongo', store: 'MongoStore', durable: 'writes wait for a majority and the journal' },
    { backend: 'dynamodb', store: 'DynamoStore', durable: 'which is not AWS' },
  ])(
    'measures $backend at each concurrency, beside the driver by hand',
    ({ backend, store, durable }) => {
      const { stdout, results } = measured('--only', `${backend}-load`, '--concurrency', '1,16')
      expect(stdout).toContain(durable)
      const ours = results.filter(({ variant, workload }) => variant === store && workload === 'load')
      expect(ours.map(({ concurrency }) => concurrency)).toEqual([1, 16])
      for (const { ratioToDriver } of ours) expect(ratioToDriver).toBeGreaterThan(0)
    },
    600_000,
  )

  test('measures the runner on SQLite, beside what is written by hand', () => {
    const { stdout, results } = measured('--only', 'sqlite-runner', '--concurrency', '1,16')
    expect(stdout).toContain('× the time of load, transition, commit')
    expect(results.map(({ workload }) => workload)).toContain('parent and child')
    expect(readdirSync(folder)).toEqual(['bench.json'])
  }, 120_000)

  test.each([
    { args: ['--backend', 'sqlite', '--only', 'nothing'], there: 'sqlite-commit' },
    {
      args: ['--backend', 'nothing'],
      there: 'codec, sqlite, libsql, rqlite, dynamodb, postgres, redis, mongo',
    },
  ])(
    'refuses what does not exist, and says what does: $args',
    ({ args, there }) => {
      const { status, stderr } = run(...args)
      expect(status).toBe(2)
      expect(stderr).toContain(there)
    },
    120_000,
  )
})
