import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { AsyncSqliteStore } from '@harel/store-sqlite'
import type { Backend } from '../backend.js'

export const sqlite: Backend = {
  name: 'SQLite',
  start: async () => {
    const folder = mkdtempSync(join(tmpdir(), 'harel-interop-'))
    let databases = 0
    return {
      make: async () => {
        const file = join(folder, `${++databases}.db`)
        return {
          url: `sqlite://${file}`,
          open: (options) => AsyncSqliteStore.open(file, options),
          [Symbol.asyncDispose]: async () => {},
        }
      },
      [Symbol.asyncDispose]: async () => rmSync(folder, { recursive: true }),
    }
  },
}
