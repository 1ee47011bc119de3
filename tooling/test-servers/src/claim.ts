import { readlinkSync, symlinkSync } from 'node:fs'
import { self } from './identity.ts'

/** Makes `path` ours, as a link to our name: in one step, so that it is never half written. False when it is somebody's. */
export function claim(path: string): boolean {
  try {
    symlinkSync(self, path)
    return true
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return false
    throw error
  }
}

/** The process that has claimed `path`; empty when nobody has. */
export function ownerOf(path: string): string {
  try {
    return readlinkSync(path)
  } catch {
    return ''
  }
}
