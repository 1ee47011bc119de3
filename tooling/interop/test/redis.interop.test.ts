import { newEvent, newExecution, outbox, RedisStore, spawns } from '@harel/store-redis'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { redis } from '../src/backends/redis.js'
import { PythonStore } from '../src/python.js'
import type { Part } from '../src/scenario.js'

let server: Awaited<ReturnType<typeof redis.start>>
beforeAll(async () => {
  server = await redis.start()
})
afterAll(() => server[Symbol.asyncDispose]())

/** A store and Python on one database. */
async function setUp() {
  const database = await server.make()
  const store = await RedisStore.connect(database.url)
  const python = new PythonStore(database.url, 'harel')
  onTestFinished(async () => {
    await store.close()
    await python[Symbol.asyncDispose]()
    await database[Symbol.asyncDispose]()
  })
  /** Python creates executions, each with an event and a child that are named after it. */
  const create = (...ids: string[]) => {
    const steps = ids.map((id): Part['steps'][number] => ({
      op: 'commit',
      execution: id,
      set: { id, definition_id: 'd' },
      emits: [['t', { id, kind: 'k' }]],
      spawns: [[id, 'Root', { n: 1 }]],
    }))
    return python.play([{ trace_max: 200, steps }])
  }
  return { store, python, create }
}

test('what Python creates and purges in a database of ours is listed right after reindex', async () => {
  const { store, python, create } = await setUp()
  for (const id of ['a', 'b']) await store.save(newExecution({ id, definitionId: 'd' }))
  expect(await store.idsWithPrefix('')).toEqual(['a', 'b'])
  await create('p', 'q')
  await python.play([{ trace_max: 200, steps: [{ op: 'purge', id: 'a', version: 1, purged: true }] }])
  expect(await store.reindex()).toEqual({ stored: 3, added: 2, removed: 1, moved: 0 })
  const listed = async () => (await store.listExecutions({ definitionId: 'd' })).items.map(({ id }) => id)
  expect(await listed()).toEqual(['b', 'p', 'q'])
  expect(await store.reindex()).toEqual({ stored: 3, added: 0, removed: 0, moved: 0 })
})

test('long queues are read in pages with the entries of Python in their places, while it adds more', async () => {
  const { store, create } = await setUp()
  const own = (from: number) => Array.from({ length: 1500 }, (_, n) => `own-${from + n}`)
  const commit = (ids: string[]) =>
    store.commit(newExecution({ definitionId: 'd' }), {
      emits: ids.map((id) => ({ targetId: 't', event: newEvent({ id, kind: 'k' }) })),
      spawns: ids.map((childId) => ({ childId, rootPath: 'Root', context: {} })),
    })
  const sweep = async () => {
    const events: string[] = []
    for await (const { event } of outbox(store)) events.push(event.id)
    const children: string[] = []
    for await (const { childId } of spawns(store)) children.push(childId)
    return { events, children }
  }
  const all = [...own(0), 'p0', 'p1', ...own(2000), 'p2']
  await commit(own(0))
  await create('p0', 'p1')
  await commit(own(2000))
  expect(await sweep()).toEqual({ events: all.slice(0, -1), children: all.slice(0, -1) })
  await create('p2')
  expect(await sweep()).toEqual({ events: all, children: all })
  const first = await store.pendingOutbox({ limit: 1000 })
  await store.ackOutbox(first.map(({ seq }) => seq))
  await Promise.all([create('p3', 'p4'), sweep()])
  expect((await sweep()).events).toEqual([...all.slice(1000), 'p3', 'p4'])
})
