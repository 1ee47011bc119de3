import { SchemaMissing, StoreUnavailable } from '@harel/store-base'
import { type PostgresOptions, PostgresStore, printSchema } from '@harel/store-postgres'
import { withServer } from '@harel-tooling/test-servers/vitest'
import type { Sql } from 'postgres'
import { describe, expect, test } from 'vitest'
import { connect, everything, execution, newSchema, open, pass, useDatabase } from './helpers.js'

const TABLES = ['executions', 'outbox', 'processed_events', 'timers', 'spawns', 'trace', 'definition_versions']

/** What there is in a schema, by kind. */
async function objects(
  sql: Sql,
  schema: string,
): Promise<Record<'tables' | 'indexes' | 'functions' | 'triggers', string[]>> {
  const [row] = await sql`SELECT
    ARRAY(SELECT tablename::text FROM pg_tables WHERE schemaname = ${schema} ORDER BY 1) AS tables,
    ARRAY(SELECT indexname::text FROM pg_indexes WHERE schemaname = ${schema} ORDER BY 1) AS indexes,
    ARRAY(SELECT proname::text FROM pg_proc WHERE pronamespace::regnamespace::text IN (${schema}, quote_ident(${schema}))
      ORDER BY 1) AS functions,
    ARRAY(SELECT tgname::text FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
      JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = ${schema} ORDER BY 1) AS triggers`
  return row as Awaited<ReturnType<typeof objects>>
}

withServer('postgres', (server) => {
  const database = useDatabase(server)

  test.each([
    'My-Schema',
    'a"b',
    "it's",
    'select',
    'ünï 😀',
    'pg.toast',
    's'.repeat(63),
    '$1',
    '%I',
    '$$',
    '$function$',
    'a$function1$b$function$',
    'a\\b',
  ])('the schema %s is made when it is missing, and holds everything (B40)', async (schema) => {
    const store = await open(database.url, { schema })
    const held = execution('a')
    await store.commit(held, everything('a'))
    await Promise.all([store.commit(held), store.commit(execution('b'), everything('b'))])
    expect((await store.listExecutions({ definitionId: 'd' })).items).toHaveLength(2)
    expect(await store.purge('a', 2)).toBe(true)
    const sql = connect(database.url)
    const made = await objects(sql, schema)
    expect(made.tables).toEqual(TABLES.map((table) => `harel_${table}`).sort())
    expect((await objects(sql, 'public')).tables).toEqual([])
    await open(database.url, { schema, createSchema: false })
  })

  test.each<[keyof PostgresOptions, unknown]>([
    ['schema', ''],
    ['schema', 'é'.repeat(32)],
    ['schema', 'a\0'],
    ['schema', '\ud800'],
    ['schema', 5],
    ['prefix', 'a-b'],
    ['prefix', ''],
    ['createSchema', 'no'],
    ['groupCommit', 1],
    ['traceMax', -1],
    ['traceMax', 2 ** 31],
    ['lockTimeout', 1.5],
    ['timeout', 0],
    ['lockTimeout', Number.POSITIVE_INFINITY],
  ])('the option %s is refused as %j before the server is asked (B39, B40)', async (option, value) => {
    const nowhere = 'postgres://nobody:S3cr3t@127.0.0.1:1/none'
    const code = option === 'prefix' ? 'INVALID_PREFIX' : 'INVALID_ARGUMENT'
    await expect(PostgresStore.connect(nowhere, { [option]: value })).rejects.toMatchObject({ code })
    const sql = connect(nowhere)
    expect(() => new PostgresStore(sql, { [option]: value })).toThrow(expect.objectContaining({ code }))
  })

  test.each([[null], [5], ['x'], [[]], [() => {}], [new Map([['prefix', 'a']])]])(
    'options that are no plain object are refused: %s',
    async (options) => {
      const refused = PostgresStore.connect('postgres://nobody@127.0.0.1:1/none', options as object)
      await expect(refused).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', argument: 'options' })
    },
  )

  test('without a schema the tables are where the search path finds them, else in its first schema', async () => {
    const [first, second] = [newSchema(), newSchema()]
    const sql = connect(database.url)
    await sql.unsafe(`CREATE SCHEMA ${first}; CREATE SCHEMA ${second}`)
    const on = (search_path: string, prefix: string) =>
      open(database.url, { prefix, client: { connection: { search_path } } })
    await on(`${second}`, 'found')
    await on(`${first}, ${second}`, 'found')
    await on(`missing, ${first}, ${second}`, 'made')
    expect((await objects(sql, first)).tables).toEqual(TABLES.map((table) => `made_${table}`).sort())
    expect((await objects(sql, second)).tables).toEqual(TABLES.map((table) => `found_${table}`).sort())
    await expect(on('missing', 'nowhere')).rejects.toMatchObject({ missing: ['a schema in the search path'] })
  })

  test('prefixes that differ in case alone are one (weakness 46)', async () => {
    const schema = newSchema()
    const [upper, lower] = await Promise.all(['App', 'app'].map((prefix) => open(database.url, { schema, prefix })))
    await upper?.commit(execution('a'), everything('a'))
    expect(await lower?.idsWithPrefix('')).toEqual(['a'])
    expect((await objects(connect(database.url), schema)).tables).toEqual(TABLES.map((table) => `app_${table}`).sort())
    expect(printSchema('App', schema)).toBe(printSchema('app', schema))
  })

  describe('with createSchema: false', () => {
    test('an empty database is refused, everything is named, and nothing is made (B43)', async () => {
      const schema = newSchema()
      const refused = PostgresStore.connect(database.url, { schema, createSchema: false })
      const error = await refused.catch((error) => error)
      expect(error).toBeInstanceOf(SchemaMissing)
      for (const table of TABLES) expect(error.missing).toContain(`harel_${table}`)
      expect(error.missing).toContain('harel_commit_v2')
      expect(error.missing).toContain('harel_executions_by_status')
      const sql = connect(database.url)
      expect(await sql`SELECT 1 FROM pg_namespace WHERE nspname = ${schema}`).toHaveLength(0)
    })

    test.each([
      ['DROP TABLE $.harel_trace', ['harel_trace']],
      ['ALTER TABLE $.harel_executions DROP COLUMN outcome', ['harel_executions.outcome']],
      ['DROP TRIGGER harel_executions_summary ON $.harel_executions', ['harel_executions_summary']],
      ['DROP FUNCTION $.harel_commit_all_v3', ['harel_commit_all_v3']],
    ])('what is missing after %s is named, and made without it', async (drop, missing) => {
      const schema = newSchema()
      await open(database.url, { schema })
      await connect(database.url).unsafe(drop.replace('$', schema))
      await expect(PostgresStore.connect(database.url, { schema, createSchema: false })).rejects.toMatchObject({
        missing,
      })
      const store = await open(database.url, { schema })
      await store.commit(execution('a'), everything('a'))
      await open(database.url, { schema, createSchema: false })
    })

    test('the printed schema is all that is needed (B43)', async () => {
      const schema = newSchema()
      const sql = connect(database.url)
      await sql.unsafe(`CREATE SCHEMA "${schema}"; ${printSchema('harel', schema)}`)
      const store = await open(database.url, { schema, createSchema: false })
      await Promise.all(['a', 'b'].map((id) => store.commit(execution(id), everything(id))))
      await open(database.url, { schema: `${schema}x` })
      expect(await objects(sql, schema)).toEqual(await objects(sql, `${schema}x`))
    })
  })

  test('ten that open an empty database at once all succeed, with whatever isolation (B42)', async () => {
    for (const isolation of ['read committed', 'repeatable read', 'serializable'] as const) {
      const schema = newSchema()
      const client = { max: 2, connection: { default_transaction_isolation: isolation } }
      const stores = await Promise.all(Array.from({ length: 10 }, () => open(database.url, { schema, client })))
      await Promise.all(stores.map((store, n) => store.commit(execution(String(n)), everything(String(n)))))
      expect(await stores[0]?.idsWithPrefix('')).toHaveLength(10)
    }
  })

  test('a live database is opened while others hold its tables, whatever lock they have', async () => {
    const schema = newSchema()
    await open(database.url, { schema })
    const sql = connect(database.url)
    await sql.begin(async (tx) => {
      for (const table of TABLES) await tx.unsafe(`LOCK TABLE ${schema}.harel_${table} IN ACCESS EXCLUSIVE MODE`)
      await open(database.url, { schema })
      await open(database.url, { schema, createSchema: false })
    })
  })

  test('opening a live database runs no statement that changes anything (B41, B43, weakness 44)', async () => {
    const schema = newSchema()
    await open(database.url, { schema })
    const texts: string[] = []
    await open(database.url, { schema, client: { debug: (_connection, text) => texts.push(text) } })
    expect(texts.length).toBeGreaterThan(0)
    expect(texts.filter((text) => !/^(SELECT|WITH objects AS \(SELECT)/.test(text))).toEqual([])
  })

  test('what is to be changed but is held by others is waited for, and no writer waits long behind that', async () => {
    const schema = newSchema()
    const sql = connect(database.url)
    await open(database.url, { schema })
    await sql.unsafe(`DROP TRIGGER harel_executions_summary ON ${schema}.harel_executions`)
    const insert = (id: string) =>
      sql.unsafe(
        `INSERT INTO ${schema}.harel_executions (id, definition_id, data, version) VALUES ('${id}', 'd', '{}', 1)`,
      )
    let opening: Promise<unknown> | undefined
    await sql.begin(async (tx) => {
      await tx.unsafe(`LOCK TABLE ${schema}.harel_executions IN ROW EXCLUSIVE MODE`)
      await expect(PostgresStore.connect(database.url, { schema, lockTimeout: 100 })).rejects.toMatchObject({
        code: 'STORE_UNAVAILABLE',
        message: expect.stringContaining('a table that is to be changed'),
      })
      opening = open(database.url, { schema, lockTimeout: 60_000 })
      // Behind one that waits until this transaction ends, the first of these would wait for ever.
      for (let n = 0; n < 10; n++) {
        await insert(`w${n}`)
        await pass(100)
      }
    })
    await opening
    await open(database.url, { schema, createSchema: false })
  })

  test('a store whose tables are dropped says so, and works when they are there again (weakness 11)', async () => {
    const schema = newSchema()
    const store = await open(database.url, { schema })
    await store.commit(execution('a'))
    await connect(database.url).unsafe(`DROP SCHEMA ${schema} CASCADE`)
    await expect(store.load('a')).rejects.toBeInstanceOf(SchemaMissing)
    await expect(store.commit(execution('b'))).rejects.toBeInstanceOf(SchemaMissing)
    await open(database.url, { schema })
    await store.commit(execution('b'), everything('b'))
  })

  test('after an attempt that failed the first call tries again (B44)', async () => {
    const schema = newSchema()
    const sql = connect(database.url)
    const store = new PostgresStore(sql, { schema, createSchema: false })
    await expect(store.load('a')).rejects.toBeInstanceOf(SchemaMissing)
    await open(database.url, { schema })
    expect(await store.load('a')).toBeUndefined()
    await expect(PostgresStore.connect('postgres://127.0.0.1:1/none')).rejects.toBeInstanceOf(StoreUnavailable)
  })
})
