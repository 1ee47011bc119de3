import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { AsyncSqliteStore } from '@harel/store-sqlite'
import { scenarios } from '@harel/store-testing/faults'
import { afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { onFile } from '../src/backend.ts'
import { backends } from '../src/backends/index.ts'
import { chaos } from '../src/chaos.ts'
import type { Run } from '../src/figures.ts'
import { readArguments } from '../src/settings.ts'

const LOSING = join(import.meta.dirname, 'programs/losing.ts')

const run = (program: string, args: readonly string[]) => {
  const { status, stdout, stderr } = spawnSync(process.execPath, [program, ...args], { encoding: 'utf8' })
  return { code: status, said: stdout, complained: stderr }
}

const main = (...args: string[]) => run(join(import.meta.dirname, '../src/main.ts'), args)

const SHORT = ['--scale', '0.01', '--minutes', '0.0001']

afterEach(() => {
  vi.restoreAllMocks()
})

/** What the rounds of a seed do, as the stores see it: which executions each of them writes to, in its order. */
async function planOf(seed: number): Promise<string[][]> {
  const plan: string[][] = []
  const start = onFile(async ({ address = '', ...options }) => {
    const written: string[] = []
    plan.push(written)
    const store = await AsyncSqliteStore.open(address, options)
    const commit = store.commit.bind(store)
    store.commit = async (execution, changes) => {
      const seqs = await commit(execution, changes)
      written.push(execution.id.replace(/^faults-\d+-/, ''))
      return seqs
    }
    return store
  })
  const args = [
    '--backend',
    'noted',
    '--scenario',
    'opening',
    '--seed',
    `${seed}`,
    '--scale',
    '0.1',
    '--minutes',
    '0.0001',
  ]
  expect(await chaos(args, { noted: async () => start })).toBe(0)
  return plan
}

describe('a seed', () => {
  test('gives the same plan each time, and another seed another one', { timeout: 60_000 }, async () => {
    vi.spyOn(console, 'log').mockReturnValue()
    const plan = await planOf(7)
    expect(plan.flat()).toHaveLength(100)
    expect(await planOf(7)).toEqual(plan)
    expect(await planOf(8)).not.toEqual(plan)
  })

  test('is said before anything is done, also one that was drawn', { timeout: 60_000 }, () => {
    const { code, said } = main('--backend', 'sqlite', '--scenario', 'storm', ...SHORT)
    expect(code).toBe(0)
    const [, seed] = /^seed (\d+)\n/.exec(said) ?? []
    expect(said).toContain(`storm, seed ${seed}: 20 commits`)
  })
})

describe('a round that has lost something', { timeout: 120_000 }, () => {
  let round: ReturnType<typeof run>
  let runs: Run[]

  beforeAll(() => {
    const folder = mkdtempSync(join(tmpdir(), 'harel-chaos-test-'))
    const json = join(folder, 'figures.json')
    const what = ['--backend', 'losing,sqlite', '--scenario', 'storm', '--seed', '7', '--scale', '0.01']
    round = run(LOSING, [...what, '--json', json])
    runs = JSON.parse(readFileSync(json, 'utf8'))
    rmSync(folder, { recursive: true })
  }, 120_000)

  test('ends with the exit code 1, at once', () => {
    expect(round.code).toBe(1)
    expect(round.said).toContain('storm, seed 8:')
    expect(round.said).not.toMatch(/seed 9|sqlite/)
  })

  test('says what is wrong', () => {
    expect(round.complained).toContain('of many writers who storm one execution each version has one')
    expect(round.complained).toMatch(/lost: \[\s+'.*faults-8-0\.\d+.*, acknowledged'/s)
  })

  test('says with which command it is played again, and that plays it again', () => {
    const [, again = ''] = /^again: npm run chaos -- (.*)$/m.exec(round.complained) ?? []
    expect(again).toBe('--backend losing --seed 8 --scale 0.01 --scenario storm')
    const second = run(LOSING, again.split(' '))
    expect([second.code, second.said.split('\n')[0]]).toEqual([1, 'seed 8'])
    expect(second.complained).toContain(`again: npm run chaos -- ${again}\n`)
  })

  test('counts in the closing figures, with the rounds before it', () => {
    expect(round.said).toMatch(/\| losing \| storm \| 2 \| .* \| [1-9]\d* \| \d+ \|\n$/)
    expect(runs.map(({ backend, figures }) => [backend, figures.map(({ rounds }) => rounds)])).toEqual([
      ['losing', [2]],
    ])
    expect(runs[0]?.figures[0]?.lost).toBeGreaterThan(0)
  })
})

test('a call that fails as none may ends with 1, its cause, the command and the figures', async () => {
  const said = vi.spyOn(console, 'log').mockReturnValue()
  const complained = vi.spyOn(console, 'error').mockReturnValue()
  const failing = async () =>
    onFile(async ({ address = '', ...options }) => {
      const store = await AsyncSqliteStore.open(address, options)
      store.commit = async () => {
        throw new Error('ECONNRESET')
      }
      return store
    })
  expect(await chaos(['--scenario', 'storm', '--seed', '3', ...SHORT], { failing })).toBe(1)
  expect(complained.mock.lastCall?.[0]).toMatch(/ECONNRESET.*\nagain: .*--backend failing --seed 3/s)
  expect(said.mock.lastCall?.[0]).toContain('| failing | storm | 0 |')
})

describe('what there is not ends with 2 and what there is:', () => {
  test('an option', () => {
    const { code, complained } = main('--backends', 'sqlite')
    expect(code).toBe(2)
    expect(complained).toContain("'--backends'")
    for (const option of ['--backend ', '--scenario ', '--minutes ', '--seed ', '--scale ', '--json ', '--list']) {
      expect(complained).toContain(option)
    }
  })

  test.each(['oracle', 'toString', ''])("the backend '%s'", (name) => {
    const { code, said, complained } = main('--backend', `sqlite,${name}`)
    expect([code, said]).toEqual([2, ''])
    expect(complained).toBe(`there is no backend '${name}'; there are ${Object.keys(backends).join(', ')}\n`)
  })

  test.each(['1.5', '0', '-1', '', 'x', '9007199254740992'])("the seed '%s'", async (seed) => {
    const complained = vi.spyOn(console, 'error').mockReturnValue()
    expect(await chaos([`--seed=${seed}`, '--list'], {})).toBe(2)
    expect(complained).toHaveBeenLastCalledWith(`--seed must be a whole number from 1 on, not '${seed}'`)
  })

  test('a scenario', () => {
    const { code, said, complained } = main('--scenario', 'strom')
    expect([code, said]).toEqual([2, ''])
    for (const { name } of scenarios) expect(complained).toContain(name)
  })
})

test('backends and scenarios are given as a list, one by one, or both', { timeout: 60_000 }, () => {
  const args = ['--backend', 'sqlite,rqlite', '--backend', 'redis', '--scenario', 'storm,purges']
  expect(readArguments(args)).toMatchObject({ backend: ['sqlite', 'rqlite', 'redis'], scenario: ['storm', 'purges'] })

  const { code, said } = main('--backend', 'sqlite,libsql-file', '--scenario', 'opening,storm', ...SHORT)
  const rows = said.split('\n').filter((line) => line.startsWith('| sqlite |') || line.startsWith('| libsql-file |'))
  expect(code).toBe(0)
  expect(rows.map((row) => row.split(' | ').slice(0, 3).join(' '))).toEqual(
    ['sqlite', 'libsql-file'].flatMap((backend) => [`| ${backend} storm 1`, `| ${backend} opening 1`]),
  )
})
