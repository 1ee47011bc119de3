import { setTimeout as sleep } from 'node:timers/promises'
import type { Worker } from 'node:worker_threads'
import { OutcomeUnknown, SchemaMissing, StoreClosed, StoreUnavailable } from '@harel/store-base'
import { AsyncSqliteStore } from '@harel/store-sqlite'
import { describe, expect, test } from 'vitest'
import { connect, everything, execution, freshFile, openWithWorker, rows, run } from './helpers.js'

describe('the thread of an AsyncSqliteStore', () => {
  test('does not keep the process alive when the store was left open (B92)', async () => {
    expect(await run('left-idle.ts', freshFile())).toBe('true\n')
    expect(await run('left-open.ts', freshFile())).toBe('version 1\n')
  })

  test('keeps the process alive until what was asked of it is done', async () => {
    const path = freshFile()
    expect(await run('not-awaited.ts', path)).toBe('')
    expect(rows(connect(path))).toMatchObject({ executions: 1, outbox: 1 })
  })

  test('leaves the caller to do other things while a commit waits for the disk or a lock (weakness 49)', async () => {
    const path = freshFile()
    await using store = await AsyncSqliteStore.open(path)
    const other = connect(path)
    other.exec('BEGIN IMMEDIATE')
    let done = false
    const commit = store.save(execution('a')).then(() => {
      done = true
    })
    await sleep(50)
    expect(done).toBe(false)
    other.exec('COMMIT')
    await commit
  })

  test('hands errors over with all that they say', async () => {
    const path = freshFile()
    await using store = await AsyncSqliteStore.open(path)
    connect(path).exec('DROP TABLE harel_outbox')
    const missing = await store.pendingOutbox().catch((error) => error)
    expect(missing).toBeInstanceOf(SchemaMissing)
    expect(missing).toMatchObject({ name: 'SchemaMissing', retryable: false, missing: ['harel_outbox'] })
    connect(path).exec('CREATE VIEW harel_outbox AS SELECT 1 AS seq')
    const refused = await store.ackOutbox(1).catch((error) => error)
    expect(refused).toBeInstanceOf(StoreUnavailable)
    expect(refused).toMatchObject({ retryable: false, cause: { name: 'SqliteError', code: 'SQLITE_ERROR' } })
  })

  test('reports warnings to the caller', async () => {
    const path = freshFile()
    await (await AsyncSqliteStore.open(path)).close()
    connect(path).exec('DROP INDEX harel_timers_by_due')
    const warnings: string[] = []
    const onWarning = (text: string) => warnings.push(text)
    await using _store = await AsyncSqliteStore.open(path, { createSchema: false, onWarning })
    expect(warnings).toEqual([expect.stringContaining('harel_timers_by_due')])
  })
})

describe.each([
  { end: 'is terminated', kill: (worker: Worker) => worker.terminate() },
  // Not a call: the thread fails on it.
  { end: 'fails', kill: (worker: Worker) => worker.postMessage(null) },
])('a thread that $end', ({ kill }) => {
  const setUp = async () => {
    const path = freshFile()
    const { store, worker } = await openWithWorker(path)
    return { path, store, worker, db: connect(path), exited: new Promise((resolve) => worker.once('exit', resolve)) }
  }

  test('leaves the outcome of its writes open, and that of its reads not', async () => {
    const { store, worker, db, exited } = await setUp()
    // So that no write is done before the thread has ended.
    db.exec('BEGIN IMMEDIATE')
    kill(worker)
    const b = execution('b')
    const writes = [
      store.commit(b, everything('b')),
      store.appendTrace('a', {}),
      store.ackOutbox(1),
      store.purge('a', 1),
    ]
    const reads = [store.load('a'), store.pendingOutbox(), store.listExecutions(), store.isProcessed('a', 'e')]
    const outcomes = Promise.allSettled([...writes, ...reads])
    await exited
    db.exec('ROLLBACK')
    const errors = (await outcomes).map((outcome) => (outcome.status === 'rejected' ? outcome.reason : undefined))
    for (const error of errors.slice(0, 4)) expect(error).toBeInstanceOf(OutcomeUnknown)
    for (const error of errors.slice(4)) expect(error).toBeInstanceOf(StoreUnavailable)
    expect(b.version).toBe(0)
  })

  test('is not replaced: later calls are refused and write nothing', async () => {
    const { store, worker, db, exited } = await setUp()
    await kill(worker)
    await exited
    await expect(store.save(execution('a'))).rejects.toThrow(StoreUnavailable)
    await expect(store.load('a')).rejects.toThrow(StoreUnavailable)
    await expect(store.transaction(async () => {})).rejects.toThrow(StoreUnavailable)
    await expect(store.migrate()).rejects.toThrow(StoreUnavailable)
    expect(rows(db).executions).toBe(0)
    await store.close()
    await expect(store.load('a')).rejects.toThrow(StoreClosed)
  })

  test('undoes an open transaction, whose versions are restored', async () => {
    const { store, worker, db, exited } = await setUp()
    const a = execution('a')
    const transaction = store.transaction(async (inner) => {
      await inner.save(a)
      await kill(worker)
      await exited
      await inner.save(a)
    })
    await expect(transaction).rejects.toThrow(StoreUnavailable)
    expect([a.version, rows(db).executions]).toEqual([0, 0])
  })

  test('lets go of the file: another store goes on', async () => {
    const { path, store, worker, exited } = await setUp()
    await store.save(execution('a'))
    await kill(worker)
    await exited
    await using next = await AsyncSqliteStore.open(path, { lockTimeout: 500 })
    expect((await next.load('a'))?.version).toBe(1)
    await next.save(execution('b'))
  })
})
