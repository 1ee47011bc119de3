import { mkdirSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { execute, installed } from './install.ts'

/**
 * The folder in which a Debian package's `usr/…` stands: `/` where the system has the package, else the package and what
 * it needs, unpacked into the cache. Needs no root, changes nothing in the system and starts no service.
 */
export async function fromDebian(name: string): Promise<string> {
  const status = await execute('dpkg', ['--status', name]).catch(() => '')
  if (/^Status: .* installed$/m.test(status)) return '/'
  return installed(`debian-${name}`, async (folder) => {
    const apt = join(folder, '.apt')
    for (const part of ['lists/partial', 'archives/partial']) mkdirSync(join(apt, part), { recursive: true })
    const options = ['-qq', '-o', `Dir::State::lists=${apt}/lists`, '-o', `Dir::Cache=${apt}`]
    options.push('-o', 'Debug::NoLocking=true', '-o', 'APT::Sandbox::User=')
    await execute('apt-get', [...options, 'update'])
    await execute('apt-get', [...options, '-y', '--download-only', '--no-install-recommends', 'install', name])
    for (const file of readdirSync(join(apt, 'archives'))) {
      if (file.endsWith('.deb')) await execute('dpkg-deb', ['-x', join(apt, 'archives', file), folder])
    }
    rmSync(apt, { recursive: true })
  })
}

/** The environment in which programs of that folder find their libraries. */
export function libraries(root: string): Record<string, string> {
  if (root === '/') return {}
  const folders = ['lib', 'usr/lib'].flatMap((lib) => {
    const found = list(join(root, lib)).filter((name) => name.endsWith('-linux-gnu'))
    return found.map((name) => join(root, lib, name))
  })
  return { LD_LIBRARY_PATH: folders.join(':') }
}

function list(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}
