import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { StoreCapabilities } from '@harel/store-base'
import { storeSchema } from '@harel/store-base/sql'
import { LibsqlStore } from '@harel/store-libsql'
import { describeStore, type Probes } from '@harel/store-testing'
import { withServer } from '@harel-tooling/test-servers/vitest'
import { type Client, createClient } from '@libsql/client'
import { afterAll, describe, test } from 'vitest'

const inFile: StoreCapabilities = {
  durable: true,
  shared: true,
  identity: false,
  ordered: true,
  paging: 'key',
  maxCommitWrites: Number.POSITIVE_INFINITY,
  maxExecutionBytes: 999_000_000,
  dedupe: 'forever',
  atomicPurge: true,
  transactions: true,
}
const onServer = { ...inFile, maxExecutionBytes: 4_990_000 }
const inMemory = { ...inFile, durable: false, shared: false }

/** A client that is opened when it is first needed, and closed when the tests of this file are done. */
function lazily(url: string): () => Client {
  let client: Client | undefined
  afterAll(() => client?.close())
  return () => {
    client ??= createClient({ url })
    return client
  }
}

const probesOn =
  (client: () => Client) =>
  (prefix: string): Probes => ({
    executionText: async (id) => {
      const { rows } = await client().execute(`SELECT data FROM ${prefix}_executions WHERE id = ?`, [id])
      return rows[0]?.data as string | undefined
    },
    insertExecutionText: async (id, version, text) => {
      const definition = /"definition_id": ?"([^"]*)"/.exec(text)?.[1] ?? 'd'
      const insert = `INSERT INTO ${prefix}_executions (id, definition_id, data, version) VALUES (?, ?, ?, ?)`
      await client().execute(insert, [id, definition, text, version])
    },
    insertOutboxText: async (targetId, text) => {
      await client().execute(`INSERT INTO ${prefix}_outbox (target_id, event) VALUES (?, ?)`, [targetId, text])
    },
    rows: async () => {
      const tables = storeSchema('sqlite', prefix).filter(({ kind }) => kind === 'table')
      const counts = tables.map(({ name }) => `(SELECT COUNT(*) FROM ${name}) AS ${name}`)
      const { rows } = await client().execute(`SELECT ${counts.join(', ')}`)
      return { ...rows[0] } as Record<string, number>
    },
  })

const folder = mkdtempSync(join(tmpdir(), 'harel-libsql-contracts-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
const file = `file:${join(folder, 'harel.db')}`

describeStore({ describe, test }, 'LibsqlStore on a file', {
  capabilities: inFile,
  open: (options) => LibsqlStore.connect({ url: file }, options),
  probes: probesOn(lazily(file)),
})

describeStore({ describe, test }, 'LibsqlStore in memory', {
  capabilities: inMemory,
  open: (options) => LibsqlStore.connect({ url: ':memory:' }, options),
})

withServer('libsql', ({ url }) => {
  for (const [name, address] of [
    ['HTTP', url],
    ['a web socket', url.replace(/^http/, 'ws')],
  ] as const) {
    describeStore({ describe, test }, `LibsqlStore over ${name}`, {
      capabilities: onServer,
      open: (options) => LibsqlStore.connect({ url: address }, options),
      probes: probesOn(lazily(url)),
    })
  }
})
