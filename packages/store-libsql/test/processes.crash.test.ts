import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { LibsqlStore } from '@harel/store-libsql'
import { scenarios, type UnderFaults } from '@harel/store-testing/faults'
import { expect, test } from 'vitest'
import { clientOf, freshFile, open, pathOf, pythonFile, rows, run, start, TABLES } from './helpers.js'
import { expectAcknowledged, expectWhole } from './written.js'

const WRITERS = 4

test('two processes write three hundred batches each to one file while a third reads, and none of them fails (B60, B61)', async () => {
  const url = freshFile()
  await open({ url })
  const reader = await clientOf({ url }).transaction('read')
  await reader.execute('SELECT * FROM harel_executions')
  await Promise.all(['a', 'b'].map((name) => run('batches.ts', url, name, '300')))
  expect((await reader.execute('SELECT * FROM harel_executions')).rows).toEqual([])
  reader.close()
  expect(await rows(clientOf({ url }))).toEqual([1800, 1800, 0, 0, 0, 0])
})

test.each([
  { stores: 'this store', kinds: ['libsql', 'libsql', 'libsql'] },
  { stores: 'this store and that of @harel/store-sqlite', kinds: ['libsql', 'sqlite', 'libsql'] },
])('processes that share an execution lose and repeat nothing ($stores)', async ({ kinds }) => {
  const url = freshFile()
  const rounds = 15
  await Promise.all(kinds.map((kind, n) => run('writer.ts', kind, url, `w${n}`, `${rounds}`)))
  const versions = await expectWhole(await open({ url }))
  expect(versions.get('shared')).toBe(3 * WRITERS * (rounds - 1))
  versions.delete('shared')
  expect([...versions.values()]).toEqual(Array(3 * WRITERS).fill(rounds))
})

test('ten processes may open an empty file at once (B42)', async () => {
  const url = freshFile()
  await Promise.all(Array.from({ length: 10 }, (_, n) => run('open.ts', url, `e${n}`)))
  const client = clientOf({ url })
  expect(await rows(client)).toEqual([10, 0, 0, 0, 0, 0])
  expect((await client.execute('PRAGMA integrity_check')).rows).toMatchObject([{ integrity_check: 'ok' }])
})

test('ten processes may open the tables of Python at once, all write, and nothing of what was there is lost (B42)', async () => {
  const seed = 7
  const url = pythonFile('scenario')
  const client = clientOf({ url })
  const queries: string[] = []
  for (const table of TABLES) {
    const { columns } = await client.execute(`SELECT * FROM harel_${table}`)
    await client.execute(`ALTER TABLE harel_${table} RENAME TO harel_${seed}_${table}`)
    queries.push(`SELECT ${columns} FROM harel_${seed}_${table} ORDER BY 1, 2`)
  }
  const stored = async () => (await client.batch(queries)).map((result) => result.rows)
  const before = await stored()
  expect(before[0]).toHaveLength(18)
  const under: UnderFaults = {
    capabilities: { shared: true },
    open: ({ address = '', ...options }) => LibsqlStore.connect({ url: address }, options),
    address: () => url,
    program: new URL('programs/faults-writer.ts', import.meta.url),
  }
  const opening = scenarios.find(({ name }) => name === 'opening')
  expect(await opening?.run({ under, seed, scale: 0.05 })).toMatchObject({
    acknowledged: 50,
    lost: [],
    doubled: [],
    breaches: [],
  })
  expect(await stored()).toEqual(before)
  expect((await client.execute('PRAGMA integrity_check')).rows).toMatchObject([{ integrity_check: 'ok' }])
})

test('a process that is killed has lost no acknowledged commit, left none half done, and the file whole (B64)', async () => {
  const url = freshFile()
  const client = clientOf({ url })
  const acknowledged = `${pathOf(url)}.acknowledged`
  for (let round = 0; round < 4; round++) {
    const writer = start('writer.ts', 'libsql', url, 'w', '0', acknowledged)
    await once(writer.stdout, 'data')
    await sleep(20 + Math.random() * 250)
    // Now and then in the middle of a checkpoint, too.
    await client.execute('PRAGMA wal_checkpoint(PASSIVE)')
    writer.kill('SIGKILL')
    await once(writer, 'exit')
    await using store = await LibsqlStore.connect({ url })
    const lines = existsSync(acknowledged) ? readFileSync(acknowledged, 'utf8') : ''
    expectAcknowledged(await expectWhole(store), lines)
    expect((await client.execute('PRAGMA integrity_check')).rows).toMatchObject([{ integrity_check: 'ok' }])
  }
  expect(readFileSync(acknowledged, 'utf8').length).toBeGreaterThan(0)
})
