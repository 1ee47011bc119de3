import { spawnSync } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

const root = join(import.meta.dirname, '../../..')
const readme = readFileSync(join(root, 'README.md'), 'utf8')

// Inside the package, because that is where the packages are found; as something built, so that nobody else minds.
const dist = join(import.meta.dirname, '../dist')
mkdirSync(dist, { recursive: true })
const folder = mkdtempSync(join(dist, 'readme-'))
/** Where the snippets run and make their files. */
const elsewhere = mkdtempSync(join(tmpdir(), 'harel-readme-'))

beforeAll(() => {
  for (const [index, [, code = '']] of [...readme.matchAll(/^```ts\n(.*?)^```$/gms)].entries()) {
    writeFileSync(join(folder, `snippet-${index + 1}.ts`), code)
  }
  copyFileSync(new URL('./fixtures/my-backend.ts', import.meta.url), join(folder, 'my-backend.ts'))
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ extends: '../../tsconfig.json', include: ['.'] }))
})

afterAll(() => {
  for (const made of [folder, elsewhere]) rmSync(made, { recursive: true })
})

function run(...args: string[]) {
  // A snippet that tests is to report to the terminal, not to the runner of this test.
  const { NODE_TEST_CONTEXT: _context, ...env } = process.env
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: elsewhere, encoding: 'utf8', env })
  return { status, output: stdout + stderr }
}

describe('the README', { timeout: 120_000 }, () => {
  test('has snippets that compile as they stand', () => {
    const tsc = join(root, 'node_modules/typescript/bin/tsc')
    expect(run(tsc, '--project', folder)).toEqual({ status: 0, output: '' })
  })

  test('begins with a machine that handles an event once', () => {
    const { status, output } = run(join(folder, 'snippet-1.ts'))
    expect({ status, output }).toEqual({ status: 0, output: 'paid, and the second time: duplicate\n' })
  })

  test('has a commit that does what it says', () => {
    const snippet = join(folder, 'snippet-2.ts')
    expect(run(snippet)).toEqual({ status: 0, output: 'version 1, on, 1 events to deliver\n' })
    expect(run(snippet)).toEqual({ status: 0, output: 'version 2, off, 2 events to deliver\n' })
  })

  test("shows how a store of one's own is proven", () => {
    const { status, output } = run('--test-reporter=tap', join(folder, 'snippet-3.ts'))
    expect(output).toMatch(/^# pass [1-9]\d+$/m)
    expect(output).toMatch(/^# fail 0$/m)
    expect(status).toBe(0)
  })

  test('points at nothing that is missing', () => {
    const targets = [...readme.matchAll(/\]\((?!https:)([^)]+)\)/g)].map(([, target = '']) => target)
    expect(targets.length).toBeGreaterThan(5)
    expect(targets.filter((target) => !existsSync(join(root, target)))).toEqual([])
  })
})
