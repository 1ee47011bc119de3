import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { freshFile, install } from './helpers.js'

const root = join(import.meta.dirname, '..')
const readme = readFileSync(join(root, 'README.md'), 'utf8')
const [snippet = ''] = [...readme.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, code]) => code)

/** A folder of a user who has installed the packages, with the snippet as a program. */
function userFolder(): string {
  const folder = dirname(freshFile())
  install(folder, ['@harel/store-sqlite', '@types/node'])
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
  writeFileSync(join(folder, 'snippet.ts'), snippet)
  const compilerOptions = {
    module: 'nodenext',
    target: 'es2023',
    lib: ['es2023', 'esnext.disposable'],
    strict: true,
    noEmit: true,
  }
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['snippet.ts'] }))
  return folder
}

function run(folder: string, ...args: string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: folder, encoding: 'utf8' })
  return { status, output: stdout + stderr }
}

test('the snippet of the README compiles and does what it says', () => {
  const folder = userFolder()
  const tsc = join(root, '../../node_modules/typescript/bin/tsc')
  expect(run(folder, tsc, '--project', folder)).toEqual({ status: 0, output: '' })
  expect(run(folder, 'snippet.ts')).toEqual({ status: 0, output: 'PLACED for billing\n' })
})

test('the README fits on a screen, and names every option', () => {
  expect(readme.split('\n').length).toBeLessThan(80)
  for (const option of ['prefix', 'createSchema', 'traceMax', 'lockTimeout', 'numbers', 'onWarning']) {
    expect(readme).toContain(`\`${option}\``)
  }
})
