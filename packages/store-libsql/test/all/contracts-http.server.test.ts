import { describeStore } from '@harel/store-testing'
import { withServer } from '@harel-tooling/test-servers/vitest'
import { describe, test } from 'vitest'
import { onServer, shared } from '../contracts.js'

withServer('libsql', ({ url }) => {
  describeStore({ describe, test }, 'LibsqlStore over HTTP', shared(onServer, { url }))
})
