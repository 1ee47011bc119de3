import { LibsqlStore } from '@harel/store-libsql'
import { describeSurvival } from '@harel/store-testing/faults'
import { describe, test } from 'vitest'
import { lastingFile } from './helpers.js'

const url = lastingFile()

describeSurvival({ describe, test }, 'LibsqlStore on a file', {
  capabilities: { shared: true },
  open: ({ address = '', ...options }) => LibsqlStore.connect({ url: address }, options),
  address: () => url,
  program: new URL('programs/faults-writer.ts', import.meta.url),
})
