import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { PostgresStore } from '@harel/store-postgres'
import { scenarios } from '@harel/store-testing/faults'
import { canonical } from '@harel-tooling/canonical'
import { withServer } from '@harel-tooling/test-servers/vitest'
import { expect, onTestFinished, test } from 'vitest'
import { connect, open, useDatabase } from './helpers.js'
import { pythonDatabase, pythonExecutions } from './python.js'

const vector = (file: string): string => readFileSync(join(import.meta.dirname, 'vectors', file), 'utf8')

/** What ten processes that open at once leave behind, each of which has written five commits. */
const WHOLE = { acknowledged: 50, commits: 50, lost: [], doubled: [], breaches: [] }

/** Ten processes open at once under `harel_SEED`, and write. */
const openingOf = (url: string, seed: number) =>
  scenarios
    .find(({ name }) => name === 'opening')
    ?.run({
      under: {
        capabilities: { shared: true },
        open: ({ address = '', ...options }) => PostgresStore.connect(address, options),
        address: () => url,
        program: new URL('programs/faults-writer.ts', import.meta.url),
      },
      seed,
      scale: 0.05,
    })

withServer('postgres', (server) => {
  const database = useDatabase(server)

  test('ten processes may open the tables of Python at once, all write, and nothing of what was there is lost (B42)', async () => {
    const prefix = 'harel_1'
    const sql = connect(database.url)
    await pythonDatabase(sql, prefix)
    await sql.unsafe(vector('scenario.sql').replaceAll('public.harel_', `public.${prefix}_`))
    await pythonExecutions(sql, 500, prefix)
    const executions = () =>
      sql`SELECT id, definition_id, data, version FROM ${sql(`${prefix}_executions`)} ORDER BY id`
    const before = await executions()
    expect(await openingOf(database.url, 1)).toMatchObject(WHOLE)
    expect(await executions()).toEqual(before)
    const { notes, definition_id, fired, ...expected } = JSON.parse(vector('scenario.canonical.json'))
    expect(await canonical(await open(database.url, { prefix, createSchema: false }), 'chk-')).toEqual(expected)
  })

  /** The database as somebody sees it who may not create anything in it. */
  const asRole = async () => {
    const sql = connect(database.url)
    const role = `harel_app_${process.pid}`
    await sql.unsafe(`REVOKE CREATE ON SCHEMA public FROM PUBLIC; CREATE ROLE ${role} LOGIN PASSWORD 'app'`)
    onTestFinished(async () => void (await sql.unsafe(`DROP OWNED BY ${role}; DROP ROLE ${role}`)))
    const { href: url } = Object.assign(new URL(database.url), { username: role, password: 'app' })
    return { sql, role, url }
  }

  test('ten processes of a role that may not create can all work at once on tables that are there (B42, B43)', async () => {
    const prefix = 'harel_2'
    const { sql, role, url } = await asRole()
    await open(database.url, { prefix })
    await sql.unsafe(`GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO ${role};
      GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO ${role}`)
    expect(await openingOf(url, 2)).toMatchObject(WHOLE)
  })

  test('ten processes of a role that may not create are all refused with what is wrong, and leave nothing (B42, B43)', async () => {
    const { sql, url } = await asRole()
    const named = () => sql`SELECT relname AS name FROM pg_class WHERE relname LIKE 'harel\_3%'
      UNION ALL SELECT proname FROM pg_proc WHERE proname LIKE 'harel\_3%'`
    const program = join(import.meta.dirname, 'programs/open.ts')
    const opening = Array.from({ length: 10 }, async (_, n) => {
      const { stdout } = await promisify(execFile)(process.execPath, [program, url, 'harel_3', `${n % 2 === 0}`])
      return stdout.trim()
    })
    expect(await Promise.all(opening)).toEqual(Array(5).fill(['STORE_UNAVAILABLE', 'SCHEMA_MISSING']).flat())
    expect(await named()).toEqual([])
  })
})
