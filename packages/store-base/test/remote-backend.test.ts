import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import type { StoreBackend } from '../src/backend.js'
import { CheckedStore } from '../src/checked-store.js'
import { CommitTooLarge, OutcomeUnknown, StoreUnavailable } from '../src/errors.js'
import { type PreparedCommit, prepareCommit } from '../src/prepare.js'
import type { CommitChanges, StoreCapabilities } from '../src/protocol.js'
import { newEvent, newExecution } from '../src/records.js'
import { guardedCommits } from '../src/sql/guarded-commit.js'
import { RemoteSqliteBackend } from '../src/sql/remote-backend.js'
import { storeSchema } from '../src/sql/schema.js'
import { dump, PYTHON_TABLES, rowsOf, SqliteExecutor } from './sqlite-executor.js'

const capabilities: StoreCapabilities = {
  durable: false,
  shared: true,
  identity: false,
  ordered: true,
  paging: 'key',
  maxCommitWrites: Number.POSITIVE_INFINITY,
  maxExecutionBytes: 100_000,
  dedupe: 'forever',
  atomicPurge: true,
  transactions: false,
}

function open({ groupCommit = true, traceMax = 0, inFlight = 1 } = {}) {
  const executor = new SqliteExecutor()
  for (const { kind, sql } of storeSchema('sqlite')) if (kind !== 'column') executor.db.exec(sql)
  const backend = new RemoteSqliteBackend(executor, capabilities, {
    prefix: 'harel',
    traceMax,
    summary: true,
    groupCommit,
    inFlight,
  })
  return { executor, backend }
}

const commitOf = (id: string, changes: CommitChanges = {}, version = 0, context = {}): PreparedCommit =>
  prepareCommit(newExecution({ id, definitionId: 'd', version, context }), changes)

const emit = (targetId: string, text = ''): NonNullable<CommitChanges['emits']>[number] => ({
  targetId,
  event: newEvent({ kind: 'k', data: { text } }),
})

const ids = (count: number): string[] => Array.from({ length: count }, (_, n) => `e${`${n}`.padStart(4, '0')}`)

describe('group commit', () => {
  test('commits that arrive while others are written share the next transaction', async () => {
    const { executor, backend } = open()
    const first = backend.commit(commitOf('first'))
    await sleep(0)
    const others = ids(20).map((id) => backend.commit(commitOf(id, { emits: [emit(id)] })))
    const verdicts = await Promise.all([first, ...others])
    expect(verdicts.every(({ applied }) => applied)).toBe(true)
    expect(executor.writes).toHaveLength(2)
    const targets = new Map(rowsOf(executor, 'outbox').map(({ seq, target_id }) => [seq, target_id]))
    for (const [index, id] of ids(20).entries()) {
      const verdict = verdicts[index + 1]
      expect(verdict?.applied && verdict.seqs.map((seq) => targets.get(seq))).toEqual([id])
    }
  })

  test.each([1, 2])('256 commits are under way in %i transactions at once, and no more', async (inFlight) => {
    const { executor, backend } = open({ inFlight })
    const write = executor.write.bind(executor)
    let [underWay, most] = [0, 0]
    executor.write = async (statements) => {
      most = Math.max(most, ++underWay)
      await sleep(1)
      underWay -= 1
      return write(statements)
    }
    await Promise.all(ids(512).map((id) => backend.commit(commitOf(id))))
    expect(most).toBe(inFlight)
    expect(executor.writes).toHaveLength(2 * inFlight)
    expect(rowsOf(executor, 'executions')).toHaveLength(512)
  })

  test('without it each has a transaction of its own', async () => {
    const { executor, backend } = open({ groupCommit: false })
    await Promise.all(ids(5).map((id) => backend.commit(commitOf(id))))
    expect(executor.writes).toHaveLength(5)
  })

  test('each gets its own verdict, conflicts included', async () => {
    const { executor, backend } = open()
    await backend.commit(commitOf('a'))
    const verdicts = await Promise.all([
      backend.commit(commitOf('a', { emits: [emit('refused')] })),
      backend.commit(commitOf('b', { emits: [emit('b')] })),
      backend.commit(commitOf('c', { emits: [emit('refused')] }, 4)),
      backend.commit(commitOf('d', { emits: [emit('d')] })),
    ])
    expect(verdicts).toEqual([
      { applied: false, found: 1, foreign: true },
      { applied: true, seqs: [1] },
      { applied: false, found: null },
      { applied: true, seqs: [2] },
    ])
    expect(rowsOf(executor, 'outbox').map(({ target_id }) => target_id)).toEqual(['b', 'd'])
  })

  test('of several commits of one execution each waits for the one before', async () => {
    const { executor, backend } = open()
    const outcomes = await Promise.all([0, 1, 0, 2].map((version) => backend.commit(commitOf('a', {}, version))))
    expect(outcomes.map(({ applied }) => applied)).toEqual([true, true, false, true])
    expect(executor.writes).toHaveLength(4)
  })

  test.each(['ABORT', 'ROLLBACK'])('one that the database refuses fails alone (%s)', async (kind) => {
    const { executor, backend } = open()
    executor.db.exec(`CREATE TRIGGER poison BEFORE INSERT ON harel_outbox WHEN NEW.target_id = 'poison'
      BEGIN SELECT RAISE(${kind}, 'poisoned'); END`)
    const outcomes = await Promise.allSettled(
      ids(9).map((id, n) => backend.commit(commitOf(id, { emits: [emit(n === 4 ? 'poison' : id)] }))),
    )
    expect(outcomes.map(({ status }) => status)).toEqual(ids(9).map((_, n) => (n === 4 ? 'rejected' : 'fulfilled')))
    expect(outcomes[4]).toMatchObject({ reason: { code: 'STORE_UNAVAILABLE', cause: { message: 'poisoned' } } })
    expect(rowsOf(executor, 'executions').map(({ id }) => id)).toEqual(ids(9).filter((_, n) => n !== 4))
    expect(rowsOf(executor, 'outbox')).toHaveLength(8)
  })

  test.each([
    ['unreachable', 1, new StoreUnavailable('no connection', new Error('ECONNREFUSED'))],
    ['silent', 2, new OutcomeUnknown('no reply')],
    ['broken', 1, new OutcomeUnknown('the disk failed', undefined, { untold: true })],
  ])('a database that is %s is asked %i times for all, not for each', async (_, times, failure) => {
    const { executor, backend } = open()
    let asked = 0
    executor.write = async () => {
      asked += 1
      throw failure
    }
    const store = new CheckedStore(backend)
    const outcomes = await Promise.allSettled(ids(50).map((id) => store.save(newExecution({ id, definitionId: 'd' }))))
    expect(outcomes).toEqual(Array(50).fill({ status: 'rejected', reason: failure }))
    expect(asked).toBe(times)
  })

  test('a transaction holds no more than a few megabytes, events and all', async () => {
    const { executor, backend } = open()
    const text = 'x'.repeat(90_000)
    const changes = { emits: Array.from({ length: 10 }, (_, n) => emit(`t${n}`, text)) }
    await Promise.all(ids(20).map((id) => backend.commit(commitOf(id, changes))))
    const sizes = executor.writes.map((statements) => JSON.stringify(statements).length)
    expect(Math.max(...sizes)).toBeLessThan(6_000_000)
    expect(sizes.length).toBeLessThan(10)
  })

  test('close waits for the commits that were begun', async () => {
    const { executor, backend } = open()
    const commits = ids(5).map((id) => backend.commit(commitOf(id)))
    let rows = 0
    executor.close = async () => {
      rows = rowsOf(executor, 'executions').length
    }
    await backend.close()
    expect(rows).toBe(5)
    await Promise.all(commits)
  })
})

describe('a commit whose reply is lost', () => {
  /** A store whose next write is lost: before it is done, or after. */
  function losing(written: boolean, then?: Error) {
    const { executor, backend } = open()
    const { write } = executor
    executor.write = async (statements) => {
      executor.write = then === undefined ? write : () => Promise.reject(then)
      if (written) await write.call(executor, statements)
      throw new OutcomeUnknown('no reply')
    }
    return { executor, store: new CheckedStore(backend) }
  }

  test.each([true, false])('is written once, and succeeds with its seqs (written before: %s)', async (written) => {
    const { executor, store } = losing(written)
    const held = ids(5).map((id) => newExecution({ id, definitionId: 'd' }))
    const seqs = await Promise.all(held.map((each) => store.commit(each, { emits: [emit(each.id)], trace: {} })))
    expect(held.map(({ version }) => version)).toEqual(Array(5).fill(1))
    expect(seqs).toEqual([[1], [2], [3], [4], [5]])
    expect(rowsOf(executor, 'outbox').map(({ target_id }) => target_id)).toEqual(ids(5))
    expect(rowsOf(executor, 'trace')).toHaveLength(5)
  })

  test('is a conflict when somebody else has written the version', async () => {
    const { executor, store } = losing(false)
    const lost = executor.write
    executor.write = async (statements) => {
      const { write } = SqliteExecutor.prototype
      const rival = { prefix: 'harel', traceMax: 0, summary: true }
      await write.call(executor, guardedCommits(rival)([commitOf('a')]).statements)
      return lost.call(executor, statements)
    }
    const held = newExecution({ id: 'a', definitionId: 'd' })
    await expect(store.commit(held, { emits: [emit('a')] })).rejects.toMatchObject({ code: 'STORE_CONFLICT', found: 1 })
    expect(rowsOf(executor, 'outbox')).toEqual([])
  })

  test.each([true, false])('twice is read back, and told only where it was written (%s)', async (written) => {
    const { store } = losing(written, new OutcomeUnknown('no reply'))
    const held = newExecution({ id: 'a', definitionId: 'd' })
    const committed = store.commit(held, { emits: [emit('a')] })
    if (written) expect(await committed).toEqual([1])
    else await expect(committed).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' })
    expect(held.version).toBe(written ? 1 : 0)
  })
})

describe('what is more than one answer holds is read in parts', () => {
  async function stocked() {
    const { executor, backend } = open()
    for (const [n, id] of ids(9).entries()) {
      const timers: CommitChanges['timers'] = [
        { action: 'schedule', path: 'P', fireAt: 1 },
        { action: 'schedule', path: 'Q', fireAt: n / 3 },
      ]
      const spawns = [{ childId: `c${id}`, rootPath: '', context: {} }]
      await backend.commit(commitOf(id, { emits: [emit(id)], timers, spawns }))
      await backend.appendTrace('e0000', `{"n":${n}}`)
    }
    return { executor, backend }
  }
  const limit = Number.POSITIVE_INFINITY
  const reads: Record<string, (backend: StoreBackend) => Promise<unknown>> = {
    'the outbox': (backend) => backend.pendingOutbox({ limit, after: -1 }),
    'a page of the outbox': (backend) => backend.pendingOutbox({ limit: 7, after: 1 }),
    'the spawns': (backend) => backend.pendingSpawns({ limit, after: -1 }),
    'the timers': (backend) => backend.dueTimers(2, { limit, after: undefined }),
    'a page of the timers': (backend) =>
      backend.dueTimers(2, { limit: 12, after: { executionId: 'e0001', path: 'Q', fireAt: 1 / 3 } }),
    'a trace': (backend) => backend.readTrace('e0000'),
    ids: (backend) => backend.idsWithPrefix(''),
    'ids with a prefix': (backend) => backend.idsWithPrefix('e000'),
    'a listing': (backend) =>
      backend.listExecutions({
        statuses: undefined,
        definitionId: undefined,
        rootsOnly: false,
        limit: 7,
        position: 'e0000',
        fingerprint: '',
      }),
  }
  test.each(Object.keys(reads))('%s', async (name) => {
    const { executor, backend } = await stocked()
    const read = reads[name] ?? expect.unreachable()
    const whole = await read(backend)
    const asked = executor.reads.length
    for (const maxRows of [1, 2, 5]) {
      executor.maxRows = maxRows
      expect(await read(backend)).toEqual(whole)
    }
    expect(executor.reads.length).toBeGreaterThan(asked + 5)
    executor.maxRows = 0
    await expect(read(backend)).rejects.toThrow(StoreUnavailable)
  })
})

describe('a text that is more than a row holds is refused before anything is sent', () => {
  const large = 'ü'.repeat(60_000)
  const calls: Record<string, (backend: StoreBackend) => Promise<unknown>> = {
    'an execution': (backend) => backend.commit(commitOf('a', {}, 0, { large })),
    'an event': (backend) => backend.commit(commitOf('a', { emits: [emit('t'), emit('t', large)] })),
    'the context of a spawn': (backend) =>
      backend.commit(commitOf('a', { spawns: [{ childId: 'c', rootPath: '', context: { large } }] })),
    'a step of a trace': (backend) => backend.commit(commitOf('a', { trace: { large } })),
    'an appended step': (backend) => backend.appendTrace('a', JSON.stringify({ large })),
    'a definition': (backend) =>
      backend.publishDefinition({ id: 'd', version: '1', definition: JSON.stringify(large), publishedAt: null }),
  }
  test.each(Object.keys(calls))('%s', async (name) => {
    const { executor, backend } = open()
    const error = await calls[name]?.(backend).catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(CommitTooLarge)
    expect((error as CommitTooLarge).size).toBeGreaterThan(120_000)
    expect(executor.writes).toEqual([])
  })

  test('as much as is allowed is stored', async () => {
    const { executor, backend } = open()
    const context = { large: large.slice(0, 49_000) }
    expect(await backend.commit(commitOf('a', {}, 0, context))).toMatchObject({ applied: true })
    expect(JSON.parse(String(rowsOf(executor, 'executions')[0]?.data)).context).toEqual(context)
  })
})

test('listings, ids and traces may be read from a replica, and nothing that a commit is decided by', async () => {
  const { executor, backend } = open()
  const from = async (read: () => Promise<unknown>) => {
    executor.reads.length = 0
    await read()
    return [...new Set(executor.reads.map((each) => each.from))]
  }
  const page = { limit: 1, after: -1 }
  const query = { statuses: [], definitionId: undefined, rootsOnly: false, limit: 1, position: null, fingerprint: '' }
  expect(await from(() => backend.listExecutions(query))).toEqual(['replica'])
  expect(await from(() => backend.idsWithPrefix(''))).toEqual(['replica'])
  expect(await from(() => backend.readTrace('a'))).toEqual(['replica'])
  expect(await from(() => backend.load('a'))).toEqual(['primary'])
  expect(await from(() => backend.loadForEvent('a', 'e'))).toEqual(['primary'])
  expect(await from(() => backend.isProcessed('a', 'e'))).toEqual(['primary'])
  expect(await from(() => backend.pendingOutbox(page))).toEqual(['primary'])
  expect(await from(() => backend.pendingSpawns(page))).toEqual(['primary'])
  expect(await from(() => backend.dueTimers(1, { limit: 1, after: undefined }))).toEqual(['primary'])
})

test('any number of entries is acknowledged in one statement, and none in none', async () => {
  const { executor, backend } = open()
  await backend.commit(commitOf('a', { emits: ids(2000).map((id) => emit(id)) }))
  executor.writes.length = 0
  await backend.ackOutbox(Array.from({ length: 1999 }, (_, n) => n + 1))
  await backend.ackOutbox([])
  await backend.ackSpawn([1])
  expect(executor.writes.map((statements) => statements.length)).toEqual([1, 0, 1])
  expect(rowsOf(executor, 'outbox').map(({ seq }) => seq)).toEqual([2000])
})

test('a purge at another version changes nothing', async () => {
  const { executor, backend } = open()
  const changes: CommitChanges = { emits: [emit('a')], processedEventId: 'e', trace: {} }
  await backend.commit(commitOf('a', changes))
  const before = dump(executor)
  expect(await backend.purge('a', 2)).toBe(false)
  expect(dump(executor)).toEqual(before)
  expect(await backend.purge('a', 1)).toBe(true)
  expect(Object.values(dump(executor)).flat()).toEqual([])
})

test('after migrate the summary columns are written and listed', async () => {
  const executor = new SqliteExecutor()
  executor.db.exec(PYTHON_TABLES)
  const bare = { prefix: 'harel', traceMax: 0, summary: false, groupCommit: true }
  const backend = new RemoteSqliteBackend(executor, capabilities, bare)
  const query = {
    statuses: ['PENDING'],
    definitionId: 'd',
    rootsOnly: true,
    limit: 9,
    position: null,
    fingerprint: '',
  } as const
  await backend.commit(commitOf('a'))
  const before = await backend.listExecutions(query)
  expect(before.rows.map(({ id }) => id)).toEqual(['a'])
  await backend.migrate()
  await backend.commit(commitOf('b'))
  expect(rowsOf(executor, 'executions')).toMatchObject([{ meta_version: 1 }, { meta_version: 1, status: 'PENDING' }])
  expect((await backend.listExecutions(query)).rows.map(({ id }) => id)).toEqual(['a', 'b'])
  executor.db.exec('DROP TRIGGER harel_executions_summary_on_insert')
  await backend.commit(commitOf('c'))
  expect(rowsOf(executor, 'executions')[2]).toMatchObject({ meta_version: 1, status: 'PENDING' })
  expect((await backend.listExecutions(query)).rows.map(({ id }) => id)).toEqual(['a', 'b', 'c'])
})
