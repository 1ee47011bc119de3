import type { StoreCapabilities } from '@harel/store-base'
import { MongoStore } from '@harel/store-mongo'
import { describeStore, type Probes } from '@harel/store-testing'
import { withServer } from '@harel-tooling/test-servers/vitest'
import type { Db } from 'mongodb'
import { describe, test } from 'vitest'
import { useDatabase } from './helpers.js'

const capabilities: StoreCapabilities = {
  durable: true,
  shared: true,
  identity: false,
  ordered: true,
  paging: 'key',
  maxCommitWrites: Number.POSITIVE_INFINITY,
  maxExecutionBytes: 16 * 1024 * 1024 - 64 * 1024,
  dedupe: 10_000,
  atomicPurge: false,
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
  (db: () => Db) =>
  (prefix: string): Probes => {
    const executions = () => db().collection<{ _id: string; data: string }>(`${prefix}_executions`)
    return {
      executionText: async (id) => (await executions().findOne({ _id: id }))?.data,
      insertExecutionText: async (_id, version, data) => {
        const nothing = { outbox: [], spawns: [], timers: {}, processed: [], trace: [] }
        await executions().insertOne({ _id, definition_id: definitionOf(data), version, data, ...nothing } as never)
      },
      insertOutboxText: async (target_id, event) => {
        const counters = db().collection<{ _id: string; n: number }>(`${prefix}_counters`)
        const next = { upsert: true, returnDocument: 'after' } as const
        const counter = await counters.findOneAndUpdate({ _id: 'outbox' }, { $inc: { n: 1 } }, next)
        // Where Python has it, in the document of the sender.
        const entry = { seq: counter?.n, target_id, event }
        await executions().updateOne({ _id: target_id }, { $push: { outbox: entry } } as never, { upsert: true })
      },
      rows: async () => {
        const counts: Record<string, number> = {}
        for (const part of ['executions', 'orphaned_outbox', 'early_traces', 'definitions', 'definition_versions']) {
          const documents = await db().collection(`${prefix}_${part}`).find().toArray()
          counts[part] = documents.length
          for (const field of ['outbox', 'spawns', 'processed', 'trace', 'timers']) {
            const entries = documents.flatMap((document) => Object.keys(document[field] ?? {}))
            counts[`${part}.${field}`] = entries.length
          }
        }
        return counts
      },
      tables: async () => (await db().listCollections().toArray()).map(({ name }) => name).sort(),
    }
  }

withServer('mongo', (server) => {
  // The substitute keeps a record of each write that a client may send again, which takes most of its time.
  const database = useDatabase(server, { retryWrites: false })

  describeStore({ describe, test }, 'MongoStore', {
    capabilities,
    // Under the second prefix without indexes: they make it faster, no more.
    open: (options) => new MongoStore(database.db(), { ...options, createIndexes: options.prefix === 'harel' }),
    probes: probesOn(() => database.db()),
    model: { milliseconds: 1000 },
  })
})
