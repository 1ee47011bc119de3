import { InvalidArgument } from '@harel/store-base'
import { claimFile } from '@harel/store-base/sql'
import type BetterSqlite3 from 'better-sqlite3'
import { Connection, owned, PACKAGE, toStoreError } from './connection.js'

function checkPath(path: unknown): string {
  if (typeof path !== 'string' || path === '' || path.includes('\0')) {
    throw new InvalidArgument('path', path, "the path of a file, or ':memory:'")
  }
  return path
}

/**
 * Claims the file for this package, before it is opened.
 *
 * @returns what ends the claim
 * @throws InvalidArgument for what is no path, and while a store of another package has the file open
 */
export function claimPath(path: unknown): () => void {
  // As better-sqlite3 reads it.
  const file = checkPath(path).trim()
  return file === '' || file === ':memory:' ? () => {} : claimFile('path', file, PACKAGE)
}

/**
 * A connection to a database file, which is made when missing: write-ahead log, and each commit on the disk before it
 * returns (better-sqlite3 itself is built to lose the last ones in a power failure).
 *
 * @param Driver better-sqlite3, which a worker thread gets from elsewhere than its host
 * @throws StoreUnavailable
 */
export function openFile(Driver: typeof BetterSqlite3, path: string, lockTimeout: number): Connection {
  const connection = new Connection(connect(Driver, path), lockTimeout)
  owned.add(connection.db)
  try {
    connection.exec('PRAGMA journal_mode = WAL')
    ensureDurable(connection)
    // Larger checkpoints write pages that many commits have changed fewer times; the log grows to about 16 MB for it.
    connection.exec('PRAGMA wal_autocheckpoint = 4000')
    return connection
  } catch (error) {
    connection.close()
    throw error
  }
}

function connect(Driver: typeof BetterSqlite3, path: string): BetterSqlite3.Database {
  try {
    // No waiting by SQLite: `Connection` does it.
    return new Driver(path, { timeout: 0 })
  } catch (error) {
    throw toStoreError(error)
  }
}

/**
 * Raises the level of `synchronous` to FULL; EXTRA stays. Said outright even where it is FULL already: a level that
 * nobody has set falls to NORMAL once better-sqlite3 finds a write-ahead log.
 *
 * Sources: https://www.sqlite.org/pragma.html#pragma_synchronous, https://www.sqlite.org/compile.html#default_wal_synchronous
 */
export function ensureDurable(connection: Connection): void {
  const EXTRA = 3
  const level = connection.retry(() => connection.db.pragma('synchronous', { simple: true }))
  if (Number(level) < EXTRA) connection.exec('PRAGMA synchronous = FULL')
}
