import { once } from 'node:events'
import { symlinkSync, writeFileSync } from 'node:fs'
import { relative } from 'node:path'
import type { Worker } from 'node:worker_threads'
import { InvalidArgument, LibsqlStore, StoreError } from '@harel/store-libsql'
import { AsyncSqliteStore, SqliteStore } from '@harel/store-sqlite'
import BetterSqlite3 from 'better-sqlite3'
import { describe, expect, onTestFinished, test } from 'vitest'
import { clientOf, execution, freshFile, pathOf } from './helpers.js'

interface Closable {
  close(): void | Promise<void>
}

/** A connection of the caller's, which goes with the test. */
function connectionTo(url: string): BetterSqlite3.Database {
  const db = new BetterSqlite3(pathOf(url))
  onTestFinished(() => void db.close())
  return db
}

const sqlite: Record<string, (url: string) => Promise<Closable>> = {
  'SqliteStore.open': async (url) => SqliteStore.open(pathOf(url)),
  'new SqliteStore': async (url) => new SqliteStore(connectionTo(url)),
  'AsyncSqliteStore.open': (url) => AsyncSqliteStore.open(pathOf(url)),
}
const libsql: Record<string, (url: string) => Promise<Closable>> = {
  'LibsqlStore.connect': (url) => LibsqlStore.connect({ url }),
  'new LibsqlStore': async (url) => {
    const store = new LibsqlStore(clientOf({ url }))
    await store.load('a')
    return store
  },
}
const pairs = (first: object, second: object) =>
  Object.keys(first).flatMap((one) => Object.keys(second).map((two) => [one, two] as const))
const ways = { ...sqlite, ...libsql }

describe('a file that a store of the other package has open in this process', () => {
  test.each([...pairs(sqlite, libsql), ...pairs(libsql, sqlite)])(
    'is refused until that one is closed (%s, then %s)',
    async (one, two) => {
      const url = freshFile()
      const first = await ways[one]?.(url)
      const other = one in sqlite ? '@harel/store-sqlite' : '@harel/store-libsql'
      await expect(ways[two]?.(url)).rejects.toMatchObject({
        code: 'INVALID_ARGUMENT',
        retryable: false,
        message: expect.stringContaining(`no store of ${other} has open in this process`),
      })
      await first?.close()
      const second = await ways[two]?.(url)
      await expect(ways[one]?.(url)).rejects.toThrow(InvalidArgument)
      await second?.close()
    },
  )

  test.each(pairs(ways, ways).filter(([one, two]) => one in sqlite === two in sqlite))(
    'is another one than a file that this package has open (%s, then %s)',
    async (one, two) => {
      const url = freshFile()
      const stores = [await ways[one]?.(url), await ways[two]?.(url)]
      for (const store of stores) await store?.close()
    },
  )

  test('is known under each of its names', async () => {
    const url = freshFile()
    const path = pathOf(url)
    using _store = SqliteStore.open(` ${path} `)
    symlinkSync(path, `${path}-link`)
    const encoded = path.replace('harel.db', '%68arel.db')
    for (const name of [
      `FILE:${path}`,
      `file://${path}`,
      `file://localhost${path}`,
      `file:${encoded}`,
      `${url}-link`,
    ]) {
      await expect(LibsqlStore.connect({ url: name }), name).rejects.toMatchObject({ argument: 'config.url' })
    }
    await expect(LibsqlStore.connect({ url: `file:${relative('', path)}` })).rejects.toThrow(InvalidArgument)
  })
})

test.each(Object.keys(ways))('a file is free again when it could not be opened (%s)', async (way) => {
  const url = freshFile()
  writeFileSync(pathOf(url), 'no database')
  await expect(ways[way]?.(url)).rejects.toBeInstanceOf(StoreError)
  const others = way in sqlite ? libsql : sqlite
  for (const open of Object.values(others)) await expect(open(url)).rejects.not.toThrow(InvalidArgument)
})

test('a file is free again when its schema is refused', async () => {
  const url = freshFile()
  connectionTo(url)
  const options = { createSchema: false }
  const attempts = [
    () => SqliteStore.open(pathOf(url), options),
    () => new SqliteStore(connectionTo(url), options),
    () => AsyncSqliteStore.open(pathOf(url), options),
    () => LibsqlStore.connect({ url }, options),
    () => new LibsqlStore(clientOf({ url }), options).load('a'),
  ]
  for (const attempt of [...attempts, ...attempts.toReversed()]) {
    await expect((async () => attempt())()).rejects.toMatchObject({ code: 'SCHEMA_MISSING' })
  }
})

test("a database in memory is nobody else's", async () => {
  using _sync = SqliteStore.open(':memory:')
  await using _async = await AsyncSqliteStore.open(':memory:')
  for (const url of [':memory:', 'file::memory:', 'file::memory:?cache=shared']) {
    await using store = await LibsqlStore.connect({ url })
    await store.commit(execution('a'))
    await using borrowed = new LibsqlStore(clientOf({ url }))
    await borrowed.commit(execution('b'))
  }
})

test('a file is free again when the thread of its store has ended', async () => {
  const url = freshFile()
  const started = once(process, 'worker') as Promise<[Worker]>
  await using _store = await AsyncSqliteStore.open(pathOf(url))
  const [worker] = await started
  await expect(LibsqlStore.connect({ url })).rejects.toThrow(InvalidArgument)
  await worker.terminate()
  await using _other = await LibsqlStore.connect({ url })
})
