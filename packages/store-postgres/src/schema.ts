import { Names, type OnWarning, SchemaMissing } from '@harel/store-base'
import { missingFrom, type SchemaObject, storeSchema } from '@harel/store-base/sql'
import type { Sql } from 'postgres'
import { Client } from './client.js'
import { quote, storeFunctions } from './functions.js'
import type { Settings } from './options.js'

/** Serialises whoever creates the schema; the same key as Python harel's, which has one for every prefix. */
const CREATION_LOCK = 7723019
/** Adding to a table of at most so many rows is done in passing, at start-up. */
const SMALL = 1000

/** Where the tables are, and what of them listings can rely on. */
export interface Place {
  readonly schema: string
  /** All summaries are filled and have their indexes. */
  readonly summary: boolean
}

/** Everything that a store of this prefix needs, in the order in which it is made. */
export function wantedObjects(prefix: string, schema: string): SchemaObject[] {
  const qualified = (name: string) => `${quote(schema)}.${quote(name)}`
  const inSchema = storeSchema('postgres', prefix).map((object) => ({
    ...object,
    // Tables are the only names in these statements that a schema belongs to; an index lives with its table.
    sql: object.sql.replace(quote(object.table.toLowerCase()), () => qualified(object.table.toLowerCase())),
  }))
  return [...inSchema, ...storeFunctions(prefix, qualified)]
}

/** The schema that is asked for, or where the search path has the tables, or where it would make them. */
async function findSchema(client: Client, { schema, prefix }: Settings): Promise<string> {
  if (schema !== undefined) return schema
  const rows = await client.read(
    `SELECT COALESCE((SELECT n.nspname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
       WHERE c.oid = to_regclass($1::text)), current_schema())`,
    quote(Names(prefix.toLowerCase()).executions),
  )
  const found = rows[0]?.[0]
  if (typeof found !== 'string') throw new SchemaMissing(['a schema in the search path'])
  return found
}

async function missingObjects(client: Client, prefix: string, schema: string): Promise<SchemaObject[]> {
  const rows = await client.read(
    `WITH objects AS (SELECT c.oid, c.relname, c.relkind FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
       WHERE n.nspname = $1::text AND starts_with(c.relname, $2::text))
     SELECT 'table', o.relname, string_agg(a.attname, ',') FROM objects o
       JOIN pg_attribute a ON a.attrelid = o.oid AND a.attnum > 0 AND NOT a.attisdropped
       WHERE o.relkind IN ('r', 'p') GROUP BY o.relname
     UNION ALL SELECT 'index', o.relname, '' FROM objects o JOIN pg_index i ON i.indexrelid = o.oid AND i.indisvalid
     UNION ALL SELECT 'trigger', t.tgname, '' FROM objects o JOIN pg_trigger t ON t.tgrelid = o.oid
     UNION ALL SELECT 'function', p.proname, '' FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
       WHERE n.nspname = $1::text AND starts_with(p.proname, $2::text)`,
    schema,
    `${prefix.toLowerCase()}_`,
  )
  const tables = new Map<string, ReadonlySet<string>>()
  const others = new Set<string>()
  for (const [kind, name, columns] of rows) {
    if (kind === 'table') tables.set(name ?? '', new Set((columns ?? '').split(',')))
    else others.add(name ?? '')
  }
  return missingFrom(wantedObjects(prefix, schema), { tables, others })
}

/** Listings may rely on the summaries when the indexes are there: they are made after the summaries are filled. */
const hasSummary = (lacking: readonly SchemaObject[], prefix: string): boolean =>
  !lacking.some(({ table }) => table.toLowerCase() === Names(prefix.toLowerCase()).executions)

const nameOf = ({ kind, name, table }: SchemaObject): string => (kind === 'column' ? `${table}.${name}` : name)

/**
 * Makes the tables and functions ready.
 *
 * Reads the catalogue first and changes only what is missing: an idle `CREATE INDEX IF NOT EXISTS` blocks writers. What
 * would take long on a table that is in use is left to `migrate`, with a warning.
 *
 * @throws SchemaMissing, StoreUnavailable
 */
export async function prepareSchema(sql: Sql, settings: Settings, onWarning: OnWarning): Promise<Place> {
  const { prefix, createSchema } = settings
  const client = new Client(sql, false)
  const schema = await findSchema(client, settings)
  let lacking = await missingObjects(client, prefix, schema)
  if (lacking.length > 0 && createSchema) {
    await sql.begin(async (tx) => {
      const creator = new Client(tx, false)
      await creator.read(`SELECT pg_advisory_xact_lock(${CREATION_LOCK})`)
      await createMissing(creator, prefix, schema)
    })
    lacking = await missingObjects(client, prefix, schema)
  }
  const needed = lacking.filter(({ kind }) => kind !== 'index')
  if (needed.length > 0) throw new SchemaMissing(needed.map(nameOf))
  if (lacking.length > 0) {
    onWarning(
      `the database lacks the indexes ${lacking.map(nameOf).join(', ')}; the store works without, more slowly, until migrate() adds them`,
    )
  }
  return { schema, summary: hasSummary(lacking, prefix) }
}

async function createMissing(client: Client, prefix: string, schema: string): Promise<void> {
  const known = await client.read('SELECT 1 FROM pg_namespace WHERE nspname = $1::text', schema)
  if (known.length === 0) await client.read(`CREATE SCHEMA ${quote(schema)}`)
  const wanted = await missingObjects(client, prefix, schema)
  const made = new Set(wanted.filter(({ kind }) => kind === 'table').map(({ table }) => table))
  const large = new Set<string>()
  for (const table of new Set(wanted.map((object) => object.table))) {
    if (!made.has(table) && (await isLarge(client, schema, table))) large.add(table)
  }
  for (const { sql } of wanted.filter(({ kind }) => kind !== 'index')) await client.read(sql)
  const indexes = wanted.filter(({ kind, table }) => kind === 'index' && !large.has(table))
  const { executions } = Names(prefix)
  if (!made.has(executions) && indexes.some(({ table }) => table === executions)) {
    await fillSummaries(client, prefix, schema, null)
  }
  for (const { sql } of indexes) await client.read(sql)
}

const tableOf = (schema: string, table: string): string => `${quote(schema)}.${quote(table.toLowerCase())}`

async function isLarge(client: Client, schema: string, table: string): Promise<boolean> {
  return (await client.read(`SELECT 1 FROM ${tableOf(schema, table)} LIMIT 1 OFFSET ${SMALL}`)).length > 0
}

/** Lets the trigger fill the summaries of the next rows (all when `limit` is null); says whether there were any. */
async function fillSummaries(client: Client, prefix: string, schema: string, limit: number | null): Promise<boolean> {
  const executions = tableOf(schema, Names(prefix).executions)
  const filled = await client.read(
    `UPDATE ${executions} SET data = data WHERE id IN (
       SELECT id FROM ${executions} WHERE meta_version IS DISTINCT FROM version LIMIT $1::text::bigint FOR UPDATE SKIP LOCKED
     ) RETURNING 1`,
    limit,
  )
  return filled.length > 0
}

/**
 * Adds whatever is missing, however long it takes, with writers at work: summaries are filled in small steps, indexes
 * are made concurrently.
 */
export async function migrateSchema(sql: Sql, settings: Settings, schema: string): Promise<void> {
  const { prefix } = settings
  const client = new Client(sql, false)
  const lacking = await missingObjects(client, prefix, schema)
  for (const { sql: statement } of lacking.filter(({ kind }) => kind !== 'index')) await client.read(statement)
  if (!hasSummary(lacking, prefix)) {
    while (await fillSummaries(client, prefix, schema, SMALL));
  }
  for (const { name, sql: statement } of lacking.filter(({ kind }) => kind === 'index')) {
    // What an attempt that was cut off has left is not valid, and would stand in the way.
    await client.read(`DROP INDEX CONCURRENTLY IF EXISTS ${tableOf(schema, name)}`)
    await client.read(statement.replace('CREATE INDEX', 'CREATE INDEX CONCURRENTLY'))
  }
}
