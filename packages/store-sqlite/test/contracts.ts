import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Names, type StoreCapabilities } from '@harel/store-base'
import { storeSchema } from '@harel/store-base/sql'
import type { Probes } from '@harel/store-testing'
import BetterSqlite3, { type Database } from 'better-sqlite3'
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
export const inMemory = { ...inFile, durable: false, shared: false }

/** What a column holds beside the payload, which may be anything. */
function definitionOf(text: string): string {
  try {
    return JSON.parse(text).definition_id ?? ''
  } catch {
    return ''
  }
}

/** A path in a folder that goes when the tests of this file are done. */
export function lastingFile(): string {
  const folder = mkdtempSync(join(tmpdir(), 'harel-contracts-'))
  afterAll(() => rmSync(folder, { recursive: true, force: true }))
  return join(folder, 'harel.db')
}

/** A connection that is opened when it is first needed, and closed when the tests of this file are done. */
function lazily(path: string): () => Database {
  let db: Database | undefined
  afterAll(() => {
    db?.close()
  })
  return () => {
    db ??= new BetterSqlite3(path)
    return db
  }
}

export function probesOn(path: string): (prefix: string) => Probes {
  const db = lazily(path)
  return (prefix) => ({
    executionText: async (id) =>
      db().prepare<[string], string>(`SELECT data FROM ${prefix}_executions WHERE id = ?`).pluck().get(id),
    insertExecutionText: async (id, version, text) => {
      const insert = `INSERT INTO ${prefix}_executions (id, definition_id, data, version) VALUES (?, ?, ?, ?)`
      db().prepare(insert).run(id, definitionOf(text), text, version)
    },
    insertOutboxText: async (targetId, text) => {
      db().prepare(`INSERT INTO ${prefix}_outbox (target_id, event) VALUES (?, ?)`).run(targetId, text)
    },
    rows: async () => {
      const tables = storeSchema('sqlite', prefix).filter(({ kind }) => kind === 'table')
      const count = (table: string) => db().prepare<[], number>(`SELECT COUNT(*) FROM ${table}`).pluck().get() ?? 0
      return Object.fromEntries(tables.map(({ name }) => [name, count(name)]))
    },
    tables: async () => db().prepare<[], string>('SELECT name FROM sqlite_master ORDER BY 1').pluck().all(),
  })
}

/**
 * Makes the tables of a prefix as Python harel does, and that of the definitions, which it lacks. @throws InvalidPrefix
 */
export function makePythonTables(path: string, prefix: string): void {
  const { definitions } = Names(prefix)
  const python = new BetterSqlite3(join(import.meta.dirname, 'vectors', 'scenario.db'), { readonly: true })
  const made = python.prepare<[], string>("SELECT sql FROM sqlite_master WHERE type = 'table' AND name LIKE 'harel_%'")
  const texts = made.pluck().all()
  python.close()
  const db = new BetterSqlite3(path)
  db.pragma('journal_mode = WAL')
  for (const text of texts) db.exec(text.replace('CREATE TABLE harel_', `CREATE TABLE IF NOT EXISTS ${prefix}_`))
  db.exec(storeSchema('sqlite', prefix).find(({ name }) => name === definitions)?.sql ?? '')
  db.close()
}
