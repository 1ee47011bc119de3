import { type LibsqlOptions, LibsqlStore } from '@harel/store-libsql'
import * as testing from '@harel/store-testing'
import { startServer, type TestServer } from '@harel-tooling/test-servers'
import { afterAll, beforeAll, describe, test } from 'vitest'
import { lastingFile } from '../helpers.js'

// One handle for all, because each new one copies the whole database; so it must not be closed on the way.
describe('LibsqlStore on an embedded replica', () => {
  const url = lastingFile()
  let server: TestServer
  let store: LibsqlStore

  beforeAll(async () => {
    server = await startServer('libsql', { own: true })
    store = await LibsqlStore.connect({ url, syncUrl: server.url })
  })

  afterAll(async () => {
    await store.close()
    await server.stop()
  })

  const { assertLifecycle: _closes, ...others } = testing
  const assertions = Object.entries(others).filter(([name]) => name.startsWith('assert'))
  test.each(assertions)('%s', { timeout: 120_000 }, async (_, assertion) => {
    const open = (options?: LibsqlOptions) => LibsqlStore.connect({ url: server.url }, options)
    await (assertion as typeof testing.assertCommit)(store, { open, model: { milliseconds: 500 } })
  })
})
