import { InvalidArgument, SchemaMissing } from '../errors.js'
import { Names } from '../names.js'
import type { OnWarning } from '../numbers.js'
import { missingFrom, type SchemaObject, storeSchema } from './schema.js'

/** Adding to a table of at most so many rows is done in passing, at start-up. */
export const SMALL_TABLE = 1000
/** Rows whose summary a migration fills in one transaction. */
export const FILLED_AT_ONCE = 1000

/** The statements that make the tables, indexes and triggers of a prefix in SQLite's dialect. @throws InvalidPrefix */
export const printSqliteSchema = (prefix?: string): string =>
  storeSchema('sqlite', prefix)
    .filter(({ kind }) => kind !== 'column')
    .map(({ sql }) => `${sql};\n`)
    .join('')

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

/** Whether listings can rely on the summary columns when this is missing. */
export const hasSummary = (lacking: readonly SchemaObject[]): boolean =>
  !lacking.some(({ kind }) => kind === 'column' || kind === 'trigger')

const nameOf = ({ kind, name, table }: SchemaObject): string => (kind === 'column' ? `${table}.${name}` : name)

/**
 * Says what a store does about what is still missing at its start: without its tables it cannot work, without the rest it
 * can.
 *
 * @throws SchemaMissing
 */
export function checkLacking(lacking: readonly SchemaObject[], onWarning: OnWarning): { summary: boolean } {
  const tables = lacking.filter(({ kind, shared }) => kind === 'table' && shared)
  if (tables.length > 0) throw new SchemaMissing(tables.map(nameOf))
  if (lacking.length > 0) {
    onWarning(
      `the database lacks ${lacking.map(nameOf).join(', ')}; the store works without, more slowly, until migrate() adds them`,
    )
  }
  return { summary: hasSummary(lacking) }
}
