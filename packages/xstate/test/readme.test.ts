import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { freshFile } from './helpers.js'

const root = join(import.meta.dirname, '..')
const readme = readFileSync(join(root, 'README.md'), 'utf8')
const [snippet = ''] = [...readme.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, code]) => code)

/** A folder of a user who has installed the packages, with the snippet as a program. */
function userFolder(): string {
  const folder = dirname(freshFile())
  for (const name of ['@harel/xstate', '@harel/store-sqlite', '@harel/store-base', 'xstate', '@types/node']) {
    const link = join(folder, 'node_modules', name)
    mkdirSync(dirname(link), { recursive: true })
    const inWorkspace = join(root, '../../node_modules', name)
    const inPackage = name === '@harel/xstate' ? root : join(root, 'node_modules', name)
    symlinkSync(existsSync(inPackage) ? inPackage : inWorkspace, link)
  }
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
  writeFileSync(join(folder, 'snippet.ts'), snippet)
  const compilerOptions = {
    module: 'nodenext',
    target: 'es2023',
    lib: ['es2023', 'esnext.disposable'],
    types: ['node'],
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
  expect(run(folder, 'snippet.ts')).toEqual({ status: 0, output: 'paid, and the second time: duplicate\n' })
})

test('the README fits on a screen or so, names every option, and points at nothing that is missing', () => {
  expect(readme.split('\n').length).toBeLessThan(90)
  const options = readFileSync(join(root, 'src/settings.ts'), 'utf8').matchAll(/^ {2}(\w+)\??: /gm)
  for (const [, option] of options) expect(readme).toContain(`\`${option}\``)
  for (const [, target = ''] of readme.matchAll(/\]\((?!https:)([^)]+)\)/g))
    expect(existsSync(join(root, target))).toBe(true)
})
