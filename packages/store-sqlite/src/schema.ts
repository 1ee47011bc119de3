import { checkCount, checkFlag, checkStoreOptions, Names, type OnWarning, type StoreOptions } from '@harel/store-base'
import {
  checkLacking,
  FILLED_AT_ONCE,
  hasSummary,
  missingFromSqlite,
  type SchemaObject,
  SMALL_TABLE,
  sqliteSummaryFill,
} from '@harel/store-base/sql'
import type { Connection } from './connection.js'

export interface SqliteOptions extends StoreOptions {
  /** Before the names of the tables. Default: `harel`. */
  prefix?: string
  /** Create what is missing. Default: true; false: nothing is created, and missing tables are an error. */
  createSchema?: boolean
  /** How many steps of a trace are kept; 0: all. Default: 200. */
  traceMax?: number
  /** How long to wait for other writers of the file, in milliseconds. Default: 5000. */
  lockTimeout?: number
}

export type Settings = Required<Pick<SqliteOptions, 'prefix' | 'createSchema' | 'traceMax' | 'lockTimeout'>>

/** @throws InvalidPrefix, InvalidArgument */
export function checkOptions(options: SqliteOptions): Settings {
  checkStoreOptions(options, ['prefix', 'createSchema', 'traceMax', 'lockTimeout'])
  const { prefix = 'harel', createSchema = true, traceMax = 200, lockTimeout = 5000 } = options
  Names(prefix)
  return {
    prefix,
    createSchema: checkFlag('createSchema', createSchema),
    traceMax: checkCount('traceMax', traceMax),
    lockTimeout: checkCount('lockTimeout', lockTimeout),
  }
}

const quote = (name: string): string => `"${name}"`

function missing(connection: Connection, prefix: string): SchemaObject[] {
  const objects = connection.all<{ type: string; name: string }>({
    sql: 'SELECT type, name FROM sqlite_master',
    params: [],
  })
  const columns = connection.all<{ name: string }>({
    sql: 'SELECT name FROM pragma_table_info(?)',
    params: [Names(prefix).executions],
  })
  return missingFromSqlite(
    prefix,
    objects,
    columns.map(({ name }) => name),
  )
}

const isLarge = (connection: Connection, table: string): boolean =>
  connection.get({ sql: `SELECT 1 FROM ${quote(table)} LIMIT 1 OFFSET ${SMALL_TABLE}`, params: [] }) !== undefined

/** What is missing and can be added in passing: not to a table that is in use and large. */
function addable(connection: Connection, prefix: string): SchemaObject[] {
  const lacking = missing(connection, prefix)
  const made = new Set(lacking.filter(({ kind }) => kind === 'table').map(({ table }) => table))
  return lacking.filter(({ table }) => made.has(table) || !isLarge(connection, table))
}

/**
 * Makes the tables ready and says whether the executions have their summary columns.
 *
 * Reads the catalogue first and changes only what is missing. What would take long on a table that is in use is left
 * to `migrate`, with a warning.
 *
 * @throws SchemaMissing, InvalidArgument when the prefix differs from that of existing tables by case only
 */
export function prepareSchema(
  connection: Connection,
  { prefix, createSchema }: Settings,
  onWarning: OnWarning,
): { summary: boolean } {
  if (createSchema && addable(connection, prefix).length > 0) {
    connection.write(() => {
      // Once more, now that nobody else can change it.
      const objects = addable(connection, prefix)
      for (const { sql } of objects) connection.exec(sql)
      if (!hasSummary(objects)) fillSummaries(connection, prefix)
    })
  }
  return checkLacking(missing(connection, prefix), onWarning)
}

/** Fills the summaries that are missing, of the rows behind one and up to another. */
function fillSummaries(connection: Connection, prefix: string, after = 0, upTo = Number.MAX_SAFE_INTEGER): void {
  connection.run({ sql: sqliteSummaryFill(prefix), params: [after, upTo] })
}

/** Adds whatever is missing, however long it takes; other writers are let in between the steps. */
export function migrateSchema(connection: Connection, prefix: string): void {
  const lacking = (kind: SchemaObject['kind']) => missing(connection, prefix).filter((object) => object.kind === kind)
  const add = (kind: SchemaObject['kind']) => {
    for (const { sql } of lacking(kind)) connection.write(() => connection.exec(sql))
  }
  add('table')
  add('column')
  if (lacking('trigger').length > 0) {
    // Up to the last row that is there now: with those that others add meanwhile it might never end.
    const sql = `SELECT MAX(rowid) AS last FROM ${quote(Names(prefix).executions)}`
    const last = connection.get<{ last: number | null }>({ sql, params: [] })?.last ?? 0
    for (let after = 0; after < last; after += FILLED_AT_ONCE) {
      connection.write(() => fillSummaries(connection, prefix, after, after + FILLED_AT_ONCE))
    }
    // With what was written meanwhile, and in one transaction: where the triggers are, every row has its summary, also
    // for a store that is opened while this goes on or after it broke off.
    connection.write(() => {
      for (const { sql } of lacking('trigger')) connection.exec(sql)
      fillSummaries(connection, prefix)
    })
  }
  // Last, because it is faster to build an index than to keep it while the columns are filled.
  add('index')
}
