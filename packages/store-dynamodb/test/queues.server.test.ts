import { BatchWriteItemCommand, type DynamoDBClient, UpdateItemCommand } from '@aws-sdk/client-dynamodb'
import { type DynamoStore, outbox, StoreUnavailable, spawns } from '@harel/store-dynamodb'
import { withServer } from '@harel-tooling/test-servers/vitest'
import { beforeEach, describe, expect, test } from 'vitest'
import { emitsOf, execution } from './commits.js'
import { clientFor, freshPrefix, itemsOf, storeOn } from './database.js'
import { Intermediary } from './intermediary.js'
import { putItem } from './python.js'

const numbers = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, n) => from + n)

withServer('dynamodb', ({ url }) => {
  let way: Intermediary
  let client: DynamoDBClient
  let prefix: string
  let store: DynamoStore

  beforeEach(async () => {
    way = await Intermediary.to(url)
    client = clientFor(way.url)
    prefix = freshPrefix()
    store = storeOn(client, { prefix })
    await store.load('none')
  })

  const event = (seq: number) =>
    JSON.stringify({ id: `e${seq}`, kind: 'k', created_time: null, received_time: null, data: {} })
  const take = (count: number) =>
    client.send(
      new UpdateItemCommand({
        TableName: `${prefix}_counters`,
        Key: { id: { S: 'outbox' } },
        UpdateExpression: 'ADD n :n',
        ExpressionAttributeValues: { ':n': { N: String(count) } },
      }),
    )
  /** Entries as Python writes them, whose numbers were taken before. */
  const write = async (seqs: readonly number[]) => {
    for (let start = 0; start < seqs.length; start += 25) {
      const RequestItems = {
        [`${prefix}_outbox`]: seqs.slice(start, start + 25).map((seq) => ({
          PutRequest: { Item: { seq: { N: String(seq) }, target_id: { NULL: true }, event: { S: event(seq) } } },
        })),
      }
      await client.send(new BatchWriteItemCommand({ RequestItems }))
    }
  }
  const fill = async (count: number) => {
    await take(count)
    await write(numbers(1, count))
  }
  const seqs = async (limit?: number, after?: number) =>
    (await store.pendingOutbox({ limit, after })).map(({ seq }) => seq)

  describe('a short queue', () => {
    test('is read as a whole by one request, whatever numbers it has', async () => {
      await take(1e9)
      await write([7, 3, 123_456_789])
      expect(await way.during(async () => expect(await seqs()).toEqual([3, 7, 123_456_789]))).toEqual(['Scan'])
      expect(await seqs(2)).toEqual([3, 7])
      expect(await seqs(2, 3)).toEqual([7, 123_456_789])
      expect(await seqs(2, 123_456_789)).toEqual([])
    })

    test('shows what comes late, at once', async () => {
      await take(3)
      await write([1, 3])
      expect(await seqs(10)).toEqual([1, 3])
      await write([2])
      expect(await seqs(10)).toEqual([1, 2, 3])
    })

    test('of spawns is read in the same way', async () => {
      const held = execution('a')
      await store.commit(held, { spawns: ['x', 'y', 'z'].map((childId) => ({ childId, rootPath: '', context: {} })) })
      expect((await store.pendingSpawns({ limit: 2 })).map(({ childId }) => childId)).toEqual(['x', 'y'])
      await store.ackSpawn([1, 2])
      const left: string[] = []
      for await (const { childId } of spawns(store)) left.push(childId)
      expect(left).toEqual(['z'])
    })
  })

  describe('a long queue', () => {
    const LENGTH = 400
    beforeEach(() => fill(LENGTH))

    test('is looked at once, then read in windows, whoever wrote it', async () => {
      expect(await seqs(10)).toEqual(numbers(1, 10))
      const operations = await way.during(async () => expect(await seqs(10)).toEqual(numbers(1, 10)))
      expect(operations).toEqual(['GetItem', 'BatchGetItem'])
      expect(await seqs(1000, 300)).toEqual(numbers(301, 400))
    })

    test('gives every entry once in a sweep that acknowledges as it goes, and what is added meanwhile', async () => {
      const seen: number[] = []
      for await (const { seq } of outbox(store)) {
        seen.push(seq)
        await store.ackOutbox(seq)
        if (seq === 350) await store.commit(execution('a'), { emits: emitsOf('x', 3) })
      }
      expect(seen).toEqual(numbers(1, LENGTH + 3))
      expect(await itemsOf(client, `${prefix}_outbox`)).toEqual([])
    })

    test('from which others have taken is read on behind the gap', async () => {
      await seqs(10)
      const gone = numbers(1, 250)
      await storeOn(clientFor(url), { prefix }).ackOutbox(gone)
      expect(await seqs(10)).toEqual(numbers(251, 260))
      // What is gone is not asked for again.
      const operations = await way.during(async () => expect(await seqs(10)).toEqual(numbers(251, 260)))
      expect(operations).toEqual(['GetItem', 'BatchGetItem'])
    })

    test('shows what comes late when it has become short', async () => {
      await take(2)
      await write([LENGTH + 2])
      expect((await seqs(1000, 200)).at(-1)).toBe(LENGTH + 2)
      await write([LENGTH + 1])
      await store.ackOutbox(numbers(1, LENGTH - 50))
      expect(await seqs(100)).toEqual(numbers(LENGTH - 49, LENGTH + 2))
    })

    test('shows what comes late though it stays long, after some sweeps', async () => {
      await seqs(1)
      await take(1)
      await seqs(1000, LENGTH - 10)
      await write([LENGTH + 1])
      expect(await seqs(1000, LENGTH - 10)).toEqual(numbers(LENGTH - 9, LENGTH))
      for (let n = 0; n < 100; n++) await seqs(1)
      expect(await seqs(1000, LENGTH - 10)).toEqual(numbers(LENGTH - 9, LENGTH + 1))
    })

    test('is given as a whole where no page is asked for', async () => {
      await seqs(1)
      expect(await seqs()).toEqual(numbers(1, LENGTH))
    })
  })

  test('a queue of large entries is read page by page, all of them in their order', async () => {
    const text = 'x'.repeat(300 * 1024)
    const held = execution('a')
    for (let n = 0; n < 3; n++) {
      const emits = emitsOf('x', 4).map(({ targetId, event }) => ({ targetId, event: { ...event, data: { text } } }))
      await store.commit(held, { emits })
    }
    expect(await seqs()).toEqual(numbers(1, 12))
    expect(await seqs(5)).toEqual(numbers(1, 5))
    expect(await seqs(100, 5)).toEqual(numbers(6, 12))
  })

  describe('a batch that the service leaves undone in parts', () => {
    test('of reads is asked for again (B89, weakness 3)', async () => {
      await fill(400)
      await seqs(1)
      const table = `${prefix}_outbox`
      const undone = (from: number, to: number) => ({
        status: 200,
        body: {
          Responses: { [table]: [] },
          UnprocessedKeys: {
            [table]: { ConsistentRead: true, Keys: numbers(from, to).map((seq) => ({ seq: { N: String(seq) } })) },
          },
        },
      })
      way.fail('BatchGetItem', undone(1, 10))
      way.fail('BatchGetItem', undone(1, 10))
      expect(await seqs(10)).toEqual(numbers(1, 10))
    })

    test('of acknowledgements is asked for again (B89)', async () => {
      await fill(30)
      const table = `${prefix}_outbox`
      const requests = numbers(1, 25).map((seq) => ({ DeleteRequest: { Key: { seq: { N: String(seq) } } } }))
      way.fail('BatchWriteItem', { status: 200, body: { UnprocessedItems: { [table]: requests } } })
      await store.ackOutbox(numbers(1, 25))
      expect(await seqs()).toEqual(numbers(26, 30))
    })

    test('all the time is unavailable', async () => {
      await fill(2)
      const table = `${prefix}_outbox`
      const requests = [{ DeleteRequest: { Key: { seq: { N: '1' } } } }]
      way.fail('BatchWriteItem', { status: 200, body: { UnprocessedItems: { [table]: requests } } }, 1e6)
      await expect(store.ackOutbox(1)).rejects.toThrow(StoreUnavailable)
    })
  })

  test('an acknowledgement of a page takes a request for every 25, and names each entry once', async () => {
    await fill(60)
    const operations = await way.during(() => store.ackOutbox([...numbers(1, 60), ...numbers(1, 60)]))
    expect(operations).toEqual(Array(3).fill('BatchWriteItem'))
    expect(await seqs()).toEqual([])
  })

  test('an entry that cannot be read stays, is reported, and stops nobody', async () => {
    const warnings: string[] = []
    const warned = storeOn(client, { prefix, onWarning: (message) => warnings.push(message) })
    await take(3)
    await write([1, 3])
    await putItem(client, `${prefix}_outbox`, { seq: { N: '2' }, event: { S: '{' } })
    expect((await warned.pendingOutbox({ limit: 2 })).map(({ seq }) => seq)).toEqual([1, 3])
    expect(warnings.length).toBeGreaterThan(0)
    await warned.ackOutbox(2)
    expect(await itemsOf(client, `${prefix}_outbox`)).toHaveLength(2)
  })
})
