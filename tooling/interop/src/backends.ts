import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ExecutionStore } from '@harel/store-base'
import { AsyncSqliteStore } from '@harel/store-sqlite'

export interface Options {
  prefix: string
  traceMax?: number
}

/** A kind of database that both languages write to. */
export interface Backend {
  name: string
  /** Makes an empty database. `url` is what `driver.py` opens. */
  make(): Promise<AsyncDisposable & { url: string; open(options: Options): Promise<ExecutionStore> }>
}

/** One row per kind; `driver.py` has the other half. */
export const backends: readonly Backend[] = [
  {
    name: 'SQLite',
    make: async () => {
      const folder = mkdtempSync(join(tmpdir(), 'harel-interop-'))
      const file = join(folder, 'harel.db')
      return {
        url: `sqlite://${file}`,
        open: (options) => AsyncSqliteStore.open(file, options),
        [Symbol.asyncDispose]: async () => rmSync(folder, { recursive: true }),
      }
    },
  },
]
