import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { canonical } from '@harel-tooling/canonical'
import { describe, expect, test } from 'vitest'
import { connect, pythonFile, twins } from './helpers.js'

const expected = (name: string): object => {
  const text = readFileSync(join(import.meta.dirname, 'vectors', `${name}.canonical.json`), 'utf8')
  // What the program that wrote the file noted down beside it.
  const { notes: _notes, definition_id: _definition, fired: _fired, ...stored } = JSON.parse(text)
  return stored
}

describe.each(twins)('$name', ({ open }) => {
  describe.each([
    { name: 'scenario', ns: 'chk-' },
    { name: 'runner', ns: 'run-' },
  ] as const)('on the $name that Python has written', ({ name, ns }) => {
    test.each([true, false])('reads exactly what Python reads (createSchema: %s)', async (createSchema) => {
      const warnings: string[] = []
      await using store = await open(pythonFile(name), { createSchema, onWarning: (text) => warnings.push(text) })
      expect(await canonical(store, ns)).toEqual(expected(name))
      expect(warnings).toHaveLength(createSchema ? 0 : 1)
    })

    test('leaves what Python wrote as it is', async () => {
      const path = pythonFile(name)
      const db = connect(path)
      const stored = () => db.prepare('SELECT id, definition_id, data, version FROM harel_executions ORDER BY id').all()
      const before = stored()
      await using store = await open(path)
      await canonical(store, ns)
      expect(stored()).toEqual(before)
    })
  })
})
