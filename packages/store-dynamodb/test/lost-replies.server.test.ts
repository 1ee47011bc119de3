import type { DynamoDBClientConfig } from '@aws-sdk/client-dynamodb'
import { type DynamoStore, newEvent, OutcomeUnknown, StoreConflict, StoreUnavailable } from '@harel/store-dynamodb'
import { withServer } from '@harel-tooling/test-servers/vitest'
import { beforeEach, describe, expect, test } from 'vitest'
import { emitsOf, everything, execution } from './commits.js'
import { clientFor, freshPrefix, storeOn } from './database.js'
import { type Fault, Intermediary } from './intermediary.js'

const ALWAYS = 1e6

const clients: { name: string; config: DynamoDBClientConfig }[] = [
  { name: 'a client that sends again by itself', config: {} },
  { name: 'a client that gives up at once', config: { maxAttempts: 1 } },
  { name: 'a client that caches its middleware', config: { cacheMiddleware: true } },
]

withServer('dynamodb', ({ url }) => {
  let way: Intermediary
  let prefix: string

  beforeEach(async () => {
    way = await Intermediary.to(url)
    prefix = freshPrefix()
  })

  const open = async (config: DynamoDBClientConfig = {}): Promise<DynamoStore> => {
    const store = storeOn(clientFor(way.url, config), { prefix })
    await store.load('none')
    return store
  }
  const direct = () => storeOn(clientFor(url), { prefix })

  describe.each(clients)('over $name', ({ config }) => {
    const losses: Fault[] = ['request lost', 'reply lost', 'reply cut']

    test.each(losses)('a commit is applied once, and succeeds with its seqs (%s)', async (loss) => {
      const store = await open(config)
      const held = execution('a')
      way.fail('TransactWriteItems', loss, 2)
      expect(await store.commit(held, everything('a'))).toEqual([1, 2])
      expect(held.version).toBe(1)
      expect((await store.pendingOutbox()).map(({ seq }) => seq)).toEqual([1, 2])
      expect(await store.readTrace('a')).toHaveLength(1)
      expect(await store.commit(held, everything('a'))).toEqual([3, 4])
    })

    test.each(losses)('every other method comes to its end (%s)', async (loss) => {
      const store = await open(config)
      const held = execution('a')
      await store.commit(held, everything('a'))
      const calls: [operation: string, call: () => Promise<unknown>, result: unknown][] = [
        ['GetItem', () => store.load('a'), expect.objectContaining({ version: 1 })],
        ['TransactGetItems', () => store.loadForEvent('a', 'a-event'), expect.objectContaining({ processed: true })],
        ['GetItem', () => store.isProcessed('a', 'a-event'), true],
        ['Scan', () => store.pendingOutbox({ limit: 1 }), [expect.objectContaining({ seq: 1 })]],
        ['BatchWriteItem', () => store.ackOutbox(1), undefined],
        ['Scan', () => store.pendingOutbox(), [expect.objectContaining({ seq: 2 })]],
        ['DeleteItem', () => store.deleteTimer('a', 'P', 1.5), undefined],
        ['Scan', () => store.dueTimers(9), []],
        ['TransactWriteItems', () => store.appendTrace('a', { n: 2 }), undefined],
        [
          'Query',
          () => store.readTrace('a'),
          [
            { event: 'Tick', index: 0 },
            { n: 2, index: 1 },
          ],
        ],
        ['Scan', () => store.idsWithPrefix('a'), ['a']],
        [
          'PutItem',
          () => store.publishDefinition({ id: 'd', version: '1', definition: 1 }),
          expect.objectContaining({ definition: 1 }),
        ],
        ['UpdateItem', () => store.commit(held, { emits: emitsOf('x', 1) }), [expect.any(Number)]],
        ['TransactWriteItems', () => store.purge('a', 2), true],
      ]
      for (const [operation, call, result] of calls) {
        way.fail(operation, loss)
        expect(await call(), operation).toEqual(result)
      }
    })

    test('a commit whose first request arrives late is applied once', async () => {
      const store = await open(config)
      const held = execution('a')
      let arrive = () => {}
      const late = new Promise<void>((resolve) => {
        arrive = resolve
      })
      way.fail('TransactWriteItems', { late })
      await store.commit(held, { emits: emitsOf('x', 1) })
      await store.commit(held, { emits: emitsOf('x', 1) })
      arrive()
      await way.settled()
      expect(await store.load('a')).toMatchObject({ version: 2 })
      expect(await store.pendingOutbox()).toHaveLength(2)
    })

    test('a commit that the service has forgotten, when it is sent again, is known by what it has written', async () => {
      const store = await open(config)
      const held = execution('a')
      way.fail('TransactWriteItems', 'reply lost')
      way.fail('TransactWriteItems', { altered: (body) => body.replace(/("ClientRequestToken":")./, '$1-') })
      const operations = await way.during(async () => {
        expect(await store.commit(held, everything('a'))).toEqual([1, 2])
      })
      // Its seqs are known, though its events may have left the queue.
      expect(operations.slice(-2)).toEqual(['TransactWriteItems', 'TransactWriteItems'])
      expect(held.version).toBe(1)
      expect(await store.pendingOutbox()).toHaveLength(2)
    })

    test('a commit that another worker has forestalled is a conflict, also when its reply is lost', async () => {
      const store = await open(config)
      await direct().commit(execution('a'), { processedEventId: 'theirs' })
      way.fail('TransactWriteItems', 'reply lost')
      const error = await store.commit(execution('a'), { processedEventId: 'mine' }).catch((reason: unknown) => reason)
      expect(error).toBeInstanceOf(StoreConflict)
      expect(error).toMatchObject({ expected: 0, found: 1 })
    })
  })

  test('a commit that is still under way when nobody answers any more is not said to be unwritten', async () => {
    const store = await open()
    const held = execution('a')
    let arrive = () => {}
    const late = new Promise<void>((resolve) => {
      arrive = resolve
    })
    way.fail('TransactWriteItems', { late })
    way.fail('TransactWriteItems', 'request lost', ALWAYS)
    await expect(store.commit(held)).rejects.toThrow(OutcomeUnknown)
    expect(held.version).toBe(0)
    expect(await store.load('a')).toBeUndefined()
    arrive()
    await way.settled()
    expect(await store.load('a')).toMatchObject({ version: 1 })
  })

  test('a commit that nobody could be asked for was not written', async () => {
    // A connection that is kept breaks in the middle of a request.
    const store = await open({ maxAttempts: 1, requestHandler: { httpAgent: { keepAlive: false } } })
    way.refuse()
    const held = execution('a')
    await expect(store.commit(held, { processedEventId: 'e' })).rejects.toThrow(StoreUnavailable)
    expect(held.version).toBe(0)
    expect(await direct().load('a')).toBeUndefined()
  })

  test('a service that says nothing is given up after the time of the client', async () => {
    const requestHandler = { requestTimeout: 100, throwOnRequestTimeout: true }
    const store = await open({ requestHandler, maxAttempts: 1 })
    way.fail('TransactWriteItems', 'silence')
    const held = execution('a')
    await store.commit(held)
    expect(held.version).toBe(1)
    way.fail('TransactWriteItems', 'silence', ALWAYS)
    await expect(store.commit(held)).rejects.toThrow(OutcomeUnknown)
  })

  test('commits over connections that break all the time are applied once each', async () => {
    const store = await open()
    const losses: Fault[] = ['request lost', 'reply lost', 'reply cut']
    way.failWhen('TransactWriteItems', () => (Math.random() < 0.4 ? losses[Math.floor(Math.random() * 3)] : undefined))
    const held = Array.from({ length: 8 }, (_, n) => execution(`e${n}`))
    await Promise.all(
      held.map(async (each) => {
        for (let n = 0; n < 20; n++) {
          const event = newEvent({ id: `${each.id}:${n}`, kind: 'k' })
          await store.commit(each, { emits: [{ targetId: each.id, event }], processedEventId: event.id, trace: { n } })
        }
      }),
    )
    way.heal()
    const events = (await store.pendingOutbox()).map(({ event }) => event.id)
    expect(new Set(events).size).toBe(160)
    expect(events).toHaveLength(160)
    for (const { id } of held)
      expect((await store.readTrace(id)).map(({ n }) => n)).toEqual(Array.from({ length: 20 }, (_, n) => n))
  })
})
