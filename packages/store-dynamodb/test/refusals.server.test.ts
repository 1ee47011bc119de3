import { inspect } from 'node:util'
import type { DynamoDBClient } from '@aws-sdk/client-dynamodb'
import {
  DynamoStore,
  OutcomeUnknown,
  SchemaMissing,
  StoreConflict,
  StoreError,
  StoreUnavailable,
} from '@harel/store-dynamodb'
import { withServer } from '@harel-tooling/test-servers/vitest'
import { beforeEach, describe, expect, test } from 'vitest'
import { emitsOf, everything, execution } from './commits.js'
import { clientFor, configFor, credentials, freshPrefix, storeOn } from './database.js'
import { cancelled, type Fault, Intermediary, refusal } from './intermediary.js'

const ALWAYS = 1e6

withServer('dynamodb', ({ url }) => {
  let way: Intermediary
  let client: DynamoDBClient
  let prefix: string
  let store: DynamoStore

  beforeEach(async () => {
    way = await Intermediary.to(url)
    client = clientFor(way.url, { maxAttempts: 1 })
    prefix = freshPrefix()
    store = storeOn(client, { prefix })
    await store.load('none')
  })

  describe('a commit', () => {
    const passing: [reason: string, fault: Fault][] = [
      ['other transactions', cancelled('None', 'TransactionConflict')],
      ['throttling', cancelled('ThrottlingError', 'None')],
      ['throttling of the capacity', cancelled('ProvisionedThroughputExceeded', 'None')],
      ['throttling of the request', refusal('ProvisionedThroughputExceededException')],
      ['throttling of the service', refusal('ThrottlingException')],
      ['the limit of the account', refusal('RequestLimitExceeded')],
      ['itself, which is still under way', refusal('TransactionInProgressException')],
      ['an error inside the service', refusal('InternalServerError', {}, 500)],
      ['a service that is not there', { status: 503, body: {} }],
    ]

    test.each(passing)(
      'that is held up by %s is tried again, with the same token, and succeeds once (B68)',
      async (_reason, fault) => {
        way.fail('TransactWriteItems', fault, 3)
        const held = execution('a')
        const [request] = way.requests.splice(0)
        expect(request).toBeDefined()
        expect(await store.commit(held, { emits: emitsOf('x', 2), processedEventId: 'e' })).toEqual([1, 2])
        const sent = way.requests.filter(({ operation }) => operation === 'TransactWriteItems').map(({ body }) => body)
        expect(sent).toHaveLength(4)
        expect(new Set(sent).size).toBe(1)
        expect(held.version).toBe(1)
        expect(await store.pendingOutbox()).toHaveLength(2)
      },
    )

    test.each([
      ['transactions of others', cancelled('None', 'TransactionConflict'), /TransactionConflict/],
      ['throttling', refusal('ThrottlingException'), /ThrottlingException/],
    ] as const)(
      'that is held up by %s all the time is unavailable, can be repeated, and wrote nothing',
      async (_, fault, message) => {
        way.fail('TransactWriteItems', fault, ALWAYS)
        const held = execution('a')
        const error = await store.commit(held).catch((reason: unknown) => reason)
        expect(error).toBeInstanceOf(StoreUnavailable)
        expect(error).toMatchObject({ retryable: true, message: expect.stringMatching(message) })
        expect(held.version).toBe(0)
        expect(await store.load('a')).toBeUndefined()
      },
    )

    test('that is said to be under way all the time may be written, so that nobody is told otherwise', async () => {
      way.fail('TransactWriteItems', refusal('TransactionInProgressException'), ALWAYS)
      await expect(store.commit(execution('a'))).rejects.toThrow(OutcomeUnknown)
    })

    test('whose version is another one is a conflict, even where another transaction was in the way as well (B68, weakness 31)', async () => {
      const held = execution('a')
      await store.save(held)
      const [execution1] = [{ Code: 'ConditionalCheckFailed', Item: { id: { S: 'a' }, version: { N: '7' } } }]
      way.fail(
        'TransactWriteItems',
        refusal('TransactionCanceledException', { CancellationReasons: [execution1, { Code: 'TransactionConflict' }] }),
      )
      const operations = await way.during(async () => {
        const error = await store.commit(held, { processedEventId: 'e' }).catch((reason: unknown) => reason)
        expect(error).toBeInstanceOf(StoreConflict)
        expect(error).toMatchObject({ expected: 1, found: 7 })
      })
      expect(operations).toEqual(['TransactWriteItems'])
    })

    test('that the service takes for invalid is refused at once, and is no conflict (B69, weakness 31)', async () => {
      const held = execution('a')
      for (const fault of [
        cancelled('ValidationError'),
        cancelled('ItemCollectionSizeLimitExceeded'),
        refusal('ValidationException'),
      ]) {
        way.fail('TransactWriteItems', fault)
        const operations = await way.during(() => expect(store.commit(held)).rejects.toThrow(StoreUnavailable))
        expect(operations).toEqual(['TransactWriteItems'])
      }
      expect(held.version).toBe(0)
    })

    test('whose numbers are throttled is tried again, and takes the numbers once (B68)', async () => {
      way.fail('UpdateItem', refusal('ProvisionedThroughputExceededException'), 2)
      expect(await store.commit(execution('a'), { emits: emitsOf('x', 2) })).toEqual([1, 2])
    })
  })

  describe('reading', () => {
    beforeEach(async () => {
      await store.commit(execution('a'), everything('a'))
    })

    test('is consistent, everywhere (B72, weakness 3)', async () => {
      const start = way.requests.length
      await store.load('a')
      await store.isProcessed('a', 'a-event')
      await store.pendingOutbox()
      await store.pendingOutbox({ limit: 1 })
      await store.pendingSpawns()
      await store.dueTimers(9)
      await store.readTrace('a')
      await store.listExecutions()
      await store.idsWithPrefix('a')
      await store.loadDefinition('d', '1')
      const reads = way.requests.slice(start)
      expect(reads.length).toBeGreaterThan(9)
      for (const { operation, body } of reads)
        expect(JSON.parse(body), operation).toMatchObject({ ConsistentRead: true })
    })

    test('the state and the mark is one transaction, which is tried again when others are in the way', async () => {
      way.fail('TransactGetItems', cancelled('TransactionConflict', 'None'), 2)
      const operations = await way.during(async () => {
        expect(await store.loadForEvent('a', 'a-event')).toMatchObject({ execution: { version: 1 }, processed: true })
      })
      expect(operations).toEqual(Array(3).fill('TransactGetItems'))
    })

    test('what is throttled is tried again', async () => {
      for (const operation of ['GetItem', 'Query', 'Scan']) way.fail(operation, refusal('ThrottlingException'), 2)
      expect(await store.load('a')).toMatchObject({ version: 1 })
      expect(await store.readTrace('a')).toHaveLength(1)
      expect(await store.pendingOutbox()).toHaveLength(2)
    })

    test('what is throttled all the time is unavailable (B69)', async () => {
      way.fail('GetItem', refusal('ThrottlingException'), ALWAYS)
      await expect(store.load('a')).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: true })
    })
  })

  describe('an error', () => {
    const answers: [what: string, fault: Fault][] = [
      [
        'missing rights',
        refusal('AccessDeniedException', { Message: 'User: arn:aws:iam::1:user/x is not authorized' }),
      ],
      ['unknown credentials', refusal('UnrecognizedClientException')],
      ['expired credentials', refusal('ExpiredTokenException')],
      ['a wrong signature', refusal('InvalidSignatureException')],
      ['something that is no JSON', { status: 200, body: '<html>' }],
      ['something that nobody knows', refusal('SomethingNewException')],
    ]
    const calls = (subject: DynamoStore): [operation: string, call: () => Promise<unknown>][] => [
      ['GetItem', () => subject.load('a')],
      ['TransactGetItems', () => subject.loadForEvent('a', 'e')],
      ['TransactWriteItems', () => subject.commit(execution('a'))],
      ['UpdateItem', () => subject.commit(execution('a'), { emits: emitsOf('x', 1) })],
      ['Scan', () => subject.pendingOutbox()],
      ['BatchWriteItem', () => subject.ackOutbox(1)],
      ['Scan', () => subject.dueTimers(1)],
      ['DeleteItem', () => subject.deleteTimer('a', 'P', 1)],
      ['Query', () => subject.readTrace('a')],
      ['Query', () => subject.appendTrace('a', {})],
      ['Scan', () => subject.listExecutions()],
      ['Scan', () => subject.idsWithPrefix('')],
      ['PutItem', () => subject.publishDefinition({ id: 'd', version: '1', definition: 1 })],
      ['GetItem', () => subject.loadDefinition('d', '1')],
      ['GetItem', () => subject.purge('a', 1)],
    ]

    test.each(answers.slice(0, 4))(
      "of the service, %s, is a StoreError of every method, with the driver's as its cause",
      async (_, fault) => {
        for (const [operation, call] of calls(store)) {
          way.fail(operation, fault)
          const error = await call().catch((reason: unknown) => reason)
          expect(error, operation).toBeInstanceOf(StoreError)
          expect((error as Error).cause, operation).toBeInstanceOf(Error)
          expect((error as Error).message).not.toContain('arn:')
        }
      },
    )

    test.each(answers.slice(4))('of any other kind, %s, is a StoreError as well', async (_, fault) => {
      way.fail('GetItem', fault, ALWAYS)
      await expect(store.load('a')).rejects.toBeInstanceOf(StoreError)
    })

    test('names a table that was deleted under the store', async () => {
      way.fail('GetItem', refusal('ResourceNotFoundException'))
      await expect(store.load('a')).rejects.toThrow(SchemaMissing)
    })

    test('shows no credentials and no payload, and neither does the store (B102)', async () => {
      const secret = 'a-secret-of-the-context'
      const held = execution('a', { context: { secret } })
      const own = await DynamoStore.connect(configFor(way.url, { maxAttempts: 1 }), { prefix })
      await own.save(held)
      const shown = [inspect(own, { depth: 9, showHidden: true }), JSON.stringify(own), String(own)]
      const faults = [cancelled('ValidationError'), refusal('AccessDeniedException'), 'reply cut'] as const
      for (const fault of faults) {
        way.fail('TransactWriteItems', fault, fault === 'reply cut' ? 1 : ALWAYS)
        const error = await own.save({ ...held }).catch((reason: unknown) => reason)
        shown.push(inspect(error, { depth: 9 }), String(error), (error as Error)?.stack ?? '')
        way.heal()
      }
      const conflict = await own.save(execution('a')).catch((reason: unknown) => reason)
      shown.push(inspect(conflict, { depth: 9 }))
      await own.close()
      for (const text of shown) {
        for (const hidden of [secret, credentials.secretAccessKey, credentials.accessKeyId])
          expect(text).not.toContain(hidden)
      }
    })
  })
})
