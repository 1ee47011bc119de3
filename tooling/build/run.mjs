// Runs a command of the workspace with all that it needs in place: node tooling/build/run.mjs COMMAND [ARGUMENT]...
//
// The machine must have Node 20 and npm, no more: npx brings pnpm, pnpm brings the rest, and the command finds pnpm,
// the workspace's tools and its Node first on the path. With nothing to install that takes a second and prints nothing.
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../..', import.meta.url))
const bin = join(root, 'node_modules', '.bin')

/**
 * Runs a step of the set-up to its end. Only the command itself has stdout.
 * @type {(command: string, args: string[], env: NodeJS.ProcessEnv, stdout: 'pipe' | 2) => string}
 */
const complete = (command, args, env, stdout) => {
  const done = spawnSync(command, args, { cwd: root, env, encoding: 'utf8', stdio: ['ignore', stdout, 2] })
  if (done.error !== undefined) throw done.error
  if (done.status !== 0) process.exit(done.status ?? 1)
  return done.stdout
}

/** @type {{ packageManager: string }} */
const { packageManager } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
if (!existsSync(bin)) console.error('Installing the workspace…')
const npx = ['--yes', `--package=${packageManager}`, '-c', 'node -p process.env.PATH']
const pathWithPnpm = complete('npx', npx, process.env, 'pipe').trim()
const env = { ...process.env, PATH: bin + delimiter + pathWithPnpm, TURBO_TELEMETRY_DISABLED: '1' }
complete('pnpm', ['install', '--frozen-lockfile', '--prefer-offline', '--loglevel=warn'], env, 2)

const [command = '', ...args] = process.argv.slice(2)
const child = spawn(command, args, { cwd: root, env, stdio: 'inherit' })
// An interrupt from the terminal reaches the command by itself; it decides when to end, and this process with it.
process.on('SIGINT', () => {})
process.on('SIGTERM', () => child.kill())
child.on('exit', (code) => {
  process.exitCode = code ?? 1
})
