import { type ExecFileOptions, execFile } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { claim, ownerOf } from './claim.ts'
import { isAlive, self } from './identity.ts'

const NAME = 'harel-test-servers'

/** Where servers are kept once they are installed. Removing it costs the next run an installation, nothing else. */
export const home: string = resolve(
  process.env.HAREL_TEST_SERVERS_HOME ?? join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), NAME),
)

/** Root's second cache, for what another user has to enter. */
export const openHome: string = join('/var/cache', NAME)

/**
 * The folder `name` in the cache, filled by `fill` if it is not there yet. It appears complete or not at all. One process
 * of this machine fills it while others wait; should two do so all the same, the first to finish is kept.
 */
export async function installed(name: string, fill: (folder: string) => Promise<void>, cache = home): Promise<string> {
  const target = join(cache, name)
  if (existsSync(target)) return target
  mkdirSync(cache, { recursive: true })
  const unlock = await lock(`${target}.lock`)
  try {
    if (existsSync(target)) return target
    removeHalfFinished(cache, name)
    const part = `${target}.part.${self}`
    mkdirSync(part)
    console.error(`installing ${name}, once for this machine …`)
    try {
      await fill(part)
      renameSync(part, target)
    } catch (error) {
      rmSync(part, { recursive: true, force: true })
      if (!existsSync(target)) throw error
    }
    return target
  } finally {
    unlock()
  }
}

/** `packages` from PyPI, with no others, importable from the folder returned; their programs are where the packages keep them. */
export function fromPyPI(name: string, packages: readonly string[]): Promise<string> {
  return installed(name, async (folder) => {
    const venv = join(folder, '.venv')
    await createVenv(venv)
    const pip = ['-m', 'pip', 'install', '--quiet', '--no-input', '--target', folder]
    await execute(join(venv, 'bin', 'python'), [...pip, ...packages])
    rmSync(venv, { recursive: true })
  })
}

/** One package from npm, in `node_modules` of the folder returned. */
export function fromNpm(name: string, wanted: string): Promise<string> {
  return installed(name, async (folder) => {
    await execute('npm', ['install', '--prefix', folder, '--no-audit', '--no-fund', '--ignore-scripts', wanted], {
      cwd: folder,
    })
  })
}

async function createVenv(folder: string): Promise<void> {
  try {
    await execute('python3', ['-m', 'venv', folder])
  } catch (error) {
    await onDebian(error, 'python3', 'python3-venv')
    rmSync(folder, { recursive: true, force: true })
    await execute('python3', ['-m', 'venv', folder])
  }
}

/** One program from crates.io, in `bin` of the folder returned. It is compiled, which takes minutes. */
export function fromCrates(name: string, crate: string, options: readonly string[]): Promise<string> {
  return installed(name, async (folder) => {
    const args = ['install', crate, '--locked', '--quiet', '--root', folder, ...options]
    try {
      await execute('cargo', ['--version'])
    } catch (error) {
      // Debian's own Rust is years old; this one goes with its browsers.
      await onDebian(error, 'cargo-web')
      await execute('/usr/bin/cargo', args, { env: { ...process.env, RUSTC: '/usr/bin/rustc' } })
      return
    }
    await execute('cargo', args)
  })
}

/** Installs what is lacking where that is allowed. @throws `why` elsewhere */
async function onDebian(why: unknown, ...packages: string[]): Promise<void> {
  if (process.getuid?.() !== 0 || !existsSync('/usr/bin/apt-get')) throw why
  await execute('apt-get', ['update', '-qq'])
  await execute('apt-get', ['install', '-y', '-qq', '--no-install-recommends', ...packages])
}

/** Runs a program to its end; rejects with the last of what it wrote to stderr. */
export async function execute(
  command: string,
  args: readonly string[],
  options: ExecFileOptions = {},
): Promise<string> {
  try {
    const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
    const { stdout } = await promisify(execFile)(command, args, {
      env,
      maxBuffer: 1 << 26,
      ...options,
      encoding: 'utf8',
    })
    return stdout
  } catch (error) {
    const stderr = error instanceof Error && 'stderr' in error ? String(error.stderr).trim() : ''
    const said = stderr.split('\n').slice(-5).join('\n') || String(error)
    throw new Error(`${command} ${args.slice(0, 3).join(' ')} failed: ${said}`, { cause: error })
  }
}

// A dead owner's lock is taken over. Two that take it over at once both install, which `installed` allows.
export async function lock(path: string): Promise<() => void> {
  while (!claim(path)) {
    if (isAlive(ownerOf(path))) await delay(200)
    else rmSync(path, { force: true })
  }
  return () => rmSync(path, { force: true })
}

function removeHalfFinished(cache: string, name: string): void {
  for (const entry of readdirSync(cache)) {
    const owner = entry.startsWith(`${name}.part.`) ? entry.slice(`${name}.part.`.length) : self
    if (!isAlive(owner)) rmSync(join(cache, entry), { recursive: true, force: true })
  }
}
