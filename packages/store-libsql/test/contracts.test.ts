import { LibsqlStore } from '@harel/store-libsql'
import { describeStore } from '@harel/store-testing'
import { describe, test } from 'vitest'
import { inFile, inMemory, shared } from './contracts.js'
import { lastingFile } from './helpers.js'

describeStore({ describe, test }, 'LibsqlStore on a file', shared(inFile, { url: lastingFile() }))

describeStore({ describe, test }, 'LibsqlStore in memory', {
  capabilities: inMemory,
  open: (options) => LibsqlStore.connect({ url: ':memory:' }, options),
  model: { milliseconds: 1000 },
})
