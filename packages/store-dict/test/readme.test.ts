import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'

const root = join(import.meta.dirname, '..')
const readme = readFileSync(join(root, 'README.md'), 'utf8')
const [, snippet = ''] = /^```ts\n(.*?)^```$/ms.exec(readme) ?? []

// Inside the package, because that is where the package is found; as something built, so that nobody else minds.
const folder = mkdtempSync(join(root, 'dist', 'readme-'))

beforeAll(() => {
  writeFileSync(join(folder, 'snippet.ts'), snippet)
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ extends: '../../tsconfig.json', include: ['.'] }))
})

afterAll(() => rmSync(folder, { recursive: true }))

function run(...args: string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: folder, encoding: 'utf8' })
  return { status, output: stdout + stderr }
}

test('the snippet of the README compiles and does what it says', { timeout: 60_000 }, () => {
  const tsc = join(root, '../../node_modules/typescript/bin/tsc')
  expect(run(tsc, '--project', folder)).toEqual({ status: 0, output: '' })
  expect(run('snippet.ts')).toEqual({ status: 0, output: 'PLACED of version 1, as 1\n' })
})

test('the README fits on a screen, and names every option', () => {
  expect(readme.split('\n').length).toBeLessThan(80)
  for (const option of ['copy', 'traceMax', 'numbers', 'onWarning']) expect(readme).toContain(`\`${option}\``)
})
