import { SqliteStore } from '@harel/store-sqlite'
import { describeStore } from '@harel/store-testing'
import { describe, test } from 'vitest'
import { inFile, inMemory, lastingFile, makePythonTables, probesOn } from './contracts.js'

const path = lastingFile()
describeStore({ describe, test }, 'SqliteStore on a file', {
  capabilities: inFile,
  synchronous: true,
  open: (options) => SqliteStore.open(path, options),
  probes: probesOn(path),
})

describeStore({ describe, test }, 'SqliteStore in memory', {
  capabilities: inMemory,
  synchronous: true,
  open: (options) => SqliteStore.open(':memory:', options),
})

const bare = lastingFile()
describeStore({ describe, test }, 'SqliteStore on the tables of Python, with nothing added', {
  capabilities: inFile,
  synchronous: true,
  open: ({ onWarning = () => {}, ...options }) => {
    makePythonTables(bare, options.prefix)
    return SqliteStore.open(bare, { ...options, onWarning, createSchema: false })
  },
  probes: probesOn(bare),
})
