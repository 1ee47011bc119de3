import { type DynamoDBClient, GetItemCommand } from '@aws-sdk/client-dynamodb'
import { type DynamoStore, OutcomeUnknown, StoreConflict } from '@harel/store-dynamodb'
import { withServer } from '@harel-tooling/test-servers/vitest'
import { beforeEach, describe, expect, test } from 'vitest'
import { emitsOf, everything, execution } from './commits.js'
import { clientFor, freshPrefix, itemsOf, storeOn } from './database.js'
import { cancelled, Intermediary, refusal } from './intermediary.js'
import { putItem, pythonItem } from './python.js'

const TABLES = ['executions', 'outbox', 'spawns', 'timers', 'processed', 'trace']

withServer('dynamodb', ({ url }) => {
  let way: Intermediary
  let client: DynamoDBClient
  let prefix: string
  let store: DynamoStore

  beforeEach(async () => {
    way = await Intermediary.to(url)
    client = clientFor(way.url, { maxAttempts: 1 })
    prefix = freshPrefix()
    store = storeOn(client, { prefix, traceMax: 0 })
    await store.load('none')
  })

  const sizes = async (): Promise<number[]> =>
    Promise.all(TABLES.map(async (table) => (await itemsOf(client, `${prefix}_${table}`)).length))

  /** An execution with more of its own than one transaction can delete. */
  const large = async (id: string) => {
    const held = execution(id)
    for (let n = 0; n < 3; n++) {
      const timers = Array.from({ length: 90 }, (_, m) => ({
        action: 'schedule' as const,
        path: `${n}/${m}`,
        fireAt: 1,
      }))
      await store.commit(held, { ...everything(id), processedEventId: `e${n}`, timers })
    }
    return held
  }

  test('what fits into a transaction is purged by one (weakness 32)', async () => {
    const held = execution('a')
    await store.commit(held, everything('a'))
    await store.commit(execution('b'), { emits: [...emitsOf('a', 1), ...emitsOf('b', 1)] })
    const operations = await way.during(async () => expect(await store.purge('a', 1)).toBe(true))
    expect(operations.filter((operation) => operation === 'TransactWriteItems')).toHaveLength(1)
    expect(await sizes()).toEqual([1, 1, 0, 0, 0, 0])
  })

  test('what Python has written for an execution is found', async () => {
    await putItem(client, `${prefix}_executions`, pythonItem('p ü', 4))
    await putItem(client, `${prefix}_processed`, { execution_id: { S: 'p ü' }, event_id: { S: 'e' } })
    await putItem(client, `${prefix}_trace`, { execution_id: { S: 'p ü' }, idx: { N: '0' }, entry: { S: '{}' } })
    await putItem(client, `${prefix}_timers`, { execution_id: { S: 'p ü' }, path: { S: 'P' }, fire_at: { N: '1E+16' } })
    await putItem(client, `${prefix}_outbox`, { seq: { N: '1' }, target_id: { S: 'p ü' }, event: { S: '{}' } })
    await putItem(client, `${prefix}_spawns`, { seq: { N: '1' }, parent_id: { S: 'p ü' }, child_id: { S: 'c' } })
    expect(await store.purge('p ü', 3)).toBe(false)
    expect(await store.purge('p ü', 4)).toBe(true)
    expect(await sizes()).toEqual([0, 0, 0, 0, 0, 0])
  })

  describe('more than a transaction takes', () => {
    test('is purged in parts, and nothing of it is left (B89, B96)', async () => {
      const held = await large('a')
      await large('b')
      const before = await sizes()
      expect(await store.purge('a', held.version)).toBe(true)
      expect(await sizes()).toEqual(before.map((size) => size / 2))
      expect(await store.purge('a', held.version)).toBe(false)
    })

    test('is purged by exactly one of many who try at once', async () => {
      const held = await large('a')
      const stores = Array.from({ length: 4 }, () => storeOn(clientFor(url), { prefix }))
      const purged = await Promise.all(stores.map((each) => each.purge('a', held.version)))
      expect(purged.filter((result) => result)).toHaveLength(1)
      expect(await sizes()).toEqual([0, 0, 0, 0, 0, 0])
    })

    /** A purge that ends after its first transaction, which marks the execution, and maybe after more. */
    const breakOff = async (transactions = 1) => {
      const held = await large('a')
      const fault = refusal('AccessDeniedException')
      let seen = 0
      way.failWhen('TransactWriteItems', () => (seen++ < transactions ? undefined : fault))
      await expect(store.purge('a', held.version)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
      way.heal()
      return held
    }

    test.each([1, 2])(
      'is gone for everybody as soon as its purge has begun, though that broke off (%s)',
      async (transactions) => {
        const held = await breakOff(transactions)
        expect(await store.load('a')).toBeUndefined()
        expect(await store.loadForEvent('a', 'e1')).toEqual({ execution: undefined, processed: false })
        expect((await store.listExecutions()).items).toEqual([])
        expect((await store.listExecutions({ status: 'RUNNING' })).items).toEqual([])
        expect(await store.idsWithPrefix('')).toEqual([])
        await expect(store.commit(held)).rejects.toMatchObject({ code: 'STORE_CONFLICT', found: null })
        // Python, which does not know the mark, cannot go on from it either.
        const { Item } = await client.send(
          new GetItemCommand({ TableName: `${prefix}_executions`, Key: { id: { S: 'a' } } }),
        )
        expect(Item?.version).toEqual({ N: '-1' })
      },
    )

    test('whose purge broke off is purged by the next call at that version', async () => {
      const held = await breakOff()
      expect(await store.purge('a', held.version)).toBe(true)
      expect(await sizes()).toEqual([0, 0, 0, 0, 0, 0])
    })

    test('whose purge broke off is removed as leftovers by a call at another version', async () => {
      await breakOff()
      expect(await store.purge('a', 77)).toBe(false)
      expect(await sizes()).toEqual([0, 0, 0, 0, 0, 0])
    })

    test('whose purge broke off is removed when its id is used again', async () => {
      await breakOff()
      const reborn = execution('a')
      await store.commit(reborn, { trace: { life: 2 }, processedEventId: 'again' })
      expect(reborn.version).toBe(1)
      expect(await store.readTrace('a')).toEqual([{ life: 2, index: 0 }])
      expect(await store.isProcessed('a', 'e1')).toBe(false)
      expect(await sizes()).toEqual([1, 0, 0, 0, 1, 1])
    })

    test('does no harm to a later life when its purge is slow', async () => {
      const held = await large('a')
      const slow = storeOn(clientFor(way.url), { prefix })
      await slow.load('none')
      let goOn = () => {}
      const waiting = new Promise<void>((resolve) => {
        goOn = resolve
      })
      let seen = 0
      // Its second transaction is held up, and meanwhile another process ends the purge and begins a new life.
      way.failWhen('TransactWriteItems', () => (++seen === 2 ? { delayed: waiting } : undefined))
      const purging = slow.purge('a', held.version)
      while (seen < 2) await new Promise((resolve) => setTimeout(resolve, 5))
      const other = storeOn(clientFor(url), { prefix })
      const reborn = execution('a')
      const timers = Array.from({ length: 90 }, (_, m) => ({ action: 'schedule' as const, path: `0/${m}`, fireAt: 2 }))
      await other.commit(reborn, { timers, processedEventId: 'e0' })
      goOn()
      expect(await purging).toBe(false)
      expect(await other.load('a')).toMatchObject({ version: 1 })
      expect(await other.dueTimers(9)).toHaveLength(90)
      expect(await other.isProcessed('a', 'e0')).toBe(true)
    })
  })

  test('leftovers of an execution that is not there are removed, however many they are', async () => {
    await store.appendTrace('a', {})
    for (let n = 0; n < 2; n++) await store.commit(execution(`b${n}`), { emits: emitsOf('a', 70) })
    expect(await store.purge('a', 1)).toBe(false)
    expect(await sizes()).toEqual([2, 0, 0, 0, 0, 0])
  })

  test('a purge that other transactions are in the way of is tried again', async () => {
    await store.commit(execution('a'), everything('a'))
    way.fail('TransactWriteItems', cancelled('TransactionConflict', 'None'), 2)
    expect(await store.purge('a', 1)).toBe(true)
  })

  test('a purge that nobody answers is not said to be undone', async () => {
    await store.commit(execution('a'), everything('a'))
    way.fail('TransactWriteItems', 'reply lost', 1e6)
    await expect(store.purge('a', 1)).rejects.toThrow(OutcomeUnknown)
    way.heal()
    await expect(store.commit(execution('a', { version: 1 }))).rejects.toThrow(StoreConflict)
  })
})
