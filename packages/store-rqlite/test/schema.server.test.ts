import { printSchema, RqliteStore, SchemaMissing } from '@harel/store-rqlite'
import { withServer } from '@harel-tooling/test-servers/vitest'
import { expect, test } from 'vitest'
import { everything, execution, failure, newPrefix, open, request, rows } from './helpers.js'
import { Intermediary } from './intermediary.js'

withServer('rqlite', ({ url }) => {
  test('tables are made by none and missed by all with createSchema: false (B43)', async () => {
    const prefix = newPrefix()
    const error = await failure(RqliteStore.connect(url, { prefix, createSchema: false }))
    expect(error).toBeInstanceOf(SchemaMissing)
    expect((error as SchemaMissing).missing).toContain(`${prefix}_executions`)
    const made = () => request(url, "SELECT name FROM sqlite_master WHERE name LIKE ? ESCAPE '\\'", `${prefix}%`)
    expect(await made()).toEqual([])
    await open(url, { prefix })
    await open(url, { prefix, createSchema: false, onWarning: expect.unreachable })
    expect((await made()).length).toBeGreaterThan(7)
  })

  test('tables are looked for and not touched when all is there', async () => {
    const prefix = newPrefix()
    await open(url, { prefix })
    const between = await Intermediary.start(url)
    await open(between.url, { prefix })
    expect(between.requests).toEqual(['/db/query?level=strong'])
  })

  test('tables that are dropped are SchemaMissing, and the store works when they are there again', async () => {
    const prefix = newPrefix()
    const store = await open(url, { prefix })
    await store.commit(execution('a'))
    await request(url, `DROP TABLE ${prefix}_executions`)
    await expect(store.load('a')).rejects.toMatchObject({ missing: [`${prefix}_executions`] })
    await expect(store.commit(execution('b'))).rejects.toBeInstanceOf(SchemaMissing)
    await open(url, { prefix })
    await store.commit(execution('b'), everything('b'))
  })

  test('tables are made once by ten stores that open them at once (B42)', async () => {
    const prefix = newPrefix()
    const stores = await Promise.all(Array.from({ length: 10 }, () => open(url, { prefix })))
    await Promise.all(stores.map((store, n) => store.commit(execution(`e${n}`), everything(`e${n}`))))
    expect(await rows(url, prefix)).toEqual(Array(6).fill(10))
  })

  test('the printed schema is all that is needed', async () => {
    const [printed, made] = [newPrefix(), newPrefix()]
    for (const statement of printSchema(printed).split(';\n')) {
      // A trigger has statements of its own.
      if (statement.trim() !== '') await request(url, `${statement};`)
    }
    const store = await open(url, { prefix: printed, createSchema: false, onWarning: expect.unreachable })
    await store.commit(execution('a'), everything('a'))
    await open(url, { prefix: made })
    const schema = async (prefix: string) =>
      (await request(url, 'SELECT sql FROM sqlite_master WHERE tbl_name LIKE ? ORDER BY name', `${prefix}\\_%`)).map(
        ([sql]) => String(sql).replaceAll(prefix, ''),
      )
    expect(await schema(printed)).toEqual(await schema(made))
  })

  test('large tables of Python work as they are, with a warning, until migrate adds the rest', async () => {
    const prefix = newPrefix()
    await request(
      url,
      `CREATE TABLE ${prefix}_executions (id TEXT PRIMARY KEY, definition_id TEXT NOT NULL, data TEXT NOT NULL, version INTEGER NOT NULL)`,
    )
    const payload = `'{"id":"e' || n || '","version":1,"definition_id":"d","status":"' || iif(n % 3, 'RUNNING', 'DONE') || '"}'`
    await request(
      url,
      `INSERT INTO ${prefix}_executions (id, definition_id, data, version)
        WITH RECURSIVE numbers(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < 1499)
        SELECT 'e' || n, 'd', ${payload}, 1 FROM numbers`,
    )
    const warnings: string[] = []
    const store = await open(url, { prefix, onWarning: (text) => warnings.push(text) })
    expect(warnings).toEqual([expect.stringContaining('migrate()')])
    const done = async () => (await store.listExecutions({ status: 'DONE', limit: 1000 })).items.length
    expect(await done()).toBe(500)
    await store.commit(execution('late', { status: 'DONE' }), everything('late'))
    expect(await done()).toBe(501)
    await store.migrate()
    expect(await done()).toBe(501)
    const fresh = await open(url, { prefix, onWarning: expect.unreachable })
    expect((await fresh.listExecutions({ status: 'DONE', limit: 1000 })).items).toHaveLength(501)
  })
})
