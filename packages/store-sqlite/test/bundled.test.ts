import { spawnSync } from 'node:child_process'
import { basename, dirname, join } from 'node:path'
import { build } from 'esbuild'
import { expect, test } from 'vitest'
import webpack from 'webpack'
import { freshFile, install } from './helpers.js'

const entry = join(import.meta.dirname, 'programs', 'left-open.ts')
// It has a binary, which stays outside every bundle.
const driver = 'better-sqlite3'

const withEsbuild = (format: 'esm' | 'cjs') => async (outfile: string) => {
  await build({
    entryPoints: [entry],
    bundle: true,
    platform: 'node',
    target: 'es2022',
    format,
    external: [driver],
    outfile,
    // As CommonJS it warns that `import.meta` is empty, which the package is prepared for.
    logLevel: 'error',
  })
}

const webpacked = (configuration: webpack.Configuration) =>
  new Promise<void>((resolve, reject) => {
    webpack(configuration, (error, stats) => {
      if (error !== null || stats?.hasErrors()) reject(error ?? new Error(stats?.toString()))
      else resolve()
    })
  })

const withWebpack = async (outfile: string) => {
  const script = `${outfile}.entry.mjs`
  // As a loader of TypeScript hands it to webpack.
  await build({ entryPoints: [entry], format: 'esm', outfile: script })
  await webpacked({
    mode: 'production',
    target: 'node',
    entry: script,
    externals: { [driver]: `module ${driver}` },
    resolve: {
      modules: [join(import.meta.dirname, '../node_modules')],
      alias: { '@harel/store-sqlite': join(import.meta.dirname, '..') },
    },
    experiments: { outputModule: true },
    output: { path: dirname(outfile), filename: basename(outfile), module: true },
  })
}

test.each([
  { bundler: 'esbuild as an ES module', name: 'bundle.mjs', bundle: withEsbuild('esm') },
  { bundler: 'esbuild as CommonJS', name: 'bundle.cjs', bundle: withEsbuild('cjs') },
  { bundler: 'webpack', name: 'bundle.mjs', bundle: withWebpack },
])(
  'the thread starts in a program that was bundled by $bundler, whatever folder it is run from (B95)',
  async ({ name, bundle }) => {
    const file = freshFile()
    const folder = dirname(file)
    install(folder, [driver])
    const program = join(folder, name)
    await bundle(program)
    const { status, stdout, stderr } = spawnSync(process.execPath, [program, file], { cwd: '/', encoding: 'utf8' })
    expect({ status, output: stdout + stderr }).toEqual({ status: 0, output: 'version 1\n' })
  },
)
