/** SqliteStore and AsyncSqliteStore beside better-sqlite3 by hand, each commit durable (synchronous FULL). */
import { join } from 'node:path'
import { AsyncSqliteStore, SqliteStore } from '@harel/store-sqlite'
import { SqliteSaver } from '@langchain/langgraph-checkpoint-sqlite'
import Database from 'better-sqlite3'
import { actionsOf, storeContender } from '../contender.ts'
import { growthOf } from '../growth.ts'
import { versionOf } from '../machine.ts'
import { memoryOf } from '../memory.ts'
import { langgraph } from '../peers/langgraph.ts'
import { pythonStores } from '../peers/python.ts'
import { profileOf } from '../profile.ts'
import { restartOn } from '../restart.ts'
import { runnerOn } from '../runner.ts'
import type { Backend } from '../settings.ts'
import { measuresOf, type Site } from '../site.ts'
import { byHand, workerByHand } from './sqlite-by-hand.ts'
import { fileIn, fill, fillFile, inFolder } from './sqlite-database.ts'
import { listings } from './sqlite-listings.ts'

export const site: Site = {
  backend: 'sqlite',

  database: async (dir) => fileIn(dir),

  async open(path, peers) {
    // One connection for the store and the statements by hand, which is as warm for both.
    const db = new Database(path)
    const sync = new SqliteStore(db)
    const store = await AsyncSqliteStore.open(path)
    const worker = workerByHand(path)
    const theirs = new Database(`${path}.langgraph`)
    const python = pythonStores(`${path}.python`)
    return {
      store,
      contenders: [
        { name: 'SqliteStore', role: 'store', does: actionsOf(sync), isSync: true },
        { name: 'by hand', role: 'driver', does: byHand(db), isSync: true },
        storeContender('AsyncSqliteStore', store),
        { name: 'batches by hand', role: 'driver', does: worker.does, from: 2 },
        ...(peers ? [langgraph(new SqliteSaver(theirs)), ...python.contenders] : []),
      ],
      async [Symbol.asyncDispose]() {
        await Promise.all([store.close(), worker.close(), python.end()])
        sync.close()
        db.close()
        theirs.close()
      },
    }
  },

  goals: [
    { at: 1, variant: 'SqliteStore', beside: 'by hand', target: { max: 1.3 } },
    { at: 256, variant: 'AsyncSqliteStore', beside: 'batches by hand', target: { min: 0.85 } },
  ],
  gains: [{ at: 256, variant: 'AsyncSqliteStore', beside: 'SqliteStore', min: 5 }],
}

const levelOf = (db: Database.Database): string =>
  ['OFF', 'NORMAL', 'FULL', 'EXTRA'][Number(db.pragma('synchronous', { simple: true }))] ?? 'unknown'

export const sqlite: Backend = {
  measures: [
    ...measuresOf(site),
    profileOf(site),
    growthOf(site, fillFile),
    memoryOf(site, 'AsyncSqliteStore', fillFile),
    listings,
    ...runnerOn('sqlite'),
    restartOn(site),
  ],
  describe: (dir) =>
    inFolder(dir, async (folder) => {
      const { path } = fill(join(folder, 'bench.db'), 1)
      const db = new Database(path)
      // What LangGraph's checkpoints leave as it is.
      const byDefault = levelOf(db)
      new SqliteStore(db).close()
      const sqlite = db.prepare('SELECT sqlite_version()').pluck().get()
      const journal = String(db.pragma('journal_mode', { simple: true })).toUpperCase()
      const level = levelOf(db)
      db.close()
      const versions = ['better-sqlite3', '@langchain/langgraph-checkpoint-sqlite', 'xstate'].map(versionOf)
      const settings = `SQLite ${sqlite}, journal ${journal}, synchronous ${level}, but ${byDefault} for langgraph`
      return [`${versions.join(', ')}, ${settings}`]
    }),
}
