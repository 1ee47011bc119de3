import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { AsyncSqliteStore, SqliteStore } from '@harel/store-sqlite'
import { describeSurvival } from '@harel/store-testing/faults'
import { afterAll, describe, test } from 'vitest'

const folder = mkdtempSync(join(tmpdir(), 'harel-sqlite-'))
afterAll(() => rmSync(folder, { recursive: true }))

const runner = { describe, test }
const capabilities = { shared: true }

describeSurvival(runner, 'AsyncSqliteStore', {
  capabilities,
  open: ({ address = '', ...options }) => AsyncSqliteStore.open(address, options),
  address: () => join(folder, 'async.db'),
  program: new URL('programs/faults-writer.ts', import.meta.url),
})

describeSurvival(runner, 'SqliteStore', {
  capabilities,
  open: ({ address = '', ...options }) => SqliteStore.open(address, options),
  address: () => join(folder, 'sync.db'),
  program: new URL('programs/faults-writer-sync.ts', import.meta.url),
})
