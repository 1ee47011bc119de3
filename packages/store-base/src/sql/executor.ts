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

/** Runs statements, in their order. */
export type RunSql = (statements: readonly Sql[]) => Promise<SqlResult[]>

/** A connection to a database of SQLite's dialect that takes several statements at once. */
export interface SqlExecutor {
  /**
   * Statements that write nothing.
   *
   * @param from `replica`: a copy of the database may answer, if it knows all that was committed before the call
   * @throws StoreUnavailable, SchemaMissing, StoreClosed
   */
  read(statements: readonly Sql[], from?: 'primary' | 'replica'): Promise<SqlResult[]>
  /** One transaction: all or nothing. @throws as `read`, and OutcomeUnknown when it may have been committed */
  write(statements: readonly Sql[]): Promise<SqlResult[]>
  /**
   * The same for work that goes by what its statements have given, where each of them is no round trip. `work` may be
   * done again from its start.
   */
  readonly transact?: (<T>(work: (run: RunSql) => Promise<T>) => Promise<T>) | undefined
  /**
   * What an error of these methods says beyond its code. `refused`: the database has answered that it does not carry out
   * a statement; others may pass. `too large`: the answer to a read is more than it sends at once; a smaller one may pass.
   */
  reasonOf(error: unknown): 'refused' | 'too large' | undefined
  /** Waits for what is under way. */
  close(): Promise<void>
}

/**
 * Whether a failed request was never sent, because there was no connection: by the codes of Node, or by its words
 * where a driver has kept no more than these.
 */
export function wasNotSent(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  const { code } = error as { code?: unknown }
  if (/ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|CONNECT_TIMEOUT/.test(`${code} ${error.message}`))
    return true
  // One error for each address of a name.
  if (error instanceof AggregateError) return error.errors.every(wasNotSent)
  return wasNotSent(error.cause)
}

/** Whether an error of SQLite may pass by itself: a lock, a full or failing disk, a lack of memory, an interruption. */
export const mayPass = (code: string): boolean =>
  /^SQLITE_(BUSY|LOCKED|FULL|IOERR|NOMEM|INTERRUPT|PROTOCOL|SCHEMA)/.test(code)
