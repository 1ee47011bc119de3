import { dirname } from 'node:path'
import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises'
import {
  InvalidArgument,
  LibsqlStore,
  SchemaMissing,
  StoreClosed,
  StoreConflict,
  StoreUnavailable,
} from '@harel/store-libsql'
import { describe, expect, test, vi } from 'vitest'
import { clientOf, everything, execution, freshFile, open, pathOf, rows } from './helpers.js'

describe('on a file', () => {
  test('there is a write-ahead log, and every connection waits for the disk (B61, weakness 48)', async () => {
    const url = freshFile()
    await open({ url })
    const client = clientOf({ url, concurrency: 3 })
    const transactions = [await client.transaction('read'), await client.transaction('read')]
    const pragma = async (name: string) => {
      const connections = [client, ...transactions]
      return Promise.all(connections.map(async (each) => (await each.execute(`PRAGMA ${name}`)).rows[0]?.[name]))
    }
    expect(await pragma('journal_mode')).toEqual(['wal', 'wal', 'wal'])
    expect(await pragma('synchronous')).toEqual([2, 2, 2])
    for (const transaction of transactions) transaction.close()
  })

  test('a loop of calls lets the rest of the process have its turns', async () => {
    const store = await open({ url: freshFile() })
    const held = execution('a')
    let turns = 0
    const count = setInterval(() => {
      turns += 1
    }, 1)
    for (const end = performance.now() + 200; performance.now() < end; ) {
      await store.commit(held)
      await store.load('a')
    }
    clearInterval(count)
    expect(turns).toBeGreaterThan(20)
  })

  test('reads of one turn share a transaction: each has its own answer, and the failure of one is no other one’s', async () => {
    const client = clientOf({ url: freshFile() })
    const store = new LibsqlStore(client)
    for (const id of ['a', 'b']) await store.commit(execution(id), { processedEventId: 'e' })
    const transactions = vi.spyOn(client, 'transaction')
    const answers = () =>
      Promise.allSettled([store.load('a'), store.load('nobody'), store.readTrace('a'), store.loadForEvent('b', 'e')])
    const a = { status: 'fulfilled', value: expect.objectContaining({ id: 'a' }) }
    const nobody = { status: 'fulfilled', value: undefined }
    const b = { status: 'fulfilled', value: { execution: expect.objectContaining({ id: 'b' }), processed: true } }
    expect(await answers()).toEqual([a, nobody, { status: 'fulfilled', value: [] }, b])
    expect(transactions).toHaveBeenCalledTimes(1)
    await client.execute('DROP TABLE harel_trace')
    expect(await answers()).toEqual([a, nobody, { status: 'rejected', reason: expect.any(SchemaMissing) }, b])
    expect(transactions).toHaveBeenCalledTimes(2)
    await store.close()
  })

  test('who waits for a lock lets the rest of the process go on (B60, weakness 48)', async () => {
    const url = freshFile()
    const store = await open({ url, timeout: 4000 })
    const lock = await clientOf({ url }).transaction('write')
    const committed = store.commit(execution('a'), everything('a'))
    let longest = 0
    let last = performance.now()
    const end = last + 500
    while (last < end) {
      await turn()
      longest = Math.max(longest, performance.now() - last)
      last = performance.now()
    }
    expect(longest).toBeLessThan(300)
    await lock.rollback()
    expect(await committed).toEqual([1])
  })

  test('who waits for too long is told so, has written nothing, and goes on afterwards (B60)', async () => {
    const url = freshFile()
    const [one, two] = [await open({ url }, { lockTimeout: 100 }), await open({ url }, { lockTimeout: 100 })]
    const client = clientOf({ url })
    const lock = await client.transaction('write')
    for (const store of [one, two]) {
      const held = execution('a')
      await expect(store.commit(held, everything('a'))).rejects.toMatchObject({
        code: 'STORE_UNAVAILABLE',
        retryable: true,
        message: expect.stringContaining('100 ms'),
      })
      expect(held.version).toBe(0)
      expect(await store.load('a')).toBeUndefined()
    }
    await lock.rollback()
    expect(await rows(client)).toEqual([0, 0, 0, 0, 0, 0])
    const held = execution('a')
    await one.commit(held, everything('a'))
    await two.commit(held, everything('b'))
    expect(held.version).toBe(2)
  })

  test('of two clients that create one execution, one succeeds and the other conflicts', async () => {
    const url = freshFile()
    const stores = [await open({ url }), await open({ url })]
    for (let round = 0; round < 10; round++) {
      const outcomes = await Promise.allSettled(
        stores.map((store) => store.commit(execution(`e${round}`), everything(`e${round}`))),
      )
      const refused = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason] : []))
      expect(refused).toEqual([expect.any(StoreConflict)])
      expect(refused[0]).toMatchObject({ expected: 0, found: 1 })
    }
    expect(await rows(clientOf({ url }))).toEqual([10, 10, 10, 10, 10, 10])
  })

  test('times are read as they were written, to the last bit', async () => {
    const store = await open({ url: freshFile() })
    const random = Array.from({ length: 300 }, () => 1.6e9 + Math.random() * 1e8)
    const times = [1749667779000, 1700000000001, 0.1, 5e-324, 1.7976931348623157e308, ...random]
    const timers = times.map((fireAt, n) => ({ action: 'schedule', path: `p${n}`, fireAt }) as const)
    await store.commit(execution('a'), { timers })
    await Promise.all(times.map((finishedAt, n) => store.commit(execution(`f${n}`, { status: 'DONE', finishedAt }))))
    const due = await store.dueTimers(1.7976931348623157e308)
    expect(due.map(({ fireAt }) => fireAt)).toEqual(times.toSorted((a, b) => a - b))
    const { items } = await store.listExecutions({ status: 'DONE', limit: 1000 })
    expect(items.map(({ id, finishedAt }) => [id, finishedAt])).toEqual(
      times.map((time, n) => [`f${n}`, time]).sort(([a], [b]) => (String(a) < String(b) ? -1 : 1)),
    )
    for (const [n, fireAt] of times.entries()) await store.deleteTimer('a', `p${n}`, fireAt)
    expect(await store.dueTimers(1.7976931348623157e308)).toEqual([])
  })

  test('numbers are stored as what their columns say (B20)', async () => {
    const url = freshFile()
    const store = await open({ url })
    const held = ['a', 'b', 'c'].map((id) => execution(id, { status: 'DONE', finishedAt: 1749667779 }))
    for (const written of [held.slice(0, 1), held]) {
      await Promise.all(written.map((each) => store.commit(each, everything(each.id))))
    }
    const client = clientOf({ url })
    const types = async (columns: string, table: string) => {
      const list = columns.split(', ').map((column) => `typeof(${column}) AS ${column}`)
      return (await client.execute(`SELECT DISTINCT ${list.join(', ')} FROM harel_${table}`)).rows
    }
    const summary = { version: 'integer', meta_version: 'integer', finished_at: 'real' }
    expect(await types('version, meta_version, finished_at', 'executions')).toEqual([summary])
    expect(await types('fire_at', 'timers')).toEqual([{ fire_at: 'real' }])
    expect(await types('idx', 'trace')).toEqual([{ idx: 'integer' }])
    expect((await client.execute('SELECT CAST(version AS TEXT) AS text FROM harel_executions')).rows).toEqual([
      { text: '2' },
      { text: '1' },
      { text: '1' },
    ])
  })

  test('U+0000 is kept in every value that may hold it (B08)', async () => {
    const store = await open({ url: freshFile() })
    const text = 'a\0b'
    const held = execution('a', { context: { text }, outcome: text, activePath: text, error: text })
    const event = { id: 'e', kind: text, createdTime: null, receivedTime: null, data: { [text]: text } }
    const spawns = [{ childId: 'c', rootPath: '', context: { text } }]
    await store.commit(held, { emits: [{ targetId: null, event }], spawns, trace: { text } })
    await store.publishDefinition({ id: 'd', version: '1', definition: { text } })
    expect(await store.load('a')).toEqual(held)
    expect((await store.listExecutions()).items).toMatchObject([{ outcome: text, activePath: text }])
    expect(await store.pendingOutbox()).toEqual([{ seq: 1, targetId: null, event }])
    expect(await store.pendingSpawns()).toMatchObject([{ context: { text } }])
    expect(await store.readTrace('a')).toEqual([{ text, index: 0 }])
    expect((await store.loadDefinition('d', '1'))?.definition).toEqual({ text })
  })
})

test.each(['bigint', 'string'] as const)('a client that gives integers as %s changes nothing', async (intMode) => {
  const client = clientOf({ url: freshFile(), intMode })
  const store = new LibsqlStore(client)
  const held = execution('a', { finishedAt: 5, status: 'DONE' })
  expect(await store.commit(held, everything('a'))).toEqual([1])
  expect(await store.commit(held, everything('b'))).toEqual([2])
  expect(await store.load('a')).toEqual(held)
  expect(await store.isProcessed('a', 'a-event')).toBe(true)
  expect(await store.loadForEvent('a', 'b-event')).toMatchObject({ processed: true })
  expect((await store.pendingOutbox()).map(({ seq }) => seq)).toEqual([1, 2])
  expect(await store.dueTimers(1)).toEqual([{ executionId: 'a', path: 'P', fireAt: 1 }])
  expect((await store.readTrace('a')).map(({ index }) => index)).toEqual([0, 1])
  expect((await store.listExecutions()).items).toMatchObject([{ version: 2, finishedAt: 5 }])
  await expect(store.commit(execution('a'))).rejects.toMatchObject({ found: 2 })
  expect(await store.purge('a', 2)).toBe(true)
})

describe('in memory', () => {
  test('everything is there after a transaction, also one that failed (B63)', async () => {
    const store = await open({ url: ':memory:' })
    expect(store.capabilities).toMatchObject({ durable: false, shared: false })
    await store.commit(execution('a'))
    await store.transaction((inner) => inner.commit(execution('b')))
    await expect(store.transaction(() => Promise.reject(new Error('undone')))).rejects.toThrow('undone')
    await store.commit(execution('c'))
    expect(await store.idsWithPrefix('')).toEqual(['a', 'b', 'c'])
  })

  test('other calls wait for an open transaction', async () => {
    const store = await open({ url: ':memory:' })
    let outside: Promise<unknown> | undefined
    await store.transaction(async (inner) => {
      outside = Promise.all([store.commit(execution('b')), store.load('a'), store.idsWithPrefix('')])
      await inner.commit(execution('a'))
      await sleep(20)
    })
    expect(await outside).toMatchObject([[], { id: 'a' }, expect.anything()])
  })

  test('a transaction that waits for itself is told so', async () => {
    const store = await open({ url: ':memory:' }, { lockTimeout: 50 })
    await expect(store.transaction(() => store.load('a'))).rejects.toThrow(StoreUnavailable)
    expect(await store.load('a')).toBeUndefined()
  })

  test('clients of a shared cache see one database, as is promised (B63)', async () => {
    const url = 'file::memory:?cache=shared'
    const [one, two] = [await open({ url }), await open({ url })]
    expect(one.capabilities).toMatchObject({ durable: false, shared: true })
    await one.commit(execution('a'))
    await two.commit(execution('b'))
    expect(await one.idsWithPrefix('')).toEqual(['a', 'b'])
  })

  test("on a caller's client it is known from the first call on (B63)", async () => {
    const client = clientOf({ url: ':memory:' })
    const store = new LibsqlStore(client)
    await store.transaction(async (inner, tx) => {
      await tx.execute('CREATE TABLE mine (n)')
      await inner.commit(execution('a'))
    })
    expect(store.capabilities).toMatchObject({ durable: false, shared: true })
    expect((await client.execute('SELECT * FROM mine')).rows).toEqual([])
    expect((await new LibsqlStore(client).load('a'))?.version).toBe(1)
  })
})

test('a file that cannot be opened or written is told, and that trying again does not help (B64)', async () => {
  const refused = { code: 'STORE_UNAVAILABLE', retryable: false }
  const url = freshFile()
  for (const none of [`${url}/missing/harel.db`, `file:${dirname(pathOf(url))}`]) {
    await expect(LibsqlStore.connect({ url: none })).rejects.toMatchObject({
      ...refused,
      message: expect.stringContaining('folder'),
    })
  }
  await expect(LibsqlStore.connect({ url: `file:${import.meta.filename}` })).rejects.toMatchObject({
    ...refused,
    cause: { code: 'SQLITE_NOTADB' },
  })
  const client = clientOf({ url: ':memory:' })
  const store = new LibsqlStore(client)
  await store.commit(execution('a'))
  await client.execute('PRAGMA query_only = ON')
  const held = execution('b')
  await expect(store.commit(held)).rejects.toMatchObject({ ...refused, cause: { code: 'SQLITE_READONLY' } })
  expect(held.version).toBe(0)
  expect((await store.load('a'))?.version).toBe(1)
})

describe("a caller's client", () => {
  test('is left open when the store is closed (B92)', async () => {
    const client = clientOf({ url: freshFile() })
    const store = new LibsqlStore(client)
    await store.commit(execution('a'))
    expect(store.capabilities.durable).toBe(true)
    await store.close()
    await expect(store.load('a')).rejects.toThrow(StoreClosed)
    expect(await rows(client)).toEqual([1, 0, 0, 0, 0, 0])
  })

  test('needs no set-up: calls made at once wait for the tables, and after a failure the next call makes them (B44)', async () => {
    const client = clientOf({ url: freshFile() })
    const failing = new LibsqlStore(client, { lockTimeout: 50 })
    const lock = await client.transaction('write')
    await expect(failing.load('a')).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: true })
    await lock.rollback()
    expect(await failing.load('a')).toBeUndefined()

    const store = new LibsqlStore(client, { prefix: 'other' })
    const held = execution('a')
    const calls = [
      store.listExecutions(),
      store.dueTimers(1),
      store.commit(held, everything('a')),
      store.pendingOutbox(),
    ]
    expect(await Promise.all(calls)).toHaveLength(4)
    expect(await rows(client, 'other')).toEqual([1, 1, 1, 1, 1, 1])
  })

  test('that was closed is a closed store', async () => {
    const client = clientOf({ url: freshFile() })
    const store = new LibsqlStore(client)
    await store.commit(execution('a'))
    client.close()
    await expect(store.load('a')).rejects.toThrow(StoreClosed)
    await expect(store.commit(execution('b'))).rejects.toThrow(StoreClosed)
    await store.close()
  })

  test('must be one', () => {
    for (const given of [undefined, null, {}, 'file:x.db', { url: ':memory:' }]) {
      expect(() => new LibsqlStore(given as never)).toThrow(InvalidArgument)
    }
  })
})

test('the client of a store that was opened is closed with it', async () => {
  const url = freshFile()
  const store = await LibsqlStore.connect({ url })
  const committed = Promise.all(['a', 'b'].map((id) => store.commit(execution(id))))
  const loaded = store.load('a')
  await store.close()
  await committed
  await loaded
  await expect(store.load('a')).rejects.toThrow(StoreClosed)
  expect(await rows(clientOf({ url }))).toEqual([2, 0, 0, 0, 0, 0])
})

test('what is no configuration is refused, and not shown (B102)', async () => {
  const secret = 'TOKEN-42'
  const configs: unknown[] = [
    undefined,
    null,
    'file:x.db',
    {},
    { url: 5 },
    { url: `nonsense ${secret}` },
    { url: `ftp://${secret}@host` },
    { url: `http://host?authToken=${secret}&other=${secret}` },
    { url: 'file:' },
    { url: 'file://' },
    { url: freshFile(), syncUrl: `nonsense ${secret}` },
    { url: freshFile(), syncUrl: 'http://host', offline: true },
  ]
  for (const config of configs) {
    const error = await LibsqlStore.connect(config as never).catch((thrown: unknown) => thrown)
    expect(error, JSON.stringify(config)).toBeInstanceOf(InvalidArgument)
    expect((error as Error).stack).not.toContain(secret)
  }
})

test.each([
  { prefix: 'a-b' },
  { traceMax: -1 },
  { traceMax: 1.5 },
  { lockTimeout: Number.NaN },
  { timeout: 0 },
  { timeout: 2 ** 31 },
  { createSchema: 1 },
  { groupCommit: 'no' },
])('the options %o are refused before anything is opened', async (options) => {
  const url = freshFile()
  await expect(LibsqlStore.connect({ url }, options as never)).rejects.toMatchObject({
    code: expect.stringMatching(/INVALID_(PREFIX|ARGUMENT)/),
  })
  expect(() => new LibsqlStore(clientOf({ url: ':memory:' }), options as never)).toThrow()
})
