import { LibsqlStore } from '@harel/store-libsql'
import { describeStore } from '@harel/store-testing'
import { withServer } from '@harel-tooling/test-servers/vitest'
import { describe, test } from 'vitest'
import { onServer, shared } from '../contracts.js'
import { lastingFile } from '../helpers.js'

withServer('libsql', ({ url }) => {
  const file = lastingFile()
  let handles = 0
  describeStore({ describe, test }, 'LibsqlStore on embedded replicas', {
    ...shared(onServer, { url }),
    // Each has a copy of its own.
    open: (options) => LibsqlStore.connect({ url: `${file}-${++handles}`, syncUrl: url }, options),
  })
})
