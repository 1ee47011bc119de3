import { Names } from '../names.js'
import { STATUSES } from '../records.js'
import { summaryFieldSql } from './summary-text.js'

/** The layout of Python harel that these tables are compatible with. Nothing in a database records it. */
export const SCHEMA_VERSION = 3

export type Dialect = 'sqlite' | 'postgres'

/** One thing that a schema consists of, and the statement that makes it. */
export interface SchemaObject {
  readonly kind: 'table' | 'column' | 'index' | 'trigger' | 'function'
  /** A column's name stands without its table. */
  readonly name: string
  readonly table: string
  /** Whether Python harel makes it too. What it does not make is an addition that it does not notice. */
  readonly shared: boolean
  readonly sql: string
}

/** Column types that differ between the dialects. */
const TYPES = {
  sqlite: { seq: 'INTEGER PRIMARY KEY AUTOINCREMENT', integer: 'INTEGER', real: 'REAL' },
  postgres: { seq: 'BIGSERIAL PRIMARY KEY', integer: 'INT', real: 'DOUBLE PRECISION' },
} as const

/**
 * Listings filter by these columns and show them. Our commits set them; a trigger fills them from the payload when
 * `meta_version` is not `version`, which only other writers leave so.
 */
const summaryColumns = (dialect: Dialect): readonly (readonly [name: string, type: string])[] => [
  ['status', 'TEXT'],
  ['parent_id', 'TEXT'],
  ['outcome', 'TEXT'],
  ['active_path', 'TEXT'],
  ['finished_at', TYPES[dialect].real],
  ['meta_version', TYPES[dialect].integer],
]

/**
 * Room in each page of the executions. A new version of a row that finds room in the page of the old one needs no new
 * entries in the indexes, where its indexed columns are the same (PostgreSQL, "Heap-Only Tuples"); most commits are such.
 */
const ROOM = 'fillfactor = 70'

/** How a table is written in statements: Postgres folds Python's unquoted names to lower case. */
const identifier = (dialect: Dialect, name: string): string => `"${dialect === 'postgres' ? name.toLowerCase() : name}"`

const builder = (dialect: Dialect) => {
  const quote = (name: string) => identifier(dialect, name)
  return {
    table: (name: string, shared: boolean, columns: readonly string[], storage?: string): SchemaObject => ({
      kind: 'table',
      name,
      table: name,
      shared,
      sql: `CREATE TABLE IF NOT EXISTS ${quote(name)} (${columns.join(', ')})${storage ? ` WITH (${storage})` : ''}`,
    }),
    column: (table: string, name: string, type: string, storage?: string): SchemaObject => ({
      kind: 'column',
      name,
      table,
      shared: false,
      sql: `ALTER TABLE ${quote(table)} ADD COLUMN ${name} ${type}${storage ? `, SET (${storage})` : ''}`,
    }),
    index: (name: string, table: string, shared: boolean, on: string): SchemaObject => ({
      kind: 'index',
      name,
      table,
      shared,
      sql: `CREATE INDEX IF NOT EXISTS ${quote(name)} ON ${quote(table)} ${on}`,
    }),
  }
}

/**
 * The tables of the store, in the order in which they are made: those of Python harel, then what we add to them.
 *
 * Every read of the protocol has its index. Ids are compared by bytes: SQLite does so by itself, in Postgres the
 * indexes say `COLLATE "C"`.
 *
 * @throws InvalidPrefix
 */
export function storeSchema(dialect: Dialect, prefix?: string): SchemaObject[] {
  const names = Names(prefix)
  const { table, column, index } = builder(dialect)
  const { seq, integer, real } = TYPES[dialect]
  const bytes = (column: string) => (dialect === 'postgres' ? `${column} COLLATE "C"` : column)
  const { executions } = names
  const summary = summaryColumns(dialect)
  const room = dialect === 'postgres' ? ROOM : undefined
  // The payload comes last: SQLite reads a row from its start, and a large one goes on in other pages.
  const executionColumns = ['id TEXT PRIMARY KEY', 'definition_id TEXT NOT NULL', `version ${integer} NOT NULL`]
  return [
    table(
      executions,
      true,
      [...executionColumns, ...summary.map((pair) => pair.join(' ')), 'data TEXT NOT NULL'],
      room,
    ),
    table(names.outbox, true, [`seq ${seq}`, 'target_id TEXT', 'event TEXT NOT NULL']),
    table(names.processedEvents, true, [
      'execution_id TEXT NOT NULL',
      'event_id TEXT NOT NULL',
      'PRIMARY KEY (execution_id, event_id)',
    ]),
    table(names.timers, true, [
      'execution_id TEXT NOT NULL',
      'path TEXT NOT NULL',
      `fire_at ${real} NOT NULL`,
      'PRIMARY KEY (execution_id, path)',
    ]),
    table(names.spawns, true, [
      `seq ${seq}`,
      'parent_id TEXT NOT NULL',
      'child_id TEXT NOT NULL',
      'root_path TEXT NOT NULL',
      'context TEXT NOT NULL',
    ]),
    table(names.trace, true, [
      'execution_id TEXT NOT NULL',
      `idx ${integer} NOT NULL`,
      'entry TEXT NOT NULL',
      'PRIMARY KEY (execution_id, idx)',
    ]),
    table(names.definitions, false, [
      'id TEXT NOT NULL',
      'version TEXT NOT NULL',
      'definition TEXT NOT NULL',
      `published_at ${real}`,
      'PRIMARY KEY (id, version)',
    ]),
    // The last column of a table that Python has made brings the room along.
    ...summary.map(([name, type]) => column(executions, name, type, name === 'meta_version' ? room : undefined)),
    ...(dialect === 'sqlite' ? sqliteTriggers(executions) : []),
    ...(dialect === 'postgres' ? [index(`${executions}_by_id`, executions, false, `(${bytes('id')})`)] : []),
    index(`${executions}_by_status`, executions, false, `(status, ${bytes('id')})`),
    index(`${executions}_by_definition`, executions, false, `(definition_id, status, ${bytes('id')})`),
    index(`${executions}_roots_by_status`, executions, false, `(status, ${bytes('id')}) WHERE parent_id IS NULL`),
    index(
      `${executions}_roots_by_definition`,
      executions,
      false,
      `(definition_id, status, ${bytes('id')}) WHERE parent_id IS NULL`,
    ),
    index(`${names.timers}_by_due`, names.timers, false, `(fire_at, ${bytes('execution_id')}, ${bytes('path')})`),
    index(`${names.outbox}_by_target`, names.outbox, false, '(target_id)'),
    index(`${names.spawns}_by_parent`, names.spawns, false, '(parent_id)'),
  ]
}

/**
 * The start of an update that takes the summary columns from the payload; one that is not JSON leaves them null, as a
 * status that there is not is left null, so that an index leads to it.
 */
function summaryUpdate(executions: string, row: 'NEW.' | ''): string {
  const fields = ['parent_id', 'outcome', 'active_path', 'finished_at']
  const stored = summaryFieldSql('status')
  const status = `CASE WHEN ${stored} IN (${STATUSES.map((each) => `'${each}'`).join(', ')}) THEN ${stored} END`
  const payload = `CASE WHEN json_valid(${row}data) THEN ${row}data END`
  return `UPDATE "${executions}" SET meta_version = ${row}version, (status, ${fields.join(', ')}) = (
    SELECT ${status}, ${fields.map(summaryFieldSql).join(', ')} FROM (SELECT ${payload} AS payload)
  )`
}

/**
 * Fills the summary columns of rows that were there before them, behind one rowid and up to another. @throws InvalidPrefix
 */
export const sqliteSummaryFill = (prefix?: string): string =>
  `${summaryUpdate(Names(prefix).executions, '')} WHERE rowid > ? AND rowid <= ? AND meta_version IS NOT version`

/** Fill the summary columns of rows that somebody else writes. */
function sqliteTriggers(executions: string): SchemaObject[] {
  return (
    [
      ['insert', 'AFTER INSERT'],
      ['update', 'AFTER UPDATE OF data'],
    ] as const
  ).map(([event, when]) => ({
    kind: 'trigger',
    name: `${executions}_summary_on_${event}`,
    table: executions,
    shared: false,
    sql: `CREATE TRIGGER IF NOT EXISTS "${executions}_summary_on_${event}" ${when} ON "${executions}"
  WHEN NEW.meta_version IS NOT NEW.version BEGIN ${summaryUpdate(executions, 'NEW.')} WHERE rowid = NEW.rowid; END`,
  }))
}

/** The tables of Python harel's message transport. @throws InvalidPrefix */
export function transportSchema(dialect: Dialect, prefix?: string): SchemaObject[] {
  const { groups, messages } = Names(prefix)
  const { table, index } = builder(dialect)
  const { seq, real } = TYPES[dialect]
  const byGroup = index(`${messages}_by_group`, messages, true, '(group_id, seq)')
  const message = [`seq ${seq}`, 'group_id TEXT NOT NULL', 'event TEXT NOT NULL']
  if (dialect === 'sqlite') {
    return [
      table(messages, true, [...message, 'locked_by TEXT', `lock_expiry ${real}`]),
      table(groups, true, [
        'group_id TEXT PRIMARY KEY',
        `last_claimed_at ${real} NOT NULL DEFAULT 0.0`,
        'priority INT NOT NULL DEFAULT 0',
      ]),
      index(`${groups}_by_last_claimed`, groups, true, '(last_claimed_at)'),
      byGroup,
    ]
  }
  return [
    table(messages, true, message),
    table(groups, true, [
      'group_id TEXT PRIMARY KEY',
      'locked_by TEXT',
      `lock_expiry ${real}`,
      'priority INT NOT NULL DEFAULT 0',
    ]),
    index(`${groups}_claim_order`, groups, true, '((COALESCE(lock_expiry, 0)), group_id)'),
    byGroup,
  ]
}

/** Store and transport. @throws InvalidPrefix */
export const sqlSchema = (dialect: Dialect, prefix?: string): SchemaObject[] => [
  ...storeSchema(dialect, prefix),
  ...transportSchema(dialect, prefix),
]

/**
 * What of a schema a database lacks, given the lower-cased names that its catalogue has: of tables (with their
 * columns), and of indexes, triggers and functions. A missing table comes with all its columns.
 */
export function missingFrom(
  schema: readonly SchemaObject[],
  catalogue: { tables: ReadonlyMap<string, ReadonlySet<string>>; others: ReadonlySet<string> },
): SchemaObject[] {
  return schema.filter(({ kind, name, table }) => {
    const columns = catalogue.tables.get(table.toLowerCase())
    if (kind === 'table') return columns === undefined
    if (kind === 'column') return columns !== undefined && !columns.has(name)
    return !catalogue.others.has(name.toLowerCase())
  })
}
