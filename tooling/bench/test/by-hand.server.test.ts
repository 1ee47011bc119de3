import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ExecutionStore } from '@harel/store-base'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { site as dynamodb } from '../src/backends/dynamodb.ts'
import { site as libsql } from '../src/backends/libsql.ts'
import { site as mongo } from '../src/backends/mongo.ts'
import { site as postgres } from '../src/backends/postgres.ts'
import { site as redis } from '../src/backends/redis.ts'
import { site as rqlite } from '../src/backends/rqlite.ts'
import { site as sqlite } from '../src/backends/sqlite.ts'
import { actionsOf, type Contender, PAGE } from '../src/contender.ts'
import { idOf } from '../src/fill.ts'
import type { Opened } from '../src/site.ts'
import { type Stock, stockUp } from '../src/stock.ts'
import { BYTES, subject } from '../src/subjects.ts'

type Write = 'state' | 'commit' | 'full'

/** All that a store knows of an execution; ids, which are never the same, are numbered as they come. */
async function storedOf(store: ExecutionStore, id: string) {
  const outbox = (await store.pendingOutbox()).filter(({ targetId }) => targetId === id)
  const timers = (await store.dueTimers(1e10)).filter(({ executionId }) => executionId === id)
  const spawns = (await store.pendingSpawns()).filter(({ parentId }) => parentId === id)
  let listed = await store.listExecutions({ limit: 1000 })
  while (listed.nextCursor !== null && !listed.items.some((item) => item.id === id)) {
    listed = await store.listExecutions({ limit: 1000, cursor: listed.nextCursor })
  }
  const stored = {
    execution: await store.load(id),
    summary: listed.items.find((item) => item.id === id),
    outbox: outbox.map(({ event }) => event),
    isProcessed: await Promise.all(outbox.map(({ event }) => store.isProcessed(id, event.id))),
    timers,
    spawns: spawns.map(({ seq, ...spawn }) => spawn),
    trace: await store.readTrace(id),
  }
  const ids: string[] = []
  const numbered = JSON.stringify(stored).replace(/[0-9a-f]{32}/g, (each) => {
    if (!ids.includes(each)) ids.push(each)
    return `#${ids.indexOf(each)}`
  })
  return JSON.parse(numbered) as object
}

describe.each([sqlite, libsql, rqlite, postgres, redis, mongo, dynamodb])(
  'by hand on $backend',
  { timeout: 120_000 },
  ({ database, open }) => {
    let folder: string
    let place: Awaited<ReturnType<typeof database>>
    let opened: Opened
    let stock: Stock
    let drivers: Contender[]
    let lastId = 0
    beforeAll(async () => {
      folder = mkdtempSync(join(tmpdir(), 'by-hand-'))
      place = await database(folder)
      opened = await open(place.url, false)
      stock = await stockUp(opened.store, BYTES)
      drivers = opened.contenders.filter(({ role }) => role === 'driver')
    }, 120_000)
    afterAll(async () => {
      await opened?.[Symbol.asyncDispose]()
      await place?.[Symbol.asyncDispose]()
      rmSync(folder, { recursive: true })
    }, 120_000)

    /** What is stored of each of three new executions after two commits of each, all at once. */
    async function after(write: (of: ReturnType<typeof subject>) => unknown) {
      const subjects = [1, 2, 3].map(() => subject({ id: idOf(++lastId) }, BYTES))
      for (const { execution } of subjects) await opened.store.commit(execution)
      for (let times = 0; times < 2; times++) await Promise.all(subjects.map(write))
      return await Promise.all(subjects.map(({ execution }) => storedOf(opened.store, execution.id)))
    }

    test.each<Write>(['state', 'commit', 'full'])('%s writes what the store writes', async (name) => {
      const expected = await after(actionsOf(opened.store)[name])
      for (const { name: driver, does } of drivers) {
        if (does[name] !== undefined) expect(await after(does[name]), driver).toEqual(expected)
      }
      expect(drivers.some(({ does }) => does[name] !== undefined)).toBe(true)
    })

    test('reads as many entries as the store', async () => {
      for (const { does } of drivers) {
        if (does.page === undefined) continue
        expect(await does.page()).toHaveLength(PAGE)
        // Some come as pairs, others as one list.
        expect(JSON.stringify(await does.timers?.(stock.now)).match(/due/g)).toHaveLength(PAGE)
        expect(await does.list?.(stock.first)).toHaveLength(PAGE)
        expect(await does.list?.(stock.deep)).toHaveLength(PAGE)
        expect(await does.load?.('execution-0')).toMatchObject({ id: 'execution-0' })
        expect(await does.loadForEvent?.('execution-0')).toMatchObject({
          execution: { id: 'execution-0' },
          processed: false,
        })
        const before = await opened.store.pendingOutbox()
        expect(await does.relay?.()).toHaveLength(PAGE)
        expect(await opened.store.pendingOutbox()).toEqual(before.slice(PAGE))
        await stock.refill(1)
      }
    })
  },
)
