import { execFileSync, spawnSync } from 'node:child_process'
import { rmSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'

const VERSION = '0.9.0'
/** What harel calls its stores that need a driver. */
const EXTRAS = ['dynamodb', 'mongo', 'postgres', 'redis']
const cache = process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache')
const environment = join(cache, 'harel-interop', VERSION)

/** The Python interpreter that has harel. */
export const interpreter = join(environment, 'bin', 'python')

/** Installs Python harel and its drivers into an environment of its own, which is kept for the next time. */
export function setup(): void {
  const pip = ['-m', 'pip', '--disable-pip-version-check']
  if (spawnSync(interpreter, [...pip, '--version']).status !== 0) {
    console.log(`installing harel ${VERSION} from PyPI into ${environment}`)
    rmSync(environment, { recursive: true, force: true })
    execFileSync('python3', ['-m', 'venv', environment], { stdio: 'inherit' })
  }
  // Asks no registry when everything is there.
  execFileSync(interpreter, [...pip, 'install', '--quiet', `harel[${EXTRAS}]==${VERSION}`], { stdio: 'inherit' })
}
