import { AsyncSqliteStore } from '@harel/store-sqlite'
import { describeStore } from '@harel/store-testing'
import { describe, test } from 'vitest'
import { inFile, inMemory, lastingFile, probesOn } from './contracts.js'

const path = lastingFile()
describeStore({ describe, test }, 'AsyncSqliteStore on a file', {
  capabilities: inFile,
  open: (options) => AsyncSqliteStore.open(path, options),
  probes: probesOn(path),
})

describeStore({ describe, test }, 'AsyncSqliteStore in memory', {
  capabilities: inMemory,
  open: (options) => AsyncSqliteStore.open(':memory:', options),
})
