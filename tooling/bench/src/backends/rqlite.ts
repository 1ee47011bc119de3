/** RqliteStore beside requests by hand, on one node. */
import { RqliteStore } from '@harel/store-rqlite'
import { storeContender } from '../contender.ts'
import { growthOf } from '../growth.ts'
import { memoryOf } from '../memory.ts'
import { profileOf } from '../profile.ts'
import { serverOf } from '../servers.ts'
import type { Backend } from '../settings.ts'
import { measuresOf, type Site } from '../site.ts'
import { batchesByHand, guardedByHand } from './guarded-by-hand.ts'
import { databaseOf } from './rqlite-by-hand.ts'
import { fillRqlite } from './rqlite-fill.ts'

export const site: Site = {
  backend: 'rqlite',
  protocol: 'http',

  async database() {
    const { url } = await serverOf('rqlite')
    return {
      url,
      async [Symbol.asyncDispose]() {
        const headers = { 'content-type': 'application/json' }
        const tables = ['executions', 'outbox', 'processed_events', 'timers', 'spawns', 'trace', 'definitions']
        const body = JSON.stringify(tables.map((table) => `DROP TABLE IF EXISTS harel_${table}`))
        const reply = await fetch(`${url}/db/execute`, { method: 'POST', headers, body })
        if (!reply.ok) throw new Error(`the tables are still there: ${reply.status}`)
      },
    }
  },

  async open(url) {
    const store = await RqliteStore.connect(url)
    const ungrouped = await RqliteStore.connect(url, { groupCommit: false })
    const db = databaseOf(url)
    return {
      store,
      contenders: [
        storeContender('RqliteStore', store),
        storeContender('RqliteStore, one by one', ungrouped),
        { name: 'requests by hand', role: 'driver', does: guardedByHand(db) },
        { name: 'batches by hand', role: 'driver', does: batchesByHand(db), from: 2 },
      ],
      async [Symbol.asyncDispose]() {
        await Promise.all([store.close(), ungrouped.close()])
      },
    }
  },

  goals: [
    { at: 1, variant: 'RqliteStore', beside: 'requests by hand', target: { max: 1.3 } },
    { at: 256, variant: 'RqliteStore', beside: 'batches by hand', target: { min: 0.85 } },
    { at: 256, variant: 'RqliteStore', beside: 'requests by hand', target: { min: 3 } },
  ],
  gains: [{ at: 256, variant: 'RqliteStore', beside: 'RqliteStore', min: 8 }],
}

/** Ten times as many take a minute and a half to fill, twice, and as long to go through. */
const LARGEST = 100_000

export const rqlite: Backend = {
  measures: [
    ...measuresOf(site),
    profileOf(site),
    growthOf(site, fillRqlite, LARGEST),
    memoryOf(site, 'RqliteStore', fillRqlite, LARGEST),
  ],
  async describe() {
    const { url, describe } = await serverOf('rqlite')
    const status = (await (await fetch(`${url}/status`)).json()) as { store: { sqlite3: { version: string } } }
    return [`${describe()}, SQLite ${status.store.sqlite3.version}, one node, each write synced in its Raft log`]
  },
}
