import { describeStore } from '@harel/store-testing'
import { describe, test } from 'vitest'
import { capabilities, MemoryDatabase } from './memory-database.js'

const database = new MemoryDatabase()
describeStore({ describe, test }, 'a store that handles share', {
  capabilities,
  open: database.open,
  probes: database.probes,
})
