import { DatabaseSync, type SQLOutputValue } from 'node:sqlite'
import { setImmediate as turn } from 'node:timers/promises'
import { StoreUnavailable } from '../src/errors.js'
import type { SqlExecutor, SqlResult } from '../src/sql/executor.js'
import type { Sql } from '../src/sql/listing.js'

class AnswerTooLarge extends Error {}

/** An executor on a database in memory. Every list of statements takes a turn of the event loop to arrive. */
export class SqliteExecutor implements SqlExecutor {
  readonly db = new DatabaseSync(':memory:')
  readonly reads: { statements: readonly Sql[]; from: 'primary' | 'replica' }[] = []
  readonly writes: (readonly Sql[])[] = []
  /** The most rows in an answer to a read. */
  maxRows = Number.POSITIVE_INFINITY

  async read(statements: readonly Sql[], from: 'primary' | 'replica' = 'primary'): Promise<SqlResult[]> {
    this.reads.push({ statements, from })
    await turn()
    const results = statements.map((statement) => this.#run(statement))
    if (results.some(({ rows }) => rows.length > this.maxRows)) throw new StoreUnavailable('', new AnswerTooLarge())
    return results
  }

  async write(statements: readonly Sql[]): Promise<SqlResult[]> {
    this.writes.push(statements)
    await turn()
    this.db.exec('BEGIN IMMEDIATE')
    try {
      const results = statements.map((statement) => this.#run(statement))
      this.db.exec('COMMIT')
      return results
    } catch (error) {
      if (this.db.isTransaction) this.db.exec('ROLLBACK')
      throw error
    }
  }

  reasonOf(error: unknown): 'refused' | 'too large' | undefined {
    if (!(error instanceof StoreUnavailable)) return undefined
    if (error.cause instanceof AnswerTooLarge) return 'too large'
    return error.cause instanceof Error && 'errcode' in error.cause ? 'refused' : undefined
  }

  async close(): Promise<void> {
    this.db.close()
  }

  /** Another database with the same content. */
  copy(): SqliteExecutor {
    const copy = new SqliteExecutor()
    copy.db.deserialize(this.db.serialize())
    return copy
  }

  #run({ sql, params }: Sql): SqlResult {
    try {
      const statement = this.db.prepare(sql)
      if (statement.columns().length > 0) {
        statement.setReturnArrays(true)
        const rows = statement.all(...params) as unknown as SqlResult['rows']
        return { rows, changes: 0, lastId: 0 }
      }
      const { changes, lastInsertRowid } = statement.run(...params)
      return { rows: [], changes: Number(changes), lastId: Number(lastInsertRowid) }
    } catch (error) {
      throw new StoreUnavailable('SQLite refused a statement', error)
    }
  }
}

/** All rows of a table, in the order of its rowids. */
export const rowsOf = ({ db }: SqliteExecutor, table: string): Record<string, SQLOutputValue>[] =>
  db.prepare(`SELECT * FROM "harel_${table}" ORDER BY rowid`).all()

/** All that is stored, table by table. */
export const dump = (executor: SqliteExecutor): Record<string, unknown> =>
  Object.fromEntries(
    ['executions', 'outbox', 'processed_events', 'timers', 'spawns', 'trace'].map((table) => [
      table,
      rowsOf(executor, table),
    ]),
  )

/** The tables as Python harel makes them. */
export const PYTHON_TABLES = `
  CREATE TABLE harel_executions (id TEXT PRIMARY KEY, definition_id TEXT NOT NULL, data TEXT NOT NULL, version INTEGER NOT NULL);
  CREATE TABLE harel_outbox (seq INTEGER PRIMARY KEY AUTOINCREMENT, target_id TEXT, event TEXT NOT NULL);
  CREATE TABLE harel_processed_events (execution_id TEXT NOT NULL, event_id TEXT NOT NULL, PRIMARY KEY (execution_id, event_id));
  CREATE TABLE harel_timers (execution_id TEXT NOT NULL, path TEXT NOT NULL, fire_at REAL NOT NULL, PRIMARY KEY (execution_id, path));
  CREATE TABLE harel_spawns (seq INTEGER PRIMARY KEY AUTOINCREMENT, parent_id TEXT NOT NULL, child_id TEXT NOT NULL, root_path TEXT NOT NULL, context TEXT NOT NULL);
  CREATE TABLE harel_trace (execution_id TEXT NOT NULL, idx INTEGER NOT NULL, entry TEXT NOT NULL, PRIMARY KEY (execution_id, idx));
`
