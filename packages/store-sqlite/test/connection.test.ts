import { existsSync } from 'node:fs'
import { dirname } from 'node:path'
import { inspect } from 'node:util'
import {
  type CommitChanges,
  InvalidArgument,
  InvalidPrefix,
  OutcomeUnknown,
  StoreClosed,
  type SyncExecutionStore,
} from '@harel/store-base'
import { AsyncSqliteStore, type SqliteOptions, SqliteStore } from '@harel/store-sqlite'
import BetterSqlite3, { type Database } from 'better-sqlite3'
import { describe, expect, test } from 'vitest'
import { connect, everything, execution, failNext, freshFile, poison, rows, twins } from './helpers.js'

const level = (db: Database) => Number(db.pragma('synchronous', { simple: true }))
const journal = (db: Database) => db.pragma('journal_mode', { simple: true })
const FULL = 2
const EXTRA = 3

describe('durability', () => {
  test('a commit of SqliteStore.open is on the disk when it returns: synchronous is FULL', () => {
    using store = SqliteStore.open(freshFile())
    store.save(execution('a'))
    // Only a transaction hands out the store's own connection.
    expect(store.transaction((_store, db) => level(db))).toBe(FULL)
  })

  test('a commit of AsyncSqliteStore is on the disk when it is acknowledged: synchronous is FULL', async () => {
    await using store = await AsyncSqliteStore.open(freshFile())
    await store.save(execution('a'))
    const row = await store.transaction(async (_store, tx) => tx.get<{ synchronous: number }>('PRAGMA synchronous'))
    expect(row?.synchronous).toBe(FULL)
  })

  test("a caller's connection whose level nobody has set stays at FULL when it turns to a write-ahead log", () => {
    const db = connect(freshFile())
    const store = new SqliteStore(db)
    db.pragma('journal_mode = WAL')
    store.save(execution('a'))
    expect(level(db)).toBe(FULL)
  })

  test.each([
    ['OFF', FULL],
    ['NORMAL', FULL],
    ['FULL', FULL],
    ['EXTRA', EXTRA],
  ])("a caller's connection at %s is at %i afterwards", (given, expected) => {
    const db = connect(freshFile())
    db.pragma(`synchronous = ${given}`)
    new SqliteStore(db).save(execution('a'))
    expect(level(db)).toBe(expected)
  })

  test.each(twins)('$name writes the file with a write-ahead log', async ({ open }) => {
    const path = freshFile()
    await using store = await open(path)
    await store.save(execution('a'))
    expect(journal(connect(path))).toBe('wal')
    expect(existsSync(`${path}-wal`)).toBe(true)
  })

  test("a caller's journal mode stays as it is", () => {
    const db = connect(freshFile())
    expect(journal(db)).toBe('delete')
    const store = new SqliteStore(db)
    store.save(execution('a'))
    expect(journal(db)).toBe('delete')
  })

  test('a disk that fails during COMMIT leaves the outcome open: OutcomeUnknown, and the version is what it was', () => {
    const db = connect(freshFile())
    const store = new SqliteStore(db)
    const held = execution('a')
    store.save(held)
    failNext(db, 'COMMIT', new BetterSqlite3.SqliteError('disk I/O error', 'SQLITE_IOERR_FSYNC'))
    const second = new SqliteStore(db)
    expect(() => second.save(held)).toThrow(OutcomeUnknown)
    expect(held.version).toBe(1)
    second.save(held)
    expect(held.version).toBe(2)
  })
})

describe("a caller's connection", () => {
  /** One answer of each method that reads. */
  const readAll = (store: SyncExecutionStore) => ({
    load: store.load('a'),
    loadForEvent: store.loadForEvent('a', 'a-event'),
    isProcessed: store.isProcessed('a', 'a-event'),
    outbox: store.pendingOutbox(),
    spawns: store.pendingSpawns(),
    timers: store.dueTimers(10),
    trace: store.readTrace('a'),
    listing: store.listExecutions({ status: 'PENDING' }),
    ids: store.idsWithPrefix(''),
    definition: store.loadDefinition('d', '1'),
  })
  const writeAll = (store: SyncExecutionStore, changes: CommitChanges) => {
    const held = execution('a', { finishedAt: 1.5 })
    const seqs = store.commit(held, changes)
    store.commit(held, { trace: { n: 2 }, timers: [{ action: 'schedule', path: 'Q', fireAt: 3 }] })
    store.publishDefinition({ id: 'd', version: '1', definition: { states: {} }, publishedAt: 12 })
    return seqs
  }

  test('that returns bigints reads and writes the same (B17)', () => {
    const [plain, big] = [connect(':memory:'), connect(':memory:')]
    big.defaultSafeIntegers(true)
    const stores = [new SqliteStore(plain), new SqliteStore(big)]
    const changes = everything('a')
    const [seqs, bigSeqs] = stores.map((store) => writeAll(store, changes))
    expect(bigSeqs).toEqual(seqs)
    const [answers, bigAnswers] = stores.map((store) => readAll(store))
    expect(bigAnswers).toEqual(answers)
    expect(answers?.load?.version).toBe(2)
  })

  test('stays open when the store is closed (B92)', () => {
    const db = connect(freshFile())
    const store = new SqliteStore(db)
    store.save(execution('a'))
    store.close()
    expect(db.open).toBe(true)
    expect(rows(db).executions).toBe(1)
  })

  test('is left alone by a store that was closed, in every method', () => {
    const store = new SqliteStore(connect(':memory:'))
    store.close()
    store.close()
    expect(() => store.load('a')).toThrow(StoreClosed)
    expect(() => store.save(execution('a'))).toThrow(StoreClosed)
    expect(() => store.migrate()).toThrow(StoreClosed)
    expect(() => store.transaction(() => 1)).toThrow(StoreClosed)
  })

  test('that its owner has closed closes the store: StoreClosed', () => {
    const db = connect(':memory:')
    const store = new SqliteStore(db)
    db.close()
    expect(() => store.load('a')).toThrow(StoreClosed)
    expect(() => store.save(execution('a'))).toThrow(StoreClosed)
    expect(() => new SqliteStore(db)).toThrow(StoreClosed)
  })

  test('with an open transaction takes no commit, and nothing is written (weakness 19)', () => {
    const db = connect(freshFile())
    const store = new SqliteStore(db)
    const held = execution('a')
    db.exec('BEGIN')
    const writes: (() => unknown)[] = [
      () => store.commit(held, everything('a')),
      () => store.appendTrace('a', {}),
      () => store.ackOutbox(1),
      () => store.purge('a', 1),
      () => store.transaction((inner) => inner.save(held)),
    ]
    for (const write of writes) expect(write).toThrow(InvalidArgument)
    expect(held.version).toBe(0)
    db.exec('COMMIT')
    expect(Object.values(rows(db))).toEqual([0, 0, 0, 0, 0, 0])
    store.commit(held)
    expect(held.version).toBe(1)
  })

  test('that is read-only reads, and refuses to write', () => {
    const path = freshFile()
    const held = execution('a')
    const writer = SqliteStore.open(path)
    writer.commit(held, everything('a'))
    writer.close()
    const db = new BetterSqlite3(path, { readonly: true })
    const store = new SqliteStore(db)
    expect(store.load('a')?.version).toBe(1)
    expect(store.listExecutions({ status: 'PENDING' }).items).toHaveLength(1)
    const refused = { code: 'STORE_UNAVAILABLE', retryable: false }
    expect(() => store.save(held)).toThrow(expect.objectContaining(refused))
    expect(held.version).toBe(1)
    db.close()
  })

  test('that is being read from takes no commit, which may be tried again', () => {
    const db = connect(freshFile())
    const store = new SqliteStore(db)
    const held = execution('a')
    for (const _row of db.prepare('SELECT 1 UNION SELECT 2').iterate()) {
      expect(() => store.save(held)).toThrow(expect.objectContaining({ code: 'STORE_UNAVAILABLE', retryable: true }))
    }
    store.save(held)
    expect(held.version).toBe(1)
  })

  test('that is no connection is refused', () => {
    expect(() => new SqliteStore('harel.db' as unknown as Database)).toThrow('SqliteStore.open')
  })
})

describe.each(twins)('$name', ({ open }) => {
  test('works in memory, in a database of its own', async () => {
    await using store = await open(':memory:')
    await using other = await open(':memory:')
    expect(store.capabilities).toMatchObject({ durable: false, shared: false, transactions: true })
    const held = execution('a')
    await store.commit(held, everything('a'))
    await store.commit(held)
    expect((await store.load('a'))?.version).toBe(2)
    expect(await store.pendingOutbox()).toHaveLength(1)
    expect(await other.load('a')).toBeUndefined()
  })

  test('stores numbers as what their columns say (B20)', async () => {
    const path = freshFile()
    await using store = await open(path)
    const held = execution('a', { status: 'DONE', finishedAt: 1749667779 })
    await store.commit(held, everything('a'))
    await store.commit(held, everything('b'))
    const db = connect(path)
    const types = (columns: string[], table: string) => {
      const list = columns.map((column) => `typeof(${column})`)
      return db
        .prepare(`SELECT DISTINCT ${list.join(" || ' ' || ")} FROM harel_${table}`)
        .pluck()
        .all()
    }
    expect(types(['version', 'meta_version', 'finished_at'], 'executions')).toEqual(['integer integer real'])
    expect(types(['fire_at'], 'timers')).toEqual(['real'])
    expect(types(['seq'], 'outbox')).toEqual(['integer'])
    expect(types(['idx'], 'trace')).toEqual(['integer'])
  })

  test('keeps every step of a trace with traceMax: 0', async () => {
    await using store = await open(':memory:', { traceMax: 0 })
    for (let n = 0; n < 250; n++) await store.appendTrace('a', { n })
    expect(await store.readTrace('a')).toHaveLength(250)
  })

  test.each([
    ['an empty path', ''],
    ['a path with NUL', 'a\0b'],
    ['no string', 7 as unknown as string],
  ])('refuses %s', async (_name, path) => {
    await expect(open(path)).rejects.toThrow(InvalidArgument)
  })

  test('refuses options that mean nothing', async () => {
    const path = freshFile()
    await expect(open(path, { prefix: 'a-b' })).rejects.toThrow(InvalidPrefix)
    for (const traceMax of [-1, 1.5, Number.NaN])
      await expect(open(path, { traceMax })).rejects.toThrow(InvalidArgument)
    await expect(open(path, { lockTimeout: -1 })).rejects.toThrow(InvalidArgument)
    await expect(open(path, { createSchema: 'no' as unknown as boolean })).rejects.toThrow(InvalidArgument)
    expect(existsSync(path)).toBe(false)
  })

  test('says so when the file cannot be opened, and that trying again does not help (B64)', async () => {
    const refused = { code: 'STORE_UNAVAILABLE', retryable: false }
    await expect(open(`${freshFile()}/missing/harel.db`)).rejects.toMatchObject({
      ...refused,
      message: expect.stringContaining('the directory does not exist'),
    })
    await expect(open(dirname(freshFile()))).rejects.toMatchObject({ ...refused, cause: { code: 'SQLITE_CANTOPEN' } })
    await expect(open(import.meta.filename)).rejects.toMatchObject({ ...refused, cause: { code: 'SQLITE_NOTADB' } })
  })
})

describe('what a store shows of itself', () => {
  const secret = 'a-secret-folder'

  test.each(twins)('holds no payload when SQLite refuses a commit ($name) (B102)', async ({ open }) => {
    const path = freshFile()
    await using store = await open(path)
    poison(connect(path), 'ABORT')
    const held = execution('poison', { context: { secret }, error: secret })
    const error = await store.commit(held, everything('poison')).catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: false })
    expect(inspect(error, { depth: 9, showHidden: true })).not.toContain(secret)
  })

  test.each(['sync', 'async'])('holds no path, statement or record (%s)', async (kind) => {
    const path = `${freshFile()}-${secret}`
    const store = kind === 'sync' ? SqliteStore.open(path) : await AsyncSqliteStore.open(path)
    await store.save(execution('a', { context: { password: secret } }))
    for (const shown of [inspect(store, { depth: 9, showHidden: true }), JSON.stringify(store), String(store)]) {
      expect(shown).not.toContain(secret)
      expect(shown).not.toContain('SELECT')
    }
    await store.close()
  })
})

test.each([
  [{ prefx: 'tenant1' }, 'options'],
  [{ numbers: 'Exact' }, 'numbers'],
  [{ onWarning: 'x' }, 'onWarning'],
  [null, 'options'],
])('wrong options are refused: %j', async (options, argument) => {
  const refused = { code: 'INVALID_ARGUMENT', argument }
  const wrong = options as unknown as SqliteOptions
  expect(() => SqliteStore.open(':memory:', wrong)).toThrow(expect.objectContaining(refused))
  await expect(AsyncSqliteStore.open(':memory:', wrong)).rejects.toMatchObject(refused)
})
