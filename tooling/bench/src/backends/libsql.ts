/** LibsqlStore on a file beside batches by hand, all on one client, each durable (synchronous FULL). */
import { join } from 'node:path'
import { LibsqlStore } from '@harel/store-libsql'
import { createClient } from '@libsql/client'
import Database from 'better-sqlite3'
import { storeContender } from '../contender.ts'
import { growthOf } from '../growth.ts'
import { versionOf } from '../machine.ts'
import { memoryOf } from '../memory.ts'
import { profileOf } from '../profile.ts'
import type { Backend } from '../settings.ts'
import { measuresOf, type Site } from '../site.ts'
import { batchesByHand, guardedByHand } from './guarded-by-hand.ts'
import { databaseOf } from './libsql-by-hand.ts'
import { fileIn, fillFile, inFolder } from './sqlite-database.ts'

/** A new file in WAL mode, in which it stays. */
function makeWal(path: string): void {
  const db = new Database(path)
  db.pragma('journal_mode = WAL')
  db.close()
}

export const site: Site = {
  backend: 'libsql',
  async database(dir) {
    const file = fileIn(dir)
    makeWal(file.url)
    return file
  },

  async open(path) {
    const client = createClient({ url: `file:${path}` })
    const store = new LibsqlStore(client)
    const ungrouped = new LibsqlStore(client, { groupCommit: false })
    const db = databaseOf(client)
    return {
      store,
      contenders: [
        storeContender('LibsqlStore', store),
        storeContender('LibsqlStore, one by one', ungrouped),
        { name: 'batches by hand', role: 'driver', does: guardedByHand(db) },
        { name: 'shared batches by hand', role: 'driver', does: batchesByHand(db), from: 2 },
      ],
      async [Symbol.asyncDispose]() {
        await Promise.all([store.close(), ungrouped.close()])
        client.close()
      },
    }
  },

  goals: [
    { at: 1, variant: 'LibsqlStore', beside: 'batches by hand', target: { max: 1.3 } },
    { at: 256, variant: 'LibsqlStore', beside: 'shared batches by hand', target: { min: 0.85 } },
  ],
}

export const libsql: Backend = {
  measures: [...measuresOf(site), profileOf(site), growthOf(site, fillFile), memoryOf(site, 'LibsqlStore', fillFile)],
  describe: (dir) =>
    inFolder(dir, async (folder) => {
      const path = join(folder, 'bench.db')
      makeWal(path)
      const client = createClient({ url: `file:${path}` })
      const store = new LibsqlStore(client)
      try {
        await store.load('nothing')
        const { rows } = await client.execute(
          'SELECT sqlite_version() AS version, journal_mode, synchronous FROM pragma_journal_mode, pragma_synchronous',
        )
        const [row] = rows
        const level = ['OFF', 'NORMAL', 'FULL', 'EXTRA'][Number(row?.synchronous)]
        const journal = String(row?.journal_mode).toUpperCase()
        const version = versionOf('@libsql/client')
        return [`${version}, SQLite ${row?.version}, journal ${journal}, synchronous ${level} for all`]
      } finally {
        await store.close()
        client.close()
      }
    }),
}
