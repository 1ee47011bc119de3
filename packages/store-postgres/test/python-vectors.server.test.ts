import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { PostgresStore } from '@harel/store-postgres'
import { canonical } from '@harel-tooling/canonical'
import { withServer } from '@harel-tooling/test-servers/vitest'
import { describe, expect, test } from 'vitest'
import { connect, useDatabase } from './helpers.js'
import { pythonDatabase } from './python.js'

const vector = (file: string): string => readFileSync(join(import.meta.dirname, 'vectors', file), 'utf8')

const expected = (name: string): object => {
  // What the program that wrote the rows noted down beside them.
  const {
    notes: _notes,
    definition_id: _definition,
    fired: _fired,
    ...stored
  } = JSON.parse(vector(`${name}.canonical.json`))
  return stored
}

withServer('postgres', (server) => {
  describe.each([
    { name: 'scenario', ns: 'chk-' },
    { name: 'runner', ns: 'run-' },
  ] as const)('on the $name that Python has written', ({ name, ns }) => {
    const database = useDatabase(server)

    test('reads exactly what Python reads, and leaves it as it is', async () => {
      const sql = connect(database.url)
      await pythonDatabase(sql)
      await sql.unsafe(vector(`${name}.sql`))
      const stored = () => sql`SELECT id, definition_id, data, version FROM harel_executions ORDER BY id`
      const before = await stored()
      const warnings: string[] = []
      const store = new PostgresStore(sql, { onWarning: (text) => warnings.push(text) })
      expect(await canonical(store, ns)).toEqual(expected(name))
      expect(warnings).toEqual([])
      expect(await stored()).toEqual(before)
    })
  })
})
