import type { StoreCapabilities } from '@harel/store-base'
import { storeSchema } from '@harel/store-base/sql'
import { RqliteStore } from '@harel/store-rqlite'
import { describeStore, type Probes } from '@harel/store-testing'
import { withServer } from '@harel-tooling/test-servers/vitest'
import { describe, test } from 'vitest'
import { request } from './helpers.js'

const capabilities: StoreCapabilities = {
  durable: true,
  shared: true,
  identity: false,
  ordered: true,
  paging: 'key',
  maxCommitWrites: Number.POSITIVE_INFINITY,
  maxExecutionBytes: 64_000_000,
  dedupe: 'forever',
  atomicPurge: true,
  transactions: false,
}

const probesOn =
  (url: string) =>
  (prefix: string): Probes => ({
    executionText: async (id) => {
      const [row] = await request(url, `SELECT data FROM ${prefix}_executions WHERE id = ?`, id)
      return row?.[0] as string | undefined
    },
    insertExecutionText: async (id, version, text) => {
      const definition = /"definition_id": ?"([^"]*)"/.exec(text)?.[1] ?? 'd'
      const insert = `INSERT INTO ${prefix}_executions (id, definition_id, data, version) VALUES (?, ?, ?, ?)`
      await request(url, insert, id, definition, text, version)
    },
    insertOutboxText: async (targetId, text) => {
      await request(url, `INSERT INTO ${prefix}_outbox (target_id, event) VALUES (?, ?)`, targetId, text)
    },
    rows: async () => {
      const tables = storeSchema('sqlite', prefix).flatMap(({ kind, name }) => (kind === 'table' ? [name] : []))
      const [row] = await request(url, `SELECT ${tables.map((table) => `(SELECT COUNT(*) FROM ${table})`).join(', ')}`)
      return Object.fromEntries(tables.map((table, index) => [table, Number(row?.[index])]))
    },
  })

withServer('rqlite', ({ url }) => {
  describeStore({ describe, test }, 'RqliteStore', {
    capabilities,
    open: (options) => RqliteStore.connect(url, options),
    probes: probesOn(url),
    model: { milliseconds: 1000 },
  })
})
