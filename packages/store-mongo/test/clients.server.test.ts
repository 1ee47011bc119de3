import { inspect } from 'node:util'
import { type ExecutionStore, newEvent, StoreClosed, StoreError } from '@harel/store-base'
import { MongoStore } from '@harel/store-mongo'
import { canonical } from '@harel-tooling/canonical'
import { withServer } from '@harel-tooling/test-servers/vitest'
import { type Db, type MongoClientOptions, ObjectId } from 'mongodb'
import { describe, expect, test } from 'vitest'
import { connect, everything, execution, newPrefix, open, storeOn, useDatabase } from './helpers.js'

/** What a caller may have told a client for the sake of other documents. */
const clients: Record<string, MongoClientOptions> = {
  'Long objects for integers': { promoteLongs: false },
  'BSON objects for all values': { promoteValues: false, promoteLongs: false, promoteBuffers: true },
  'BigInt for integers': { useBigInt64: true },
  'regular expressions as BSON': { bsonRegExp: true },
  'undefined left out and functions written': { ignoreUndefined: true, serializeFunctions: true, checkKeys: false },
  'documents as bytes': { raw: true },
  'some fields as bytes': { fieldsAsRaw: { data: true, context: true, trace: true } },
  'ids of its own': { pkFactory: { createPk: () => new ObjectId() } },
  'reads from secondaries': { readPreference: 'secondaryPreferred', readConcernLevel: 'local' },
  'writes that nobody waits for': { writeConcern: { w: 0 } },
  'no second attempt': { retryWrites: false, retryReads: false },
  'one connection': { maxPoolSize: 1 },
}

/** Something of everything, written and read. */
async function workOn(store: ExecutionStore): Promise<object> {
  const held = execution('c-a', { context: { big: Number.MAX_SAFE_INTEGER, real: 0.5 }, finishedAt: 2 ** 31 })
  for (let round = 0; round < 2; round++) {
    await store.commit(held, {
      emits: [{ targetId: null, event: newEvent({ id: `e${round}`, kind: 'k' }) }],
      processedEventId: 'ev-a-1',
      spawns: [{ childId: 'c-b', rootPath: '', context: { int: 7, large: 2 ** 40, real: 1.5e300, list: [null, {}] } }],
      timers: [{ action: 'schedule', path: 'A.b', fireAt: 2 ** 31 + round }],
      trace: { round, large: 2 ** 40 },
    })
  }
  await store.appendTrace('c-a', { appended: true })
  const found = await store.loadForEvent('c-a', 'ev-a-1')
  expect(found).toMatchObject({ processed: true, execution: { version: 2 } })
  await expect(store.commit(execution('c-a'))).rejects.toMatchObject({ found: 2 })
  const record = { id: 'd', version: '1', definition: { a: null }, publishedAt: 2 ** 40 }
  expect(await store.publishDefinition(record)).toEqual(record)
  return canonical(store, 'c-')
}

withServer('mongo', (server) => {
  const database = useDatabase(server)

  test.each(Object.entries(clients))(
    'a client with %s writes and reads the same as any other (B23, B28, B72)',
    async (_name, options) => {
      const wanted = await workOn(storeOn(database.db(), { prefix: newPrefix() }))
      const prefix = newPrefix()
      const client = connect(database.url, { ...options, monitorCommands: true })
      const commands: Record<string, unknown>[] = []
      client.on('commandStarted', ({ command }) => commands.push(command))
      expect(await workOn(new MongoStore(client.db(), { prefix }))).toEqual(wanted)
      expect(await canonical(storeOn(database.db(), { prefix }), 'c-')).toEqual(wanted)
      for (const { update, find, writeConcern, $readPreference = { mode: 'primary' } } of commands) {
        if (update !== undefined) expect(writeConcern).toEqual({ w: 'majority', j: true })
        if (find !== undefined) expect($readPreference).toMatchObject({ mode: /^primary/ })
      }
    },
  )

  test.each([[null], [5], ['x'], [[]], [() => {}], [new Map([['prefix', 'a']])]])(
    'options that are no plain object are refused: %s',
    async (options) => {
      const refused = MongoStore.connect('mongodb://127.0.0.1:1', options as object)
      await expect(refused).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', argument: 'options' })
    },
  )

  test('options of a database change nothing either (B28, weakness 3)', async () => {
    const prefix = newPrefix()
    const db: Db = connect(database.url).db(undefined, {
      raw: true,
      writeConcern: { w: 0 },
      readPreference: 'secondary',
    })
    const wanted = await workOn(storeOn(database.db(), { prefix: newPrefix() }))
    expect(await workOn(storeOn(db, { prefix }))).toEqual(wanted)
  })

  test('close ends the client of the store, and leaves that of a caller (B92)', async () => {
    const client = connect(database.url)
    const store = new MongoStore(client.db(), { prefix: newPrefix() })
    await store.save(execution('a'))
    await store.close()
    await expect(store.load('a')).rejects.toBeInstanceOf(StoreClosed)
    expect(await client.db().command({ ping: 1 })).toMatchObject({ ok: 1 })
  })

  test('close waits for what is under way', async () => {
    const prefix = newPrefix()
    const store = await open(database.url, { prefix })
    const commits = Array.from({ length: 20 }, (_, n) => store.save(execution(`e${n}`)))
    await new Promise(setImmediate)
    await store.close()
    const outcomes = await Promise.allSettled(commits)
    const stored = await storeOn(database.db(), { prefix }).idsWithPrefix('')
    expect(stored.length).toBe(outcomes.filter(({ status }) => status === 'fulfilled').length)
    for (const outcome of outcomes)
      if (outcome.status === 'rejected') expect(outcome.reason).toBeInstanceOf(StoreClosed)
  })

  test('a caller who has closed the client finds the store closed', async () => {
    const client = connect(database.url)
    const store = new MongoStore(client.db(), { prefix: newPrefix() })
    await store.save(execution('a'))
    await client.close()
    await expect(store.load('a')).rejects.toBeInstanceOf(StoreClosed)
    await expect(store.save(execution('b'))).rejects.toBeInstanceOf(StoreClosed)
  })

  test.each([undefined, null, {}, 'mongodb://host'])('%j is refused as a database', (db) => {
    expect(() => new MongoStore(db as never)).toThrow(
      expect.objectContaining({ code: 'INVALID_ARGUMENT', argument: 'db' }),
    )
  })

  test('the database is that of the URL, else harel, whatever is called test', async () => {
    const named = new URL(database.url)
    const store = await open(named.href, { prefix: newPrefix() })
    await store.save(execution('a'))
    const prefix = newPrefix()
    const plain = await open(server.url, { prefix })
    await plain.save(execution('a'))
    const harel = connect(server.url).db('harel')
    expect(await harel.collection(`${prefix}_executions`).countDocuments()).toBe(1)
    await harel.dropDatabase()
  })

  describe('no secret shows', () => {
    const shown = (value: unknown) =>
      [inspect(value, { depth: 9, showHidden: true }), String((value as Error).stack), JSON.stringify(value)].join()

    test.each([
      'mongodb://app:S3cr3t!pw@127.0.0.1:1/db',
      'mongodb://app:S3cr3t!pw@127.0.0.1:port/db',
      'mongodb://app:S3cr3t%zzpw@[::1/db',
      'mongodb://app:S3cr3t!pw@127.0.0.1:1/db?w=-5',
      'S3cr3t!pw',
    ])('in the error of the URL %s', async (url) => {
      const client = { serverSelectionTimeoutMS: 50 }
      const error = await MongoStore.connect(url, { client }).catch((reason: unknown) => reason)
      expect(error).toBeInstanceOf(StoreError)
      expect(shown(error)).not.toMatch(/S3cr3t/)
    })

    test('in a store that is printed, nor in an error of the server (B102)', async () => {
      const url = new URL(database.url)
      const prefix = newPrefix()
      const store = await open(url.href, { prefix, client: { appName: 'CANARY-42' } })
      await store.commit(execution('a'), everything('a'))
      expect(shown(store)).not.toMatch(/CANARY-42|mongodb:|127\.0\.0\.1/)
      await database.db().command({ collMod: `${prefix}_executions`, validator: { version: { $lt: 2 } } })
      const held = await store.load('a')
      if (held === undefined) return expect.unreachable()
      held.context = { text: 'CANARY-42' }
      const error = await store.commit(held).catch((reason: unknown) => reason)
      if (error instanceof StoreError) expect(shown(error)).not.toMatch(/CANARY-42/)
    })
  })
})
