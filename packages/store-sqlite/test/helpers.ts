import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import type { Worker } from 'node:worker_threads'
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

const silent: SqliteOptions = { onWarning: () => {} }

/** Both stores behind the same face. */
export const twins: readonly {
  name: string
  open: (path: string, options?: SqliteOptions) => Promise<ExecutionStore>
  migrate: (path: string) => Promise<void>
}[] = [
  {
    name: 'SqliteStore',
    open: async (path, options) => asyncStore(SqliteStore.open(path, options)),
    migrate: async (path) => {
      using store = SqliteStore.open(path, silent)
      store.migrate()
    },
  },
  {
    name: 'AsyncSqliteStore',
    open: (path, options) => AsyncSqliteStore.open(path, options),
    migrate: async (path) => {
      await using store = await AsyncSqliteStore.open(path, silent)
      await store.migrate()
    },
  },
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

/** The tables that Python has too. */
export const tables = ['executions', 'outbox', 'processed_events', 'timers', 'spawns', 'trace']

/** How many rows each table of a prefix has. */
export function rows(db: Database, prefix = 'harel'): Record<string, number> {
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

/** The steps of the plans of statements, as SQLite tells them. */
export function planSteps(db: Database, texts: Iterable<string>): { sql: string; detail: string }[] {
  // A copy, because this prepares statements too.
  return [...texts].flatMap((sql) => {
    const parameters: null[] = Array(sql.split('?').length - 1).fill(null)
    const plan = db.prepare<null[], { detail: string }>(`EXPLAIN QUERY PLAN ${sql}`).all(...parameters)
    return plan.map(({ detail }) => ({ sql, detail }))
  })
}

/** Those that read a whole table or sort. */
export const expensiveSteps = (db: Database, texts: Iterable<string>): { sql: string; detail: string }[] =>
  planSteps(db, texts).filter(({ detail }) => /^(SCAN (?!CONSTANT ROW|json_each)|USE TEMP)/.test(detail))

/** Calls `hook` before each run of a statement that is not prepared yet. */
export function beforeRuns(db: Database, text: string, hook: () => void): void {
  onPrepared(db, (statement) => {
    const run = statement.run.bind(statement)
    statement.run = (...params) => {
      if (statement.source === text) hook()
      return run(...params)
    }
  })
}

/** Lets the next run of a statement fail that is not prepared yet. */
export function failNext(db: Database, text: string, failure: Error): void {
  let failed = false
  beforeRuns(db, text, () => {
    if (failed) return
    failed = true
    throw failure
  })
}

/** Lets the outbox refuse events to `poison`: as an error of one statement, or as one that ends the transaction. */
export const poison = (db: Database, kind: 'ABORT' | 'ROLLBACK') =>
  db.exec(`CREATE TRIGGER poison BEFORE INSERT ON harel_outbox WHEN NEW.target_id = 'poison'
    BEGIN SELECT RAISE(${kind}, 'poisoned'); END`)

/** An `AsyncSqliteStore` and its thread. */
export async function openWithWorker(
  path: string,
  options?: SqliteOptions,
): Promise<{ store: AsyncSqliteStore; worker: Worker }> {
  const workers: Worker[] = []
  const note = (worker: Worker) => workers.push(worker)
  process.on('worker', note)
  const store = await AsyncSqliteStore.open(path, options)
  process.off('worker', note)
  const [worker] = workers
  if (worker === undefined) throw new Error('no thread was started')
  return { store, worker }
}

/** Starts a program of the folder `programs` in a process of its own, which goes with the test. */
export function start(program: string, ...args: string[]): ChildProcessByStdio<null, Readable, null> {
  const file = join(import.meta.dirname, 'programs', program)
  const child = spawn(process.execPath, [file, ...args], { stdio: ['ignore', 'pipe', 'inherit'] })
  onTestFinished(() => {
    child.kill('SIGKILL')
  })
  return child
}

/** What a program has printed when it ends by itself. */
export async function run(program: string, ...args: string[]): Promise<string> {
  const child = start(program, ...args)
  const [printed, [code]] = await Promise.all([text(child.stdout), once(child, 'exit')])
  if (code !== 0) throw new Error(`${program} ended with ${code}; it printed ${printed}`)
  return printed
}

const modules = join(import.meta.dirname, '../../../node_modules')
const packages: Record<string, string> = {
  '@harel/store-sqlite': join(import.meta.dirname, '..'),
  '@types/node': join(modules, '@types/node'),
  'better-sqlite3': join(import.meta.dirname, '../node_modules/better-sqlite3'),
}

/** Makes a folder find packages as if they were installed in it. */
export function install(folder: string, names: readonly string[]): void {
  for (const name of names) {
    const link = join(folder, 'node_modules', name)
    mkdirSync(dirname(link), { recursive: true })
    symlinkSync(packages[name] ?? '', link)
  }
}
