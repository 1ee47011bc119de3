import { Names, type OnWarning, SchemaMissing } from '@harel/store-base'
import { missingFrom, type SchemaObject, storeSchema } from '@harel/store-base/sql'
import type { TransactionSql } from 'postgres'
import { Client, isLocked, isRefused } from './client.js'
import { storeFunctions, tablesOf } from './functions.js'
import type { Settings } from './options.js'
import { pause, untilFree } from './pause.js'
import type { Pool } from './pool.js'
import { quote } from './quoting.js'
import { begin } from './transaction.js'

/** Serialises whoever creates the schema; the same key as Python harel's, which has one for every prefix. */
const CREATION_LOCK = 7723019
/** How long a change of the schema may keep others waiting while it waits for a table, in milliseconds. */
const TABLE_WAIT = 500
/** Adding to a table of at most so many rows is done in passing, at start-up. */
const SMALL = 1000

/** Where the tables are, and what of them listings can rely on. */
export interface Place {
  readonly schema: string
  /** All summaries are filled and have their indexes. */
  readonly summary: boolean
}

/** Everything that a store of this prefix (in lower case) needs, in the order in which it is made. */
export function wantedObjects(prefix: string, schema: string): SchemaObject[] {
  const inSchema = storeSchema('postgres', prefix).map((object) => ({
    ...object,
    // Tables are the only names in these statements that a schema belongs to; an index lives with its table.
    sql: object.sql.replace(quote(object.table), () => `${quote(schema)}.${quote(object.table)}`),
  }))
  return [...inSchema, ...storeFunctions(prefix, schema)]
}

/** The schema that is asked for, or where the search path has the tables, or where it would make them. */
async function findSchema(client: Client, { schema, prefix }: Settings): Promise<string> {
  if (schema !== undefined) return schema
  const rows = await client.read(
    `SELECT COALESCE((SELECT n.nspname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
       WHERE c.oid = to_regclass($1)), current_schema())`,
    quote(Names(prefix).executions),
  )
  const found = rows[0]?.[0]
  if (typeof found !== 'string') throw new SchemaMissing(['a schema in the search path'])
  return found
}

async function missingObjects(client: Client, prefix: string, schema: string): Promise<SchemaObject[]> {
  const rows = await client.read(
    `WITH objects AS (SELECT c.oid, c.relname, c.relkind FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
       WHERE n.nspname = $1 AND starts_with(c.relname, $2))
     SELECT 'table', o.relname, string_agg(a.attname, ',') FROM objects o
       JOIN pg_attribute a ON a.attrelid = o.oid AND a.attnum > 0 AND NOT a.attisdropped
       WHERE o.relkind IN ('r', 'p') GROUP BY o.relname
     UNION ALL SELECT 'index', o.relname, '' FROM objects o JOIN pg_index i ON i.indexrelid = o.oid AND i.indisvalid
     UNION ALL SELECT 'trigger', t.tgname, '' FROM objects o JOIN pg_trigger t ON t.tgrelid = o.oid
     UNION ALL SELECT 'function', p.proname, '' FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
       WHERE n.nspname = $1 AND starts_with(p.proname, $2)`,
    schema,
    `${prefix}_`,
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
  !lacking.some(({ table }) => table === Names(prefix).executions)

const nameOf = ({ kind, name, table }: SchemaObject): string => (kind === 'column' ? `${table}.${name}` : name)
const isIndex = ({ kind }: SchemaObject): boolean => kind === 'index'

/**
 * Makes the tables and functions ready.
 *
 * Reads the catalogue first and changes only what is missing: an idle `CREATE INDEX IF NOT EXISTS` blocks writers. What
 * would take long on a table that is in use is left to `migrateSchema`, with a warning.
 *
 * @throws SchemaMissing, StoreUnavailable
 */
export async function prepareSchema(pool: Pool, settings: Settings, onWarning: OnWarning): Promise<Place> {
  const { prefix, createSchema, lockTimeout } = settings
  const client = Client.of(pool, false, settings.timeout)
  const schema = await findSchema(client, settings)
  let lacking = await missingObjects(client, prefix, schema)
  if (lacking.length > 0 && createSchema) {
    await untilFree(lockTimeout, 'a table that is to be changed', () => createMissing(pool, prefix, schema))
    lacking = await missingObjects(client, prefix, schema)
  }
  if (!lacking.every(isIndex)) throw new SchemaMissing(lacking.map(nameOf))
  if (lacking.length > 0) {
    const names = lacking.map(nameOf).join(', ')
    onWarning(`the database lacks the indexes ${names}; until migrate() adds them, the store works more slowly`)
  }
  return { schema, summary: hasSummary(lacking, prefix) }
}

/** In one transaction, in which nobody waits for long: if somebody works on a table, it comes back as `busy`. */
async function createMissing(pool: Pool, prefix: string, schema: string): Promise<'done' | 'busy'> {
  try {
    const create = async (tx: TransactionSql) => {
      const client = Client.within(tx, false)
      await client.read(`SELECT pg_advisory_xact_lock(${CREATION_LOCK})`)
      await client.read(`SET LOCAL lock_timeout = ${TABLE_WAIT}`)
      await addMissing(client, prefix, schema)
    }
    // Whatever the default: after the wait for the lock, what others have made must be seen.
    await begin(pool, create, 'ISOLATION LEVEL READ COMMITTED')
    return 'done'
  } catch (error) {
    if (isLocked(error)) return 'busy'
    throw error
  }
}

async function addMissing(client: Client, prefix: string, schema: string): Promise<void> {
  const known = await client.read('SELECT 1 FROM pg_namespace WHERE nspname = $1', schema)
  if (known.length === 0) await client.read(`CREATE SCHEMA ${quote(schema)}`)
  const wanted = await missingObjects(client, prefix, schema)
  const made = new Set(wanted.filter(({ kind }) => kind === 'table').map(({ table }) => table))
  const large = new Set<string>()
  for (const table of new Set(wanted.map((object) => object.table))) {
    if (!made.has(table) && (await isLarge(client, schema, table))) large.add(table)
  }
  for (const object of wanted) if (!isIndex(object)) await client.read(object.sql)
  const indexes = wanted.filter((object) => isIndex(object) && !large.has(object.table))
  const { executions } = tablesOf(prefix, schema)
  if (!hasSummary(indexes, prefix)) {
    await client.read(`UPDATE ${executions} SET data = data WHERE ${UNFILLED}`)
  }
  for (const { name, sql } of indexes) {
    // An index that could not be finished is not valid, and stands in the way.
    await client.read(`DROP INDEX IF EXISTS ${quote(schema)}.${quote(name)}`)
    await client.read(sql)
  }
}

async function isLarge(client: Client, schema: string, table: string): Promise<boolean> {
  const text = `SELECT 1 FROM ${quote(schema)}.${quote(table)} LIMIT 1 OFFSET ${SMALL}`
  return (await client.read(text)).length > 0
}

/** So often a new index may be refused until it is for good. */
const REFUSALS = 20

/** Of rows from before the trigger, which fills the summary when the payload is set. */
const UNFILLED = 'meta_version IS DISTINCT FROM version'

/** Adds the indexes that are missing, however long it takes, with writers at work. */
export async function migrateSchema(pool: Pool, { prefix }: Settings, schema: string): Promise<void> {
  const client = Client.of(pool, false)
  if (!hasSummary(await missingObjects(client, prefix, schema), prefix)) await fillSummaries(client, prefix, schema)
  for (let refusals = 0; ; ) {
    const [index] = await missingObjects(client, prefix, schema)
    if (index === undefined) return
    try {
      if (await isBuilding(client, schema, index.table)) await pause(200)
      else await buildIndex(client, schema, index)
    } catch (error) {
      // Maybe because `migrate` of another process has begun with the same index at the same time.
      if (!isRefused(error) || ++refusals === REFUSALS) throw error
      await pause(200)
    }
  }
}

/** In small steps. Rows that somebody holds are passed over at first, so that the others are not held for as long. */
async function fillSummaries(client: Client, prefix: string, schema: string): Promise<void> {
  const { executions } = tablesOf(prefix, schema)
  const step = `WITH part AS (SELECT id FROM ${executions} WHERE id > $1 ORDER BY id LIMIT ${SMALL}), filled AS (
      UPDATE ${executions} SET data = data WHERE id IN (
        SELECT id FROM ${executions} WHERE id IN (SELECT id FROM part) AND ${UNFILLED} FOR UPDATE SKIP LOCKED))
    SELECT max(id) FROM part`
  for (let last: string | null = ''; last !== null; ) {
    const [row] = await client.read(step, last)
    last = row?.[0] ?? null
  }
  const held = `UPDATE ${executions} SET data = data WHERE id = (
      SELECT id FROM ${executions} WHERE ${UNFILLED} LIMIT 1 FOR UPDATE) RETURNING 1`
  while ((await client.read(held)).length > 0);
}

/** Whether an index of the table is being built: two at a time get into each other's way. */
async function isBuilding(client: Client, schema: string, table: string): Promise<boolean> {
  const text = 'SELECT 1 FROM pg_stat_progress_create_index WHERE relid = to_regclass($1)'
  return (await client.read(text, `${quote(schema)}.${quote(table)}`)).length > 0
}

async function buildIndex(client: Client, schema: string, { name, sql }: SchemaObject): Promise<void> {
  // What an attempt that was cut off has left is not valid, and would stand in the way.
  await client.read(`DROP INDEX CONCURRENTLY IF EXISTS ${quote(schema)}.${quote(name)}`)
  await client.read(sql.replace('CREATE INDEX', 'CREATE INDEX CONCURRENTLY'))
}
