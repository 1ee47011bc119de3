import { describe, expect, test, vi } from 'vitest'
import { CheckedStore } from '../src/checked-store.js'
import { executions, outbox, spawns, timers } from '../src/iterate.js'
import { newEvent, newExecution } from '../src/records.js'
import { MapBackend, remote } from './map-backend.js'

const COUNT = 25

async function filled() {
  const warnings: string[] = []
  const backend = new MapBackend()
  const store = new CheckedStore(remote(backend), { onWarning: (message) => warnings.push(message) })
  for (let n = 0; n < COUNT; n++) {
    const id = `x${String(n).padStart(2, '0')}`
    await store.commit(newExecution({ definitionId: 'd', id, status: n % 2 === 0 ? 'DONE' : 'RUNNING' }), {
      emits: [{ targetId: id, event: newEvent({ id, kind: 'k' }) }],
      spawns: [{ childId: `${id}:c`, rootPath: '', context: {} }],
      // All at one time, so that the page must go on by id and path.
      timers: ['a', 'b'].map((path) => ({ action: 'schedule', path, fireAt: 5 })),
    })
  }
  return { backend, store, warnings }
}

const all = async <T>(items: AsyncIterable<T>): Promise<T[]> => {
  const found: T[] = []
  for await (const item of items) found.push(item)
  return found
}

const sizes = [1, 2, 7, COUNT, COUNT + 1]

describe.each(sizes)('a sweep in pages of %s', (size) => {
  test('finds every event, spawn, timer and execution once, in order', async () => {
    const { backend, store } = await filled()
    const seqs = (rows: { seq: number }[]) => rows.map(({ seq }) => seq)
    expect(seqs(await all(outbox(store, size)))).toEqual(seqs(backend.outbox))
    expect(seqs(await all(spawns(store, size)))).toEqual(seqs(backend.spawns))
    const due = await all(timers(store, 5, size))
    expect(due.map(({ executionId, path }) => executionId + path)).toEqual(
      [...backend.executions.keys()].flatMap((id) => [`${id}a`, `${id}b`]),
    )
    const ids = (await all(executions(store, { limit: size }))).map(({ id }) => id)
    expect(ids).toEqual([...backend.executions.keys()])
  })

  test('never asks for more than a page, and holds no more (weakness 27)', async () => {
    const { backend, store } = await filled()
    const asked = [
      vi.spyOn(backend, 'pendingOutbox'),
      vi.spyOn(backend, 'pendingSpawns'),
      vi.spyOn(backend, 'listExecutions'),
    ]
    const sweeps = [outbox(store, size), spawns(store, size), executions(store, { limit: size })]
    for (const [index, sweep] of sweeps.entries()) {
      await sweep.next()
      expect(asked[index]).toHaveBeenCalledTimes(1)
      await sweep.return()
      expect(asked[index]).toHaveBeenCalledExactlyOnceWith(expect.objectContaining({ limit: size }))
    }
  })

  test('goes on over unreadable rows (weakness 23)', async () => {
    const { backend, store, warnings } = await filled()
    for (const [n, row] of backend.outbox.entries()) if (n % 10 !== 3) row.event = 'x'
    for (const [n, row] of backend.spawns.entries()) if (n % 10 !== 7) row.context = 'x'
    expect(await all(outbox(store, size))).toHaveLength(3)
    expect(await all(spawns(store, size))).toHaveLength(2)
    expect(new Set(warnings).size).toBe(2 * COUNT - 3 - 2)
  })

  test('is not disturbed by acknowledging what it has found', async () => {
    const { backend, store } = await filled()
    let found = 0
    for await (const { seq } of outbox(store, size)) {
      await store.ackOutbox(seq)
      found += 1
    }
    expect(found).toBe(COUNT)
    expect(backend.outbox).toEqual([])
  })

  test('lists under filters', async () => {
    const { store } = await filled()
    const found = await all(executions(store, { status: 'DONE', limit: size }))
    expect(found).toHaveLength(13)
    expect(new Set(found.map(({ status }) => status))).toEqual(new Set(['DONE']))
  })
})

test('a sweep over nothing is empty', async () => {
  const store = new CheckedStore(remote(new MapBackend()))
  expect(await all(outbox(store))).toEqual([])
  expect(await all(spawns(store))).toEqual([])
  expect(await all(timers(store, 5))).toEqual([])
  expect(await all(executions(store))).toEqual([])
})

test('a sweep of timers leaves those that are not due', async () => {
  const { store } = await filled()
  expect(await all(timers(store, 4.999))).toEqual([])
})

test('a listing may start at a cursor', async () => {
  const { store } = await filled()
  const { items, nextCursor } = await store.listExecutions({ limit: 20 })
  const rest = await all(executions(store, { limit: 20, cursor: nextCursor }))
  expect([...items, ...rest]).toHaveLength(COUNT)
})

test('a sweep ends with the error of the store', async () => {
  const { store } = await filled()
  await store.close()
  await expect(all(outbox(store))).rejects.toMatchObject({ code: 'STORE_CLOSED' })
  await expect(all(executions(store, { limit: 0 }))).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
})
