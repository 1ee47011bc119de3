import type { DynamoDBClient } from '@aws-sdk/client-dynamodb'
import { type DueTimer, type DynamoStore, executions, type ListQuery, timers } from '@harel/store-dynamodb'
import { withServer } from '@harel-tooling/test-servers/vitest'
import { beforeEach, describe, expect, test } from 'vitest'
import { execution } from './commits.js'
import { clientFor, freshPrefix, storeOn } from './database.js'
import { Intermediary } from './intermediary.js'
import { putItem, pythonItem } from './python.js'

const KB = 1024

withServer('dynamodb', ({ url }) => {
  describe.each([{ gsi: false }, { gsi: true }])('with gsi: $gsi', ({ gsi }) => {
    let way: Intermediary
    let client: DynamoDBClient
    let prefix: string
    let store: DynamoStore

    beforeEach(async () => {
      way = await Intermediary.to(url)
      client = clientFor(way.url)
      prefix = freshPrefix()
      store = storeOn(client, { prefix, gsi })
      await store.load('none')
    })

    const arm = (id: string, ...armed: [path: string, fireAt: number][]) =>
      store.commit(execution(id), { timers: armed.map(([path, fireAt]) => ({ action: 'schedule', path, fireAt })) })
    const due = (executionId: string, path: string, fireAt: number): DueTimer => ({ executionId, path, fireAt })
    const ids = async (query: ListQuery = {}) => {
      const found: string[] = []
      for await (const { id } of executions(store, query)) found.push(id)
      return gsi ? found : found.sort()
    }

    test('executions that are few among many, or large, are found by any filter, and each once (B89)', async () => {
      const text = 'x'.repeat(200 * KB)
      for (let n = 0; n < 24; n++) {
        const rare = n % 8 === 7
        const fields = {
          status: rare ? 'FAILED' : 'DONE',
          definitionId: rare ? 'rare' : 'd',
          parentId: rare ? null : 'p',
        } as const
        await store.save(execution(`e${String(n).padStart(2, '0')}`, { ...fields, context: { text } }))
      }
      const rare = ['e07', 'e15', 'e23']
      expect(await ids({ status: 'FAILED', limit: 3 })).toEqual(rare)
      expect(await ids({ definitionId: 'rare', limit: 1 })).toEqual(rare)
      expect(await ids({ rootsOnly: true, limit: 2 })).toEqual(rare)
      expect(await ids({ status: ['DONE', 'FAILED'], limit: 5 })).toHaveLength(24)
      expect(await ids({ status: [] })).toEqual([])
      expect(await ids({ limit: 7 })).toHaveLength(24)
      expect(await store.idsWithPrefix('e1')).toHaveLength(10)
    })

    test('due timers come by time, then id, then path, page by page', async () => {
      const expected: DueTimer[] = []
      for (const id of ['a', 'B', 'aé', 'a\u{10ffff}', 'a\uffff']) {
        await arm(id, ['P', 5], ['p', 5], ['é', 4], ['late', 99])
        expected.push(due(id, 'P', 5), due(id, 'p', 5), due(id, 'é', 4))
      }
      const key = ({ executionId, path }: DueTimer) => Buffer.from(`${executionId}\0${path}`)
      expected.sort((a, b) => a.fireAt - b.fireAt || Buffer.compare(key(a), key(b)))
      expect(await store.dueTimers(5)).toEqual(expected)
      for (const limit of [1, 2, 4, 100]) {
        const found: DueTimer[] = []
        for await (const timer of timers(store, 5, limit)) found.push(timer)
        expect(found).toEqual(expected)
      }
      expect(await store.dueTimers(3, { after: due('a', 'P', 4) })).toEqual([])
      expect(await store.dueTimers(3.999)).toEqual([])
    })

    test('a timer that was armed anew is due at its new time alone', async () => {
      const held = execution('a')
      await store.commit(held, { timers: [{ action: 'schedule', path: 'P', fireAt: 1 }] })
      await store.commit(held, { timers: [{ action: 'schedule', path: 'P', fireAt: 7 }] })
      expect(await store.dueTimers(5)).toEqual([])
      await store.deleteTimer('a', 'P', 1)
      expect(await store.dueTimers(9)).toEqual([due('a', 'P', 7)])
    })

    if (gsi) {
      test('the first page of due timers, and of a status, costs the same however many there are', async () => {
        for (let n = 0; n < 40; n++) await arm(`e${String(n).padStart(2, '0')}`, ['P', n])
        const operations = await way.during(async () => {
          expect(await store.dueTimers(1e9, { limit: 3 })).toHaveLength(3)
          expect((await store.listExecutions({ status: 'RUNNING', limit: 3 })).items).toHaveLength(3)
        })
        expect(operations).toEqual(['Query', 'BatchGetItem', 'Query'])
      })

      test('an index that lags behind reports no timer that is gone or was armed anew (B72)', async () => {
        await arm('a', ['gone', 1], ['anew', 1], ['there', 1])
        const shown = ['gone', 'anew', 'there'].map((path) => ({
          execution_id: { S: 'a' },
          path: { S: path },
          fire_at: { N: '1' },
          all: { S: 'timers' },
        }))
        await store.deleteTimer('a', 'gone', 1)
        const held = await store.load('a')
        if (held === undefined) return expect.unreachable()
        await store.commit(held, { timers: [{ action: 'schedule', path: 'anew', fireAt: 50 }] })
        way.fail('Query', { status: 200, body: { Items: [...shown, ...shown], Count: 6 } })
        expect(await store.dueTimers(9)).toEqual([due('a', 'there', 1)])
      })
    } else {
      test('a page of everything reads no more than it shows (weakness 38)', async () => {
        for (let n = 0; n < 20; n++) await store.save(execution(`e${n}`))
        const operations = await way.during(() => store.listExecutions({ limit: 5 }))
        expect(operations).toEqual(['Scan'])
        expect(JSON.parse(way.requests.at(-1)?.body ?? '')).toMatchObject({ Limit: 6 })
      })

      test('executions that Python wrote are listed as they are now, some at a time', async () => {
        await store.save(execution('a', { activePath: 'A' }))
        await putItem(
          client,
          `${prefix}_executions`,
          pythonItem('a', 2, { status: 'DONE', active_path: 'B', finished_at: 5.5 }),
        )
        for (let n = 0; n < 30; n++)
          await putItem(client, `${prefix}_executions`, pythonItem(`p${n}`, 1, { parent_id: 'a' }))
        const operations = await way.during(async () => {
          const { items } = await store.listExecutions()
          expect(items).toHaveLength(31)
          expect(items.find(({ id }) => id === 'a')).toEqual({
            id: 'a',
            definitionId: 'd',
            status: 'DONE',
            outcome: null,
            activePath: 'B',
            version: 2,
            parentId: null,
            finishedAt: 5.5,
          })
        })
        expect(operations).toEqual(['Scan', 'BatchGetItem'])
        expect(await ids({ rootsOnly: true })).toEqual(['a'])
        expect(await ids({ status: 'RUNNING' })).toHaveLength(30)
      })

      test('a listing goes on behind an execution that is gone', async () => {
        for (let n = 0; n < 10; n++) await store.save(execution(`e${n}`))
        const first = await store.listExecutions({ limit: 4 })
        for (const { id, version } of first.items) expect(await store.purge(id, version)).toBe(true)
        const rest = await store.listExecutions({ limit: 10, cursor: first.nextCursor })
        expect(rest.items).toHaveLength(6)
      })
    }

    test('a trace of more than one page is read whole (weakness 30)', async () => {
      const text = 'x'.repeat(300 * KB)
      const held = execution('a')
      for (let n = 0; n < 6; n++) await store.commit(held, { trace: { n, text } })
      expect((await store.readTrace('a')).map(({ n }) => n)).toEqual([0, 1, 2, 3, 4, 5])
    })

    test('a trace that others left long is cut down to its limit, some steps with each new one (weakness 30)', async () => {
      const held = execution('a')
      for (let n = 0; n < 30; n++) await store.commit(held, { trace: { n } })
      const lower = storeOn(client, { prefix, gsi, traceMax: 3 })
      const kept = async () => (await storeOn(client, { prefix, gsi, traceMax: 0 }).readTrace('a')).length
      await lower.commit(held, { trace: { n: 30 } })
      expect(await kept()).toBeLessThan(30)
      expect((await lower.readTrace('a')).map(({ n }) => n)).toEqual([28, 29, 30])
      for (let n = 31; n < 36; n++) await lower.commit(held, { trace: { n } })
      expect(await kept()).toBe(3)
    })
  })
})
