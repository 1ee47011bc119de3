import { InvalidArgument } from '@harel/store-base'
import type BetterSqlite3 from 'better-sqlite3'
import { Connection, toStoreError } from './connection.js'

/** The connections that were opened here and so are closed with their store; a caller's are the caller's to close. */
const opened = new WeakSet<BetterSqlite3.Database>()

/** Closes the connection if it is ours. */
export function closeOwned(db: BetterSqlite3.Database): void {
  if (opened.has(db)) db.close()
}

/** @throws InvalidArgument */
export function checkPath(path: unknown): string {
  if (typeof path !== 'string' || path === '' || path.includes('\0')) {
    throw new InvalidArgument('path', path, "the path of a file, or ':memory:'")
  }
  return path
}

/**
 * A connection to a database file, which is made when missing: write-ahead log, and each commit on the disk before it
 * returns (better-sqlite3 itself is built to lose the last ones in a power failure).
 *
 * @param Driver better-sqlite3, which a worker thread gets from elsewhere than its host
 * @throws StoreUnavailable
 */
export function openFile(Driver: typeof BetterSqlite3, path: string, lockTimeout: number): Connection {
  try {
    // No waiting by SQLite: `Connection` does it.
    const connection = new Connection(new Driver(path, { timeout: 0 }), lockTimeout)
    opened.add(connection.db)
    connection.retry(() => connection.db.pragma('journal_mode = WAL'))
    ensureDurable(connection)
    return connection
  } catch (error) {
    throw toStoreError(error)
  }
}

/** Raises the level of `synchronous` to FULL; EXTRA stays. Source: https://www.sqlite.org/pragma.html#pragma_synchronous */
export function ensureDurable(connection: Connection): void {
  const FULL = 2
  const level = connection.retry(() => connection.db.pragma('synchronous', { simple: true }))
  if (Number(level) < FULL) connection.retry(() => connection.db.pragma('synchronous = FULL'))
}
