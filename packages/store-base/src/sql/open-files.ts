import { realpathSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { quote } from '../describe.js'
import { InvalidArgument } from '../errors.js'

// Registered, so that all copies of this package (ESM beside CommonJS) keep one list.
const key = Symbol.for('@harel/store-base/openFiles')

interface OpenFile {
  readonly packageName: string
  claims: number
}

const openFiles = (): Map<string, OpenFile> => {
  const holder = globalThis as { [key]?: Map<string, OpenFile> }
  holder[key] ??= new Map()
  return holder[key]
}

/** The one path of a file, behind all links; a file that does not exist yet will be in its folder. */
function realPath(path: string): string {
  try {
    return realpathSync.native(path)
  } catch {
    const folder = dirname(path)
    return folder === path ? path : join(realPath(folder), basename(path))
  }
}

/**
 * Claims a database file, before it is opened, for the SQLite of one package. Two libraries of SQLite in a process would
 * drop each other's locks on it: when one closes the file, the locks of the other are gone.
 *
 * Source: https://www.sqlite.org/howtocorrupt.html#_multiple_copies_of_sqlite_linked_into_the_same_application
 *
 * @param argument the argument that names the file
 * @returns what ends the claim
 * @throws InvalidArgument while another package has the file open in this thread
 */
export function claimFile(argument: string, path: string, packageName: string): () => void {
  const files = openFiles()
  const file = realPath(path)
  const open = files.get(file) ?? { packageName, claims: 0 }
  if (open.packageName !== packageName) {
    const allowed = `a file that no store of ${open.packageName} has open in this process: close that one, or use one package for both`
    throw new InvalidArgument(argument, path, allowed, quote(file))
  }
  open.claims++
  files.set(file, open)
  let claimed = true
  return () => {
    if (!claimed) return
    claimed = false
    if (--open.claims === 0) files.delete(file)
  }
}
