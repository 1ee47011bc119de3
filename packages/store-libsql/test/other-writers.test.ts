import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { canonical } from '@harel-tooling/canonical'
import { describe, expect, test } from 'vitest'
import { clientOf, everything, execution, freshFile, open, pythonFile, run } from './helpers.js'

const vector = (name: string) => join(import.meta.dirname, 'vectors', name)

describe.each([
  { name: 'scenario', ns: 'chk-' },
  { name: 'runner', ns: 'run-' },
])('the $name that Python has written', ({ name, ns }) => {
  // What the program that wrote the file noted down beside it.
  const { notes, definition_id, fired, ...expected } = JSON.parse(
    readFileSync(vector(`${name}.canonical.json`), 'utf8'),
  )

  test.each([true, false])('is read exactly as Python reads it (createSchema: %s)', async (createSchema) => {
    const warnings: string[] = []
    const store = await open({ url: pythonFile(name) }, { createSchema, onWarning: (text) => warnings.push(text) })
    expect(await canonical(store, ns)).toEqual(expected)
    expect(warnings).toHaveLength(createSchema ? 0 : 1)
  })

  test('is left as it is', async () => {
    const url = pythonFile(name)
    const client = clientOf({ url })
    const stored = async () =>
      (await client.execute('SELECT id, definition_id, data, version FROM harel_executions ORDER BY id')).rows
    const before = await stored()
    await canonical(await open({ url }), ns)
    expect(await stored()).toEqual(before)
  })
})

test('tables of Python that are large work as they are, with a warning, until migrate adds the rest', async () => {
  const url = pythonFile('scenario')
  const client = clientOf({ url })
  await client.execute('DELETE FROM harel_executions')
  const payload = `'{"id":"e' || n || '","version":1,"definition_id":"d","status":"' || iif(n % 3, 'RUNNING', 'DONE') || '"}'`
  await client.execute(`WITH RECURSIVE numbers(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < 1499)
    INSERT INTO harel_executions (id, definition_id, data, version) SELECT 'e' || n, 'd', ${payload}, 1 FROM numbers`)
  const warnings: string[] = []
  const store = await open({ url }, { onWarning: (text) => warnings.push(text) })
  expect(warnings).toEqual([expect.stringContaining('migrate()')])
  const done = async () => (await store.listExecutions({ status: 'DONE', limit: 1000 })).items.length
  expect(await done()).toBe(500)
  await store.commit(execution('late', { status: 'DONE' }), everything('late'))
  expect(await done()).toBe(501)
  await store.migrate()
  expect(await done()).toBe(501)
  const fresh = await open({ url }, { onWarning: () => expect.unreachable() })
  expect((await fresh.listExecutions({ status: 'DONE', limit: 1000 })).items).toHaveLength(501)
})

test('rows of others that cannot be read are reported by every listing that they may belong to', async () => {
  const url = freshFile()
  const warnings: string[] = []
  const store = await open({ url }, { onWarning: (text) => warnings.push(text) })
  const client = clientOf({ url })
  const broken = { b: '{"status": "RUNNING"', c: '{"id":"c","version":1,"definition_id":"d","status":"LOST"}' }
  for (const [id, data] of Object.entries(broken)) {
    await client.execute('INSERT INTO harel_executions (id, definition_id, data, version) VALUES (?, ?, ?, 1)', [
      id,
      'd',
      data,
    ])
  }
  await store.commit(execution('a'))
  for (const query of [{}, { rootsOnly: true }, { definitionId: 'd' }, { definitionId: 'd', rootsOnly: true }]) {
    warnings.length = 0
    expect((await store.listExecutions(query)).items.map(({ id }) => id)).toEqual(['a'])
    expect(warnings).toEqual([expect.stringContaining('"b"'), expect.stringContaining('"c"')])
  }
})

test('a file is shared with processes that work on it with @harel/store-sqlite: each reads what the other writes', async () => {
  const url = freshFile()
  const other = { libsql: 'sqlite', sqlite: 'libsql' } as const
  for (const [index, kind] of (['sqlite', 'libsql', 'libsql', 'sqlite'] as const).entries()) {
    const written = JSON.parse(await run('step.ts', kind, url, 'a', 'commit'))
    expect(JSON.parse(await run('step.ts', other[kind], url, 'a'))).toEqual(written)
    expect(written).toMatchObject({
      execution: { version: index + 1, context: { text: 'ü😀\0', kind } },
      processed: [0, 1, 2, 3].map((version) => version <= index),
      listing: { items: [{ version: index + 1, outcome: 'a\0b', activePath: '\u0001', finishedAt: 0.1 }] },
    })
    for (const queue of [written.outbox, written.spawns, written.trace]) expect(queue).toHaveLength(index + 1)
  }
})
