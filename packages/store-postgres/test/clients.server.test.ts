import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { inspect } from 'node:util'
import { type ExecutionStore, newEvent, StoreClosed, StoreError } from '@harel/store-base'
import { PostgresStore } from '@harel/store-postgres'
import { canonical } from '@harel-tooling/canonical'
import { withServer } from '@harel-tooling/test-servers/vitest'
import postgres from 'postgres'
import { describe, expect, onTestFinished, test } from 'vitest'
import { type ClientOptions, connect, execution, many, newSchema, open, useDatabase } from './helpers.js'

const wrong = { serialize: () => 'WRONG', parse: () => 'WRONG' }
const type = (oid: number) => ({ to: oid, from: [oid], ...wrong })

/** What a caller may have done to a client for the sake of the rows of others. */
const clients: Record<string, object> = {
  'camel case': { transform: postgres.camel },
  'pascal case both ways': { transform: { ...postgres.pascal, undefined: null } },
  'bigint as BigInt': { types: { bigint: postgres.BigInt } },
  'types of its own': {
    types: Object.fromEntries([16, 17, 20, 23, 25, 114, 701, 1009, 1184].map((n) => [`t${n}`, type(n)])),
  },
  'values that are turned around': { transform: { value: () => 'WRONG', column: () => 'wrong' } },
  'rows that are turned into objects': { transform: { row: (row: object) => ({ ...row, extra: 1 }) } },
  'one connection': { max: 1, fetch_types: false },
  'no prepared statements': { prepare: false },
}

/** Something of everything, written and read. */
async function workOn(store: ExecutionStore): Promise<object> {
  const held = many(3, 'c-')
  for (let round = 0; round < 2; round++) {
    await Promise.all(
      held.map((each, n) => {
        each.context = { n, big: Number.MAX_SAFE_INTEGER, text: `"\\'{},\n\u001f$1 NULL ${'é'.repeat(n)}` }
        each.finishedAt = 1700000000.123456
        each.outcome = 'a\u0000b'
        return store.commit(each, {
          emits: [
            { targetId: null, event: newEvent({ id: `${each.id}-${round}-1`, kind: '"\\{}' }) },
            { targetId: 'NULL', event: newEvent({ id: `${each.id}-${round}-2`, kind: 'k' }) },
          ],
          processedEventId: 'ev-a-1',
          spawns: [{ childId: `${each.id}-\\"child`, rootPath: '', context: { a: [null, 1.5e300] } }],
          timers: [{ action: 'schedule', path: '{P,"\\}', fireAt: 1700000000.1234567 }],
          trace: { round, text: '\u0000' },
        })
      }),
    )
  }
  expect(await store.loadForEvent('c-0000', 'ev-a-1')).toMatchObject({ processed: true, execution: { version: 2 } })
  expect(await store.loadForEvent('c-0000', 'none')).toMatchObject({ processed: false })
  await store.publishDefinition({ id: 'd', version: '1', definition: { a: null }, publishedAt: 1.25 })
  const definition = await store.loadDefinition('d', '1')
  expect(definition).toEqual({ id: 'd', version: '1', definition: { a: null }, publishedAt: 1.25 })
  return canonical(store, 'c-', { ranks: true })
}

withServer('postgres', (server) => {
  const database = useDatabase(server)

  test.each(Object.entries(clients))(
    'a client with %s writes and reads the same as any other (B17, B48, B49)',
    async (_name, options) => {
      const schema = newSchema()
      const plain = await open(database.url, { schema: `${schema}plain` })
      const wanted = await workOn(plain)
      const odd = new PostgresStore(connect(database.url, options as ClientOptions), { schema })
      expect(await workOn(odd)).toEqual(wanted)
      const reader = await open(database.url, { schema })
      expect(await canonical(reader, 'c-', { ranks: true })).toEqual(wanted)
      await odd.transaction(async (s) => {
        expect(await canonical(s, 'c-', { ranks: true })).toEqual(wanted)
      })
    },
  )

  test('close ends the pool of the store, and leaves that of a caller as it was (B92, B93)', async () => {
    const schema = newSchema()
    const sql = connect(database.url)
    const before = { ...sql.options }
    const listeners = () => process.eventNames().map((name) => [name, process.listenerCount(name)])
    const listening = listeners()
    const store = new PostgresStore(sql, { schema })
    await store.commit(execution('a'))
    await store.close()
    await store.close()
    await expect(store.load('a')).rejects.toBeInstanceOf(StoreClosed)
    expect(await sql`SELECT 1 AS one`).toMatchObject([{ one: 1 }])
    expect({ ...sql.options }).toEqual(before)
    expect(listeners()).toEqual(listening)

    const application_name = `harel ${schema}`
    const own = await PostgresStore.connect(database.url, { schema, client: { connection: { application_name } } })
    await Promise.all(many(20).map((each) => own.load(each.id)))
    const connections = () => sql`SELECT 1 FROM pg_stat_activity WHERE application_name = ${application_name}`
    expect((await connections()).length).toBeGreaterThan(0)
    await own.close()
    await expect.poll(connections).toHaveLength(0)
  })

  test('close waits for reads, also for those that no connection has taken yet', async () => {
    const store = await open(database.url, { schema: newSchema(), client: { max: 1 } })
    await store.commit(execution('a'))
    const reads = Array.from({ length: 500 }, () => store.load('a'))
    await store.close()
    expect((await Promise.all(reads)).every((each) => each?.version === 1)).toBe(true)
  })

  test('a caller who has ended the pool finds the store closed', async () => {
    const sql = connect(database.url)
    const store = new PostgresStore(sql, { schema: newSchema() })
    await store.commit(execution('a'))
    await sql.end()
    await expect(store.load('a')).rejects.toBeInstanceOf(StoreClosed)
  })

  test('a store shows nothing of its client when it is printed (B102)', async () => {
    const url = new URL(database.url)
    url.password = 'S3cr3t!pw'
    const store = await open(url.href, { schema: newSchema() })
    await store.commit(execution('a'))
    await store.transaction(async (s) => {
      for (const printed of [
        inspect(store, { depth: 9, showHidden: true }),
        JSON.stringify(store),
        inspect(s),
        String(store),
      ]) {
        expect(printed).not.toMatch(/S3cr3t|postgres:|127\.0\.0\.1/)
        expect(printed.length).toBeLessThan(1500)
      }
    })
  })

  describe('an error shows no password', () => {
    const errorOf = async (url: string): Promise<StoreError> => {
      const error = await PostgresStore.connect(url, { client: { connect_timeout: 2 } }).catch((error) => error)
      expect(error).toBeInstanceOf(StoreError)
      return error
    }
    const expectSecret = (error: StoreError) => {
      const printed = [inspect(error, { depth: 9, showHidden: true }), String(error.stack), JSON.stringify(error)]
      for (const text of printed) expect(text).not.toMatch(/S3cr3t/)
    }

    test.each([
      'postgres://app:S3cr3t!pw@127.0.0.1:1/db',
      'postgres://app:S3cr3t!pw@no-such-host.invalid/db',
      'postgres://app:S3cr3t!pw@127.0.0.1:port/db',
      'postgres://app:S3cr3t%pw@[::1/db',
      'postgres://app:S3cr3t!pw@127.0.0.1:1/db?target_session_attrs=nonsense',
      'S3cr3t!pw',
    ])('of the URL %s', async (url) => {
      const error = await errorOf(url)
      expect(['STORE_UNAVAILABLE', 'INVALID_ARGUMENT']).toContain(error.code)
      expectSecret(error)
    })

    test('that the server has refused (B102)', async () => {
      const message = (kind: string, body: Buffer) => {
        const head = Buffer.alloc(5)
        head.write(kind)
        head.writeInt32BE(body.length + 4, 1)
        return Buffer.concat([head, body])
      }
      const refusing = createServer((socket) => {
        socket.once('data', () => {
          socket.write(message('R', Buffer.from([0, 0, 0, 3])))
          socket.once('data', () => {
            socket.end(
              message('E', Buffer.from('SFATAL\0VFATAL\0C28P01\0Mpassword authentication failed for user "app"\0\0')),
            )
          })
        })
      }).listen(0, '127.0.0.1')
      onTestFinished(() => void refusing.close())
      await once(refusing, 'listening')
      const { port } = refusing.address() as AddressInfo
      const error = await errorOf(`postgres://app:S3cr3t!pw@127.0.0.1:${port}/db`)
      expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: false, cause: { code: '28P01' } })
      expectSecret(error)
    })
  })
})
