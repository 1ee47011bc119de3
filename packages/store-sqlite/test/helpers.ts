import { copyFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  asyncStore,
  type CommitChanges,
  type Execution,
  type ExecutionStore,
  newEvent,
  newExecution,
} from '@harel/store-base'
import { AsyncSqliteStore, type SqliteOptions, SqliteStore } from '@harel/store-sqlite'
import BetterSqlite3, { type Database, type Statement } from 'better-sqlite3'
import { onTestFinished } from 'vitest'

/** The path of a file that does not exist yet, in a folder that goes with the test. */
export function freshFile(): string {
  const folder = mkdtempSync(join(tmpdir(), 'harel-sqlite-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return join(folder, 'harel.db')
}

/** A copy of a database that Python harel has written. */
export function pythonFile(name: 'scenario' | 'runner'): string {
  const path = freshFile()
  copyFileSync(join(import.meta.dirname, 'vectors', `${name}.db`), path)
  return path
}

/** A connection past the stores. */
export function connect(path: string): Database {
  const db = new BetterSqlite3(path)
  onTestFinished(() => {
    db.close()
  })
  return db
}

/** Both stores behind the same face. */
export const twins: readonly {
  name: string
  open: (path: string, options?: SqliteOptions) => Promise<ExecutionStore>
}[] = [
  { name: 'SqliteStore', open: async (path, options) => asyncStore(SqliteStore.open(path, options)) },
  { name: 'AsyncSqliteStore', open: (path, options) => AsyncSqliteStore.open(path, options) },
]

/** One of everything that a commit can write. */
export const everything = (name: string): CommitChanges => ({
  emits: [{ targetId: name, event: newEvent({ kind: 'Tick' }) }],
  processedEventId: `${name}-event`,
  timers: [{ action: 'schedule', path: 'P', fireAt: 1 }],
  spawns: [{ childId: `${name}-child`, rootPath: '', context: {} }],
  trace: { event: 'Tick' },
})

export const execution = (id: string, fields: Partial<Execution> = {}): Execution =>
  newExecution({ id, definitionId: 'd', ...fields })

/** How many rows each table of a prefix has. */
export function rows(db: Database, prefix = 'harel'): Record<string, number> {
  const tables = ['executions', 'outbox', 'processed_events', 'timers', 'spawns', 'trace']
  return Object.fromEntries(
    tables.map((table) => [table, db.prepare(`SELECT COUNT(*) FROM ${prefix}_${table}`).pluck().get() as number]),
  )
}

/** Calls `use` with each statement that is prepared on the connection from now on. */
function onPrepared(db: Database, use: (statement: Statement) => void): void {
  const prepare = db.prepare.bind(db)
  const watched = (sql: string) => {
    const statement = prepare(sql)
    use(statement)
    return statement
  }
  db.prepare = watched as typeof db.prepare
}

/** The texts of the statements that are prepared on a connection from now on. */
export function recordPrepared(db: Database): ReadonlySet<string> {
  const texts = new Set<string>()
  onPrepared(db, ({ source }) => texts.add(source))
  return texts
}

/** Lets the next run of a statement fail that is not prepared yet. */
export function failNext(db: Database, text: string, failure: Error): void {
  let failed = false
  onPrepared(db, (statement) => {
    const run = statement.run.bind(statement)
    statement.run = (...params) => {
      if (failed || statement.source !== text) return run(...params)
      failed = true
      throw failure
    }
  })
}
