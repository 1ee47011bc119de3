import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'

const root = join(import.meta.dirname, '..')
const readme = readFileSync(join(root, 'README.md'), 'utf8')
const [snippet = ''] = [...readme.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, code]) => code)

test('the snippet of the README compiles and does what it says', { timeout: 120_000 }, () => {
  // Inside the package, because that is where the package is found; as something built, so that nobody else minds.
  const folder = mkdtempSync(join(root, 'dist', 'readme-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  writeFileSync(join(folder, 'snippet.ts'), snippet)
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ extends: '../../tsconfig.json', include: ['.'] }))
  const run = (...args: string[]) => {
    const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: folder, encoding: 'utf8' })
    return { status, output: stdout + stderr }
  }
  const tsc = join(root, '../../node_modules/typescript/bin/tsc')
  expect(run(tsc, '--project', folder)).toEqual({ status: 0, output: '' })
  expect(run('snippet.ts')).toEqual({ status: 0, output: 'PLACED for billing\n' })
  expect(existsSync(join(folder, 'orders.db'))).toBe(true)
})

test('the README fits on a screen, names every option, and points at nothing that is missing', () => {
  expect(readme.split('\n').length).toBeLessThan(80)
  const options = [
    'prefix',
    'createSchema',
    'traceMax',
    'groupCommit',
    'lockTimeout',
    'timeout',
    'numbers',
    'onWarning',
  ]
  for (const option of options) {
    expect(readme).toContain(`\`${option}\``)
  }
  const targets = [...readme.matchAll(/\]\((?!https:)([^)]+)\)/g)].map(([, target = '']) => target)
  expect(targets.filter((target) => !existsSync(join(root, target)))).toEqual([])
})
