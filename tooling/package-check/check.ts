#!/usr/bin/env node
// Tries the package in the current folder as its users get it: packed, and installed outside the workspace.
//
// `test/packed.ts` is the user's program. It is compiled as an ES module and as CommonJS against the published types,
// and both are bundled with the drivers left outside. Each of the four must run and end by itself. What is tried stays
// in its folder when it fails.
import { spawnSync } from 'node:child_process'
import { copyFileSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join, posix } from 'node:path'

interface Manifest {
  name: string
  version: string
  dependencies?: Record<string, string>
  peerDependencies?: Record<string, string>
}

interface Tarball {
  name: string
  filename: string
  files: { path: string }[]
}

const requiredFiles = ['LICENSE', 'README.md']
const timeout = 60_000
const tools = join(import.meta.dirname, 'node_modules', '.bin')
const env = { ...process.env, PATH: tools + delimiter + process.env.PATH }

/** What the command printed to stdout; when it fails, all it printed becomes the error. */
const run = (cwd: string, command: string, ...args: string[]): string => {
  const { status, stdout, stderr, error } = spawnSync(command, args, { cwd, env, timeout, encoding: 'utf8' })
  if (status === 0) return stdout
  throw new Error(`${command} ${args.join(' ')} failed in ${cwd}\n${stdout}${stderr}${error?.message ?? ''}`)
}

const manifestOf = (folder: string): Manifest => JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))

const dependenciesOf = (folder: string): [name: string, range: string][] =>
  Object.entries(manifestOf(folder).dependencies ?? {})

/** What the user has to install beside the package, in the version that the workspace has. */
const peersOf = (folder: string): [name: string, version: string][] =>
  Object.keys(manifestOf(folder).peerDependencies ?? {}).map((name) => [
    name,
    manifestOf(join(folder, 'node_modules', name)).version,
  ])

const isWorkspace = ([, range]: [name: string, range: string]): boolean => range.startsWith('workspace:')

/** The folder and those of the workspace packages that it needs at run time. */
const withWorkspaceDependencies = (folder: string): string[] => [
  folder,
  ...dependenciesOf(folder)
    .filter(isWorkspace)
    .flatMap(([name]) => withWorkspaceDependencies(realpathSync(join(folder, 'node_modules', name)))),
]

/** What the README links to inside the package; what leads out of it is nobody's who has installed it. */
const linksOf = (readme: string): string[] =>
  [...readme.matchAll(/\]\(([^)#]+)[^)]*\)/g)]
    .map(([, target = '']) => posix.normalize(target))
    .filter((target) => !/^(\.\.\/|[a-z]+:)/.test(target))

const checkTarball = (folder: string, source: string, { filename, files }: Tarball): void => {
  const required = [...requiredFiles, ...linksOf(readFileSync(join(source, 'README.md'), 'utf8'))]
  const missing = required.filter((each) => !files.some(({ path }) => path === each))
  if (missing.length > 0) throw new Error(`the tarball lacks ${missing.join(' and ')}`)
  run(folder, 'publint', '--strict', filename)
  // The profile leaves out resolvers that do not know "exports"; every Node the packages run on does.
  run(folder, 'attw', '--profile', 'node16', filename)
}

const install = (folder: string, tarballs: Tarball[], drivers: string[], peers: Record<string, string>): void => {
  const files = Object.fromEntries(tarballs.map(({ name, filename }) => [name, `file:${filename}`]))
  const settings = {
    packages: [],
    overrides: files,
    // A package finds what it names itself and no more, but for undici-types, which does not name its @types/node; the
    // bundles find the drivers.
    hoistPattern: ['@types/node'],
    publicHoistPattern: drivers,
    dangerouslyAllowAllBuilds: true,
  }
  // The types of some drivers take those of Node for granted, as their users have them.
  const dependencies = { ...files, ...peers, '@types/node': '24' }
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ private: true, dependencies }))
  // JSON is YAML too.
  writeFileSync(join(folder, 'pnpm-workspace.yaml'), JSON.stringify(settings))
  run(folder, 'pnpm', 'install', '--prefer-offline', '--no-frozen-lockfile')
}

const compile = (folder: string, program: string): void => {
  for (const name of ['module.mts', 'common.cts']) copyFileSync(program, join(folder, name))
  const compilerOptions = {
    module: 'nodenext',
    target: 'es2022',
    lib: ['es2023', 'esnext.disposable'],
    types: ['node'],
    strict: true,
    skipLibCheck: false,
  }
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions }))
  run(folder, 'tsc')
}

const bundle = (folder: string, entry: string, format: string, output: string, drivers: string[]): void => {
  const options = ['--bundle', '--platform=node', `--format=${format}`, `--outfile=${output}`]
  run(folder, 'esbuild', entry, ...options, ...drivers.map((driver) => `--external:${driver}`))
}

const check = (source: string): void => {
  const sources = [...new Set(withWorkspaceDependencies(source))]
  const drivers = sources.flatMap(dependenciesOf).flatMap((each) => (isWorkspace(each) ? [] : [each[0]]))
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'harel-packed-')))
  const pack = (each: string): Tarball => JSON.parse(run(each, 'pnpm', 'pack', '--json', '--pack-destination', folder))
  const tarballs = sources.map(pack)
  for (const tarball of tarballs.slice(0, 1)) checkTarball(folder, source, tarball)
  const peers = Object.fromEntries(peersOf(source))
  drivers.push(...Object.keys(peers))
  install(folder, tarballs, drivers, peers)
  compile(folder, join(source, 'test', 'packed.ts'))
  bundle(folder, 'module.mts', 'esm', 'bundle.mjs', drivers)
  bundle(folder, 'common.cts', 'cjs', 'bundle.cjs', drivers)
  for (const program of ['module.mjs', 'common.cjs', 'bundle.mjs', 'bundle.cjs']) run(folder, 'node', program)
  rmSync(folder, { recursive: true })
}

try {
  check(process.cwd())
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 1
}
