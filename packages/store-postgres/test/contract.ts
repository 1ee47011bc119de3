import type { StoreCapabilities } from '@harel/store-base'
import { storeSchema } from '@harel/store-base/sql'
import { PostgresStore } from '@harel/store-postgres'
import { describeStore, type Probes } from '@harel/store-testing'
import postgres, { type Sql } from 'postgres'
import { afterAll, describe, test } from 'vitest'
import { type ClientOptions, useDatabase } from './helpers.js'

const capabilities: StoreCapabilities = {
  durable: true,
  shared: true,
  identity: false,
  ordered: true,
  paging: 'key',
  maxCommitWrites: Number.POSITIVE_INFINITY,
  maxExecutionBytes: 256 * 1024 * 1024,
  dedupe: 'forever',
  atomicPurge: true,
  transactions: true,
}

/** As another program would store it: it knows, also where its payload is unreadable. */
function definitionOf(text: string): string {
  try {
    return JSON.parse(text).definition_id ?? 'd'
  } catch {
    return 'd'
  }
}

const probesOn =
  (sql: () => Sql) =>
  (prefix: string): Probes => ({
    executionText: async (id) => {
      const [row] = await sql()`SELECT data FROM ${sql()(`${prefix}_executions`)} WHERE id = ${id}`
      return row?.data
    },
    insertExecutionText: async (id, version, text) => {
      await sql()`INSERT INTO ${sql()(`${prefix}_executions`)} (id, definition_id, data, version)
        VALUES (${id}, ${definitionOf(text)}, ${text}, ${version})`
    },
    insertOutboxText: async (targetId, text) => {
      await sql()`INSERT INTO ${sql()(`${prefix}_outbox`)} (target_id, event) VALUES (${targetId}, ${text})`
    },
    rows: async () => {
      const tables = storeSchema('postgres', prefix).filter(({ kind }) => kind === 'table')
      const counts = tables.map(({ name }) => `(SELECT count(*)::int FROM ${name}) AS ${name}`)
      const [row] = await sql().unsafe(`SELECT ${counts}`)
      return { ...row }
    },
    tables: async () =>
      (await sql()`SELECT oid::regclass::text AS name FROM pg_class ORDER BY 1`).map(({ name }) => name),
  })

/** Every contract, in a database of this server, with these options of the driver. */
export function describeContracts(server: { url: string }, client: ClientOptions): void {
  const database = useDatabase(server)
  let raw: Sql | undefined
  afterAll(() => raw?.end())
  const sql = () => {
    raw ??= postgres(database.url, { ...client, onnotice: () => {} })
    return raw
  }

  describeStore({ describe, test }, 'PostgresStore', {
    capabilities,
    open: (options) => PostgresStore.connect(database.url, { ...options, client: { max: 3, ...client } }),
    probes: probesOn(sql),
  })
}
