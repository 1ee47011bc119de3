import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { PostgresStore, SchemaMissing, StoreUnavailable } from '@harel/store-postgres'
import { withServer } from '@harel-tooling/test-servers/vitest'
import { afterAll, expect, test } from 'vitest'
import { connect, everything, execution, newSchema, open, rows, useDatabase } from './helpers.js'

const root = join(import.meta.dirname, '..')
const readme = readFileSync(join(root, 'README.md'), 'utf8')
const block = (language: string): string =>
  new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\`$`, 'ms').exec(readme)?.[1] ?? ''

test('the README fits on a screen, names every option, and points at nothing that is missing', () => {
  expect(readme.split('\n').length).toBeLessThan(80)
  const options = [
    'prefix',
    'schema',
    'createSchema',
    'traceMax',
    'lockTimeout',
    'timeout',
    'groupCommit',
    'client',
    'numbers',
  ]
  for (const option of options) expect(readme).toContain(`\`${option}\``)
  const targets = [...readme.matchAll(/\]\((?!https:)([^)]+)\)/g)].map(([, target = '']) => target)
  expect(targets.filter((target) => !existsSync(join(root, target)))).toEqual([])
})

withServer('postgres', (server) => {
  const database = useDatabase(server)
  // Inside the package, because that is where the package is found; as something built, so that nobody else minds.
  const folder = mkdtempSync(join(root, 'dist', 'readme-'))
  afterAll(() => rmSync(folder, { recursive: true }))

  test('the snippet of the README compiles and does what it says', { timeout: 120_000 }, () => {
    writeFileSync(join(folder, 'snippet.ts'), block('ts'))
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ extends: '../../tsconfig.json', include: ['.'] }))
    const run = (...args: string[]) => {
      const env = { ...process.env, DATABASE_URL: database.url }
      const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: folder, env, encoding: 'utf8' })
      return { status, output: stdout + stderr }
    }
    const tsc = join(root, '../../node_modules/typescript/bin/tsc')
    expect(run(tsc, '--project', folder)).toEqual({ status: 0, output: '' })
    expect(run('snippet.ts')).toEqual({ status: 0, output: 'PLACED for billing\n' })
  })

  test('the grants of the README are enough for a role that does not create, and no more than that (B43)', async () => {
    const schema = newSchema()
    const sql = connect(database.url)
    const role = `harel_test_${process.pid}`
    await sql.unsafe(`CREATE ROLE ${role}`)
    try {
      await open(database.url, { schema })
      const grants = block('sql').replaceAll('public', schema).replaceAll(' app;', ` ${role};`)
      expect(grants.match(/;/g)).toHaveLength(3)
      const asRole = { schema, createSchema: false, client: { connection: { role } } }
      // Whoever may look at the tables finds them; to work with them takes more.
      const refused = await open(database.url, asRole)
      await expect(refused.commit(execution('a'))).rejects.toMatchObject({ cause: { code: '42501' } })
      await sql.unsafe(`SET search_path = ${schema}; ${grants}`)

      const store = await open(database.url, asRole)
      const held = execution('a')
      await store.commit(held, everything('a'))
      await Promise.all([store.commit(held), store.commit(execution('b'), everything('b'))])
      await store.transaction(async (s) => void (await s.commit(held)))
      await store.appendTrace('a', {})
      await store.publishDefinition({ id: 'd', version: '1', definition: {} })
      expect((await store.listExecutions({ status: 'PENDING' })).items).toHaveLength(2)
      await store.ackOutbox((await store.pendingOutbox()).map(({ seq }) => seq))
      await store.ackSpawn((await store.pendingSpawns()).map(({ seq }) => seq))
      await store.deleteTimer('b', 'P', 1)
      expect(await store.purge('a', 3)).toBe(true)
      expect(await rows(sql, schema)).toEqual([1, 0, 1, 0, 0, 1])

      const other = { ...asRole, schema: newSchema() }
      await expect(PostgresStore.connect(database.url, other)).rejects.toBeInstanceOf(SchemaMissing)
      const creating = PostgresStore.connect(database.url, { ...other, createSchema: true })
      await expect(creating).rejects.toBeInstanceOf(StoreUnavailable)
    } finally {
      await sql.unsafe(`DROP OWNED BY ${role}; DROP ROLE ${role}`)
    }
  })
})
