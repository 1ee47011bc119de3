import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { StoreUnavailable } from '@harel/store-base'
import { AsyncSqliteStore, SqliteStore } from '@harel/store-sqlite'
import { scenarios, type UnderFaults } from '@harel/store-testing/faults'
import type { Database } from 'better-sqlite3'
import { describe, expect, test } from 'vitest'
import { connect, execution, freshFile, pythonFile, rows, run, start, tables, twins } from './helpers.js'
import { expectWhole } from './written.js'

const kinds = ['sync', 'async']

describe('several processes on one file', () => {
  test.each([
    { processes: 2, stores: 'SqliteStore', kind: () => 'sync' },
    { processes: 2, stores: 'AsyncSqliteStore', kind: () => 'async' },
    { processes: 4, stores: 'both kinds', kind: (n: number) => kinds[n % 2] ?? '' },
  ])('with eight writers each never fail for a lock ($processes, $stores) (B60)', async ({ processes, kind }) => {
    const path = freshFile()
    const rounds = 12
    await Promise.all(
      Array.from({ length: processes }, (_, n) => run('writer.ts', path, kind(n), `p${n}`, `${rounds}`)),
    )
    const versions = expectWhole(connect(path))
    expect(versions.size).toBe(processes * 8 + 1)
    expect(versions.get('shared')).toBe(processes * 8 * rounds)
    versions.delete('shared')
    expect([...versions.values()]).toEqual(Array(processes * 8).fill(rounds))
  })

  test('may all open it at once when it is empty (B42)', async () => {
    const path = freshFile()
    await Promise.all(Array.from({ length: 10 }, (_, n) => run('open.ts', path, kinds[n % 2] ?? '', `e${n}`)))
    const db = connect(path)
    expect(rows(db).executions).toBe(10)
    expect(db.pragma('integrity_check', { simple: true })).toBe('ok')
  })
})

describe('ten processes that open the tables of Python at once', () => {
  /** A file of Python's with another prefix, and what its tables hold in the columns that Python has made. */
  function pythonFileWith(prefix: string): { path: string; db: Database; stored: () => unknown[] } {
    const path = pythonFile('scenario')
    const db = connect(path)
    const queries = tables.map((table) => {
      db.exec(`ALTER TABLE harel_${table} RENAME TO ${prefix}_${table}`)
      const columns = db.prepare(`SELECT * FROM ${prefix}_${table}`).columns()
      return `SELECT ${columns.map(({ name }) => name)} FROM ${prefix}_${table} ORDER BY 1, 2`
    })
    return { path, db, stored: () => queries.map((query) => db.prepare(query).raw().all()) }
  }

  test.each([
    { store: 'AsyncSqliteStore', program: 'faults-writer.ts', open: AsyncSqliteStore.open },
    { store: 'SqliteStore', program: 'faults-writer-sync.ts', open: SqliteStore.open },
  ])('all write, and nothing of what was there is lost ($store) (B42)', async ({ program, open }) => {
    const seed = 7
    const { path, db, stored } = pythonFileWith(`harel_${seed}`)
    const before = stored()
    expect(before[0]).toHaveLength(18)
    const under: UnderFaults = {
      capabilities: { shared: true },
      open: ({ address = '', ...options }) => open(address, options),
      address: () => path,
      program: new URL(`programs/${program}`, import.meta.url),
    }
    const opening = scenarios.find(({ name }) => name === 'opening')
    expect(await opening?.run({ under, seed, scale: 0.05 })).toMatchObject({
      acknowledged: 50,
      lost: [],
      doubled: [],
      breaches: [],
    })
    expect(stored()).toEqual(before)
    expect(db.pragma('integrity_check', { simple: true })).toBe('ok')
  })
})

describe.each(twins)('$name, while another process holds the write lock', ({ open }) => {
  const setUp = async (milliseconds: number, lockTimeout?: number) => {
    const path = freshFile()
    const store = await open(path, lockTimeout === undefined ? {} : { lockTimeout })
    const held = execution('a')
    await store.save(held)
    const locker = start('hold-lock.ts', path, `${milliseconds}`)
    await once(locker.stdout, 'data')
    return { path, store, held, locker }
  }

  test('waits for a second and then commits (B60)', async () => {
    const { store, held } = await setUp(1000)
    await using _closed = store
    const begin = performance.now()
    await store.save(held)
    expect(held.version).toBe(2)
    expect(performance.now() - begin).toBeGreaterThan(700)
  })

  test('gives up after lockTimeout: StoreUnavailable, nothing written, and the next commit works (B60)', async () => {
    const { store, held, locker } = await setUp(1500, 200)
    await using _closed = store
    const begin = performance.now()
    await expect(store.save(held)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: true })
    expect(performance.now() - begin).toBeLessThan(1000)
    expect(held.version).toBe(1)
    await once(locker, 'exit')
    await store.save(held)
    expect(held.version).toBe(2)
  })

  test('reads all the same (B60)', async () => {
    const { store } = await setUp(2000, 100)
    await using _closed = store
    expect((await store.load('a'))?.version).toBe(1)
    expect((await store.listExecutions()).items).toHaveLength(1)
    expect(await store.idsWithPrefix('')).toEqual(['a'])
  })

  test('is opened at once on tables that are there', async () => {
    const { path, store } = await setUp(2000)
    await using _closed = store
    await using second = await open(path, { lockTimeout: 0 })
    expect((await second.load('a'))?.version).toBe(1)
    await expect(second.save(execution('b'))).rejects.toThrow(StoreUnavailable)
  })
})

describe.each(kinds)('a writing process that is killed (%s)', (kind) => {
  test('has lost no acknowledged commit and left none half done (B64)', async () => {
    const path = freshFile()
    const acknowledged = `${path}.acknowledged`
    for (let round = 0; round < 5; round++) {
      const writer = start('writer.ts', path, kind, 'w', '0', acknowledged)
      await once(writer.stdout, 'data')
      await sleep(20 + Math.random() * 250)
      writer.kill('SIGKILL')
      await once(writer, 'exit')
      // As the next process finds it, the log still to be read.
      using store = SqliteStore.open(path)
      const versions = store.transaction((_inner, db) => expectWhole(db))
      const lines = existsSync(acknowledged) ? readFileSync(acknowledged, 'utf8').split('\n').slice(0, -1) : []
      for (const line of lines) {
        const [id = '', version] = line.split(' ')
        expect(versions.get(id), `commit ${version} of ${id}`).toBeGreaterThanOrEqual(Number(version))
      }
    }
    expect(readFileSync(acknowledged, 'utf8').length).toBeGreaterThan(0)
  })
})

test('several stores in one process share a file, each commit once', async () => {
  const path = freshFile()
  const stores = await Promise.all([...twins, ...twins].map(({ open }) => open(path)))
  const outcomes = await Promise.allSettled(
    stores.flatMap((store, s) =>
      Array.from({ length: 25 }, async (_, n) => {
        await store.save(execution(`own-${s}-${n}`))
        await store.save(execution(`first-${n}`))
      }),
    ),
  )
  expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(25)
  expect(rows(connect(path)).executions).toBe(4 * 25 + 25)
  for (const store of stores) await store.close()
})
