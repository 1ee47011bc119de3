import { Names } from '../names.js'
import type { OnWarning } from '../numbers.js'
import type { SqlExecutor } from './executor.js'
import type { Sql } from './listing.js'
import { type SchemaObject, sqliteSummaryFill } from './schema.js'
import { checkLacking, FILLED_AT_ONCE, hasSummary, missingFromSqlite, SMALL_TABLE } from './sqlite-catalogue.js'

const statement = (sql: string, ...params: Sql['params']): Sql => ({ sql, params })

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
  const [result] = await executor.read([statement(`SELECT 1 FROM "${table}" LIMIT 1 OFFSET ${SMALL_TABLE}`)])
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
  return checkLacking(lacking, onWarning)
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
    for (let after = 0; after < last; after += FILLED_AT_ONCE) {
      await executor.write([statement(sqliteSummaryFill(prefix), after, after + FILLED_AT_ONCE)])
    }
    // With what was written meanwhile, and in one transaction: where the triggers are, every row has its summary.
    await executor.write([...triggers, statement(sqliteSummaryFill(prefix), ...ALL_ROWS)])
  }
  // Last, because it is faster to build an index than to keep it while the columns are filled.
  await add('index')
}
