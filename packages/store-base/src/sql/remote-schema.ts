import { InvalidArgument, SchemaMissing } from '../errors.js'
import { Names } from '../names.js'
import type { OnWarning } from '../numbers.js'
import type { SqlExecutor } from './executor.js'
import type { Sql } from './listing.js'
import { missingFrom, type SchemaObject, sqliteSummaryFill, storeSchema } from './schema.js'

/** Adding to a table of at most so many rows is done in passing, at start-up. */
const SMALL = 1000
/** Rows whose summary is filled in one transaction. */
const FILL = 1000

const statement = (sql: string, ...params: Sql['params']): Sql => ({ sql, params })

/**
 * Sorts a catalogue of SQLite into what `missingFrom` takes.
 *
 * @param columns those of the executions table
 * @throws InvalidArgument when the prefix differs from that of existing tables by case only
 */
export function missingFromSqlite(
  prefix: string,
  objects: readonly { type: string; name: string }[],
  columns: readonly string[],
): SchemaObject[] {
  const { executions } = Names(prefix)
  const tables = new Map<string, ReadonlySet<string>>()
  const others = new Set<string>()
  for (const { type, name } of objects) {
    if (type !== 'table') others.add(name.toLowerCase())
    else if (name.toLowerCase() !== executions.toLowerCase()) tables.set(name.toLowerCase(), new Set())
    else if (name === executions) tables.set(name.toLowerCase(), new Set(columns))
    else {
      const allowed = `another one: SQLite does not tell it from that of ${name}, which exists`
      throw new InvalidArgument('prefix', prefix, allowed)
    }
  }
  return missingFrom(storeSchema('sqlite', prefix), { tables, others })
}

async function missing(executor: SqlExecutor, prefix: string): Promise<SchemaObject[]> {
  const [objects, columns] = await executor.read([
    statement('SELECT type, name FROM sqlite_master'),
    statement('SELECT name FROM pragma_table_info(?)', Names(prefix).executions),
  ])
  return missingFromSqlite(
    prefix,
    (objects?.rows ?? []).map(([type, name]) => ({ type: String(type), name: String(name) })),
    (columns?.rows ?? []).map(([name]) => String(name)),
  )
}

async function isLarge(executor: SqlExecutor, table: string): Promise<boolean> {
  const [result] = await executor.read([statement(`SELECT 1 FROM "${table}" LIMIT 1 OFFSET ${SMALL}`)])
  return (result?.rows.length ?? 0) > 0
}

/** What of the missing things can be added in passing: nothing to a table that is in use and large. */
async function addable(executor: SqlExecutor, lacking: readonly SchemaObject[]): Promise<SchemaObject[]> {
  const made = new Set(lacking.filter(({ kind }) => kind === 'table').map(({ table }) => table))
  const large = new Set<string>()
  for (const table of new Set(lacking.map((object) => object.table))) {
    if (!made.has(table) && (await isLarge(executor, table))) large.add(table)
  }
  return lacking.filter(({ table }) => !large.has(table))
}

const hasSummary = (lacking: readonly SchemaObject[]): boolean =>
  !lacking.some(({ kind }) => kind === 'column' || kind === 'trigger')

const nameOf = ({ kind, name, table }: SchemaObject): string => (kind === 'column' ? `${table}.${name}` : name)

const ALL_ROWS = [0, Number.MAX_SAFE_INTEGER] as const

/**
 * Makes the tables of SQLite's dialect ready over an executor, and says whether the executions have their summary
 * columns. Reads the catalogue first and changes only what is missing; what would take long on a table that is in use
 * is left to `migrateRemoteSchema`, with a warning.
 *
 * @throws SchemaMissing, InvalidArgument
 */
export async function prepareRemoteSchema(
  executor: SqlExecutor,
  { prefix, createSchema }: { prefix: string; createSchema: boolean },
  onWarning: OnWarning,
): Promise<{ summary: boolean }> {
  let lacking = await missing(executor, prefix)
  let failure: { error: unknown; lacking: number } | undefined
  while (createSchema) {
    const objects = await addable(executor, lacking)
    if (objects.length === 0) break
    // Somebody else may have made some of it meanwhile, and a column cannot be added "if it does not exist".
    if (failure !== undefined && lacking.length >= failure.lacking) throw failure.error
    const fill = hasSummary(objects) ? [] : [statement(sqliteSummaryFill(prefix), ...ALL_ROWS)]
    try {
      await executor.write([...objects.map(({ sql }) => statement(sql)), ...fill])
    } catch (error) {
      failure = { error, lacking: lacking.length }
    }
    lacking = await missing(executor, prefix)
  }
  const tables = lacking.filter(({ kind, shared }) => kind === 'table' && shared)
  if (tables.length > 0) throw new SchemaMissing(tables.map(nameOf))
  if (lacking.length > 0) {
    onWarning(
      `the database lacks ${lacking.map(nameOf).join(', ')}; the store works without, more slowly, until migrate() adds them`,
    )
  }
  return { summary: hasSummary(lacking) }
}

/** Adds whatever is missing, however long it takes; other writers are let in between the steps. */
export async function migrateRemoteSchema(executor: SqlExecutor, prefix: string): Promise<void> {
  const lacking = async (kind: SchemaObject['kind']) =>
    (await missing(executor, prefix)).filter((object) => object.kind === kind).map(({ sql }) => statement(sql))
  const add = async (kind: SchemaObject['kind']) => {
    for (const made of await lacking(kind)) await executor.write([made])
  }
  await add('table')
  await add('column')
  const triggers = await lacking('trigger')
  if (triggers.length > 0) {
    const [result] = await executor.read([statement(`SELECT MAX(rowid) FROM "${Names(prefix).executions}"`)])
    const last = Number(result?.rows[0]?.[0] ?? 0)
    for (let after = 0; after < last; after += FILL) {
      await executor.write([statement(sqliteSummaryFill(prefix), after, after + FILL)])
    }
    // With what was written meanwhile, and in one transaction: where the triggers are, every row has its summary.
    await executor.write([...triggers, statement(sqliteSummaryFill(prefix), ...ALL_ROWS)])
  }
  // Last, because it is faster to build an index than to keep it while the columns are filled.
  await add('index')
}
