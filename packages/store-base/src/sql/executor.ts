import type { Sql } from './listing.js'

/** What one statement gave. */
export interface SqlResult {
  /** Values in the order of the columns. */
  readonly rows: readonly (readonly (string | number | null)[])[]
  /** How many rows it wrote. */
  readonly changes: number
  /** The rowid that it, or a statement before it, inserted last. */
  readonly lastId: number
}

/** A connection to a database of SQLite's dialect that takes several statements at once. */
export interface SqlExecutor {
  /** Statements that write nothing. @throws StoreUnavailable, SchemaMissing */
  read(statements: readonly Sql[]): Promise<SqlResult[]>
  /** One transaction: all or nothing. @throws as `read`, and OutcomeUnknown when it may have been committed */
  write(statements: readonly Sql[]): Promise<SqlResult[]>
  close(): Promise<void>
}
