import { execFileSync, spawnSync } from 'node:child_process'
import { chmodSync, cpSync } from 'node:fs'
import { basename } from 'node:path'
import { installed, openHome } from './install.ts'

export interface User {
  readonly uid: number
  readonly gid: number
}

/** For servers that refuse to run as root: nobody where we are root, else undefined, the user that we are. */
export function unprivileged(): User | undefined {
  if (process.getuid?.() !== 0) return undefined
  const id = (option: string) => Number(execFileSync('id', [option, 'nobody'], { encoding: 'utf8' }))
  return { uid: id('-u'), gid: id('-g') }
}

/** `folder`, or a copy of it where `user` may not enter it: the cache may lie in root's home. */
export async function enterable(folder: string, user: User | undefined): Promise<string> {
  if (user === undefined || spawnSync('ls', [folder], { stdio: 'ignore', ...user }).status === 0) return folder
  const copy = async (part: string) => {
    cpSync(folder, part, { recursive: true, verbatimSymlinks: true })
    chmodSync(part, 0o755)
  }
  return installed(basename(folder), copy, openHome)
}
