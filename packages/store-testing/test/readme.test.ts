import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { contracts } from '@harel/store-testing'
import { afterAll, beforeAll, expect, test } from 'vitest'

const root = join(import.meta.dirname, '..')
const readme = readFileSync(join(root, 'README.md'), 'utf8')

// Inside the package, because that is where the packages are found; as something built, so that nobody else minds.
mkdirSync(join(root, 'dist'), { recursive: true })
const folder = mkdtempSync(join(root, 'dist', 'readme-'))

/** The store that the snippets prove. */
const MY_STORE = `
import { capabilities, MemoryDatabase } from '../../test/memory-database.ts'
export { capabilities }
const database = new MemoryDatabase()
export const openStore = database.open
`

beforeAll(() => {
  for (const [index, [, code = '']] of [...readme.matchAll(/^```ts\n(.*?)^```$/gms)].entries()) {
    writeFileSync(join(folder, `snippet-${index + 1}.ts`), code)
  }
  writeFileSync(join(folder, 'my-store.ts'), MY_STORE)
  const compilerOptions = { allowImportingTsExtensions: true }
  const settings = { extends: '../../tsconfig.json', compilerOptions, include: ['.'] }
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(settings))
})

afterAll(() => rmSync(folder, { recursive: true }))

function run(...args: string[]) {
  // The snippet is to report to the terminal, not to the runner of this test.
  const { NODE_TEST_CONTEXT: _context, ...env } = process.env
  const { status, stdout, stderr } = spawnSync(process.execPath, args, {
    cwd: folder,
    encoding: 'utf8',
    env: { ...env, HAREL_TEST_RUNS: '5' },
  })
  return { status, output: stdout + stderr }
}

test('the snippets of the README compile as they stand', { timeout: 60_000 }, () => {
  const tsc = join(root, '../../node_modules/typescript/bin/tsc')
  expect(run(tsc, '--project', folder)).toEqual({ status: 0, output: '' })
})

test('the first snippet proves a store', { timeout: 60_000 }, () => {
  const { status, output } = run('--test-reporter=tap', join(folder, 'snippet-1.ts'))
  expect(output).toMatch(/^# pass [1-9]\d\d$/m)
  expect(output).toMatch(/^# fail 0$/m)
  expect(status).toBe(0)
})

test('the second snippet proves a part of it', () => {
  expect(run(join(folder, 'snippet-2.ts'))).toEqual({ status: 0, output: '' })
})

test('the third snippet has it survive', { timeout: 60_000 }, () => {
  const { status, output } = run('--test-reporter=tap', join(folder, 'snippet-3.ts'))
  expect(output).toMatch(/^# pass [1-9]$/m)
  expect(output).toMatch(/^# fail 0$/m)
  expect(status).toBe(0)
})

test('the README names the function of every contract, and fits on two screens', async () => {
  const exported = Object.keys(await import('@harel/store-testing')).filter((name) => name.startsWith('assert'))
  expect(exported.length).toBe(contracts.length)
  for (const name of exported) expect(readme).toContain(`\`${name}\``)
  expect(readme.split('\n').length).toBeLessThan(100)
})
