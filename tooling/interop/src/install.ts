import { execFileSync, spawnSync } from 'node:child_process'
import { rmSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'

const VERSION = '0.9.0'
/** What pip installs: harel, and the drivers of the databases beside SQLite. */
const PACKAGES = [`harel==${VERSION}`]
const cache = process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache')
const environment = join(cache, 'harel-interop', VERSION)

/** The Python interpreter that has harel. */
export const interpreter = join(environment, 'bin', 'python')

/** Installs Python harel into an environment of its own, which is kept for the next time. */
export function setup(): void {
  if (spawnSync(interpreter, ['-c', 'import harel.testing']).status === 0) return
  console.log(`installing harel ${VERSION} from PyPI into ${environment}`)
  rmSync(environment, { recursive: true, force: true })
  execFileSync('python3', ['-m', 'venv', environment], { stdio: 'inherit' })
  execFileSync(interpreter, ['-m', 'pip', 'install', '--quiet', ...PACKAGES], { stdio: 'inherit' })
}
