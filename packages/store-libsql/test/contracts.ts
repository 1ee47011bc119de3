import type { StoreCapabilities } from '@harel/store-base'
import { storeSchema } from '@harel/store-base/sql'
import { LibsqlStore } from '@harel/store-libsql'
import type { Probes, StoreUnderTest } from '@harel/store-testing'
import { type Client, type Config, createClient } from '@libsql/client'
import { afterAll } from 'vitest'

export const inFile: StoreCapabilities = {
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
export const onServer: StoreCapabilities = { ...inFile, maxExecutionBytes: 4_990_000 }
export const inMemory: StoreCapabilities = { ...inFile, durable: false, shared: false }

/** A client that is opened when it is first needed, and closed when the tests of this file are done. */
function lazily(url: string): () => Client {
  let client: Client | undefined
  afterAll(() => client?.close())
  return () => {
    client ??= createClient({ url })
    return client
  }
}

/** What a column holds beside the payload, which may be anything. */
function definitionOf(text: string): string {
  try {
    return JSON.parse(text).definition_id ?? ''
  } catch {
    return ''
  }
}

function probesOn(url: string): (prefix: string) => Probes {
  const client = lazily(url)
  return (prefix) => ({
    executionText: async (id) => {
      const { rows } = await client().execute(`SELECT data FROM ${prefix}_executions WHERE id = ?`, [id])
      return rows[0]?.data as string | undefined
    },
    insertExecutionText: async (id, version, text) => {
      const insert = `INSERT INTO ${prefix}_executions (id, definition_id, data, version) VALUES (?, ?, ?, ?)`
      await client().execute(insert, [id, definitionOf(text), text, version])
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
    // On a server others make tables meanwhile.
    ...(url.startsWith('file:') && {
      tables: async () =>
        (await client().execute('SELECT name FROM sqlite_master ORDER BY 1')).rows.map(({ name }) => `${name}`),
    }),
  })
}

/** Stores on one database, which handles share; `url` is where the probes look. */
export const shared = (capabilities: StoreCapabilities, config: Config, url = config.url): StoreUnderTest => ({
  capabilities,
  open: (options) => LibsqlStore.connect(config, options),
  probes: probesOn(url),
  model: { milliseconds: 1000 },
})
