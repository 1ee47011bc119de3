import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type PreparedCommit, prepareCommit } from '../src/prepare.js'
import type { CommitChanges } from '../src/protocol.js'
import { type Execution, newEvent, newExecution } from '../src/records.js'
import { guardedCommits } from '../src/sql/guarded-commit.js'
import { storeSchema } from '../src/sql/schema.js'
import { fromSummaryColumn } from '../src/sql/summary-text.js'
import { dump, PYTHON_TABLES, rowsOf, SqliteExecutor } from './sqlite-executor.js'

const options = { prefix: 'harel', traceMax: 200, summary: true }

function emptyDatabase(): SqliteExecutor {
  const executor = new SqliteExecutor()
  for (const { kind, sql } of storeSchema('sqlite')) if (kind !== 'column') executor.db.exec(sql)
  return executor
}

function pythonDatabase(): SqliteExecutor {
  const executor = new SqliteExecutor()
  executor.db.exec(PYTHON_TABLES)
  return executor
}

async function write(executor: SqliteExecutor, commits: readonly PreparedCommit[], given = options) {
  const { statements, verdicts } = guardedCommits(given)(commits)
  return verdicts(await executor.write(statements))
}

/** One of everything that a commit can write. */
const everything = (name: string): CommitChanges => ({
  emits: [1, 2].map((n) => ({ targetId: n === 1 ? name : null, event: newEvent({ id: `${name}-${n}`, kind: 'k' }) })),
  processedEventId: `${name}-event`,
  timers: [
    { action: 'schedule', path: 'armed', fireAt: 1749667779.125 },
    { action: 'cancel', path: 'cancelled' },
  ],
  spawns: [{ childId: `${name}-child`, rootPath: '', context: { name } }],
  trace: { name },
})

const prepared = (id: string, version: number, fields: Partial<Execution> = {}, changes = everything(id)) =>
  prepareCommit(newExecution({ id, definitionId: 'd', version, ...fields }), changes)

/** Executions with timers to cancel, the first at version 1, the second at version 2 and so on. */
async function stock(executor: SqliteExecutor, ids: readonly string[], given = options): Promise<void> {
  for (const [index, id] of ids.entries()) {
    for (let version = 0; version <= index; version++) {
      const timers: CommitChanges['timers'] = [{ action: 'schedule', path: 'cancelled', fireAt: 5 }]
      await write(executor, [prepared(id, version, {}, { timers })], given)
    }
  }
}

describe.each([
  { layout: 'ours', database: emptyDatabase, given: options },
  { layout: 'that of Python', database: pythonDatabase, given: { ...options, summary: false } },
])('on tables like $layout', ({ database, given }) => {
  test('commits write the same rows together as one by one', async () => {
    const together = database()
    await stock(together, ['a', 'b'], given)
    const alone = together.copy()
    const commits = [
      prepared('a', 1, { status: 'DONE', outcome: 'ok', finishedAt: 0.1 }),
      prepared('b', 2),
      prepared('x', 0, { parentId: 'p', activePath: 'A.B' }),
      prepared('y', 0),
    ]
    const verdicts = await write(together, commits, given)
    for (const [index, commit] of commits.entries()) {
      expect(await write(alone, [commit], given)).toEqual([verdicts[index]])
    }
    expect(dump(together)).toEqual(dump(alone))
    const versions = rowsOf(together, 'executions').map(({ id, version }) => [id, version])
    expect(versions).toEqual(Object.entries({ a: 2, b: 3, x: 1, y: 1 }))
    expect(rowsOf(together, 'timers').map(({ path, fire_at }) => [path, fire_at])).toEqual(
      Array(4).fill(['armed', 1749667779.125]),
    )
    expect(rowsOf(together, 'spawns').map(({ parent_id }) => parent_id)).toEqual(['a', 'b', 'x', 'y'])
    expect(rowsOf(together, 'processed_events').map(({ event_id }) => event_id)).toContain('x-event')
  })

  test.each(['alone', 'beside winners'])('a refused commit leaves nothing behind (%s)', async (where) => {
    const executor = database()
    await stock(executor, ['a', 'b'], given)
    const expected = executor.copy()
    const won = where === 'alone' ? [] : [prepared('c', 0), prepared('d', 0)]
    if (won.length > 0) await write(expected, won, given)
    const refused = [prepared('a', 0), prepared('b', 1), prepared('none', 3)]
    const verdicts =
      where === 'alone'
        ? [await write(executor, refused.slice(0, 1), given), await write(executor, refused.slice(1), given)].flat()
        : await write(executor, [...won, ...refused], given)
    expect(verdicts.slice(won.length)).toEqual([
      { applied: false, found: 1, foreign: true },
      { applied: false, found: 2, foreign: true },
      { applied: false, found: null },
    ])
    expect(verdicts.slice(0, won.length).map(({ applied }) => applied)).toEqual(won.map(() => true))
    expect(dump(executor)).toEqual(dump(expected))
  })

  test('a refusal tells a version that another commit wrote from the own one, and says nothing of others', async () => {
    const executor = database()
    const commits = ['a', 'b'].map((id) => prepared(id, 0))
    await write(executor, commits, given)
    const own = [1, 1].map((found) => ({ applied: false, found }))
    for (const sent of [commits, commits.slice(0, 1)]) {
      expect(await write(executor, sent, given)).toEqual(own.slice(0, sent.length))
    }
    const refused = [prepared('a', 0), ...commits.slice(1), prepared('c', 1)]
    const foreign = { applied: false, found: 1, foreign: true }
    expect(await write(executor, refused, given)).toEqual([foreign, own[1], { applied: false, found: null }])
    await write(executor, [prepared('a', 1)], given)
    expect(await write(executor, commits.slice(0, 1), given)).toEqual([{ applied: false, found: 2 }])
  })

  test("a row that was stored at version 0 is nobody's yet: one first commit takes it, the next is refused", async () => {
    const executor = database()
    const insert = "INSERT INTO harel_executions (id, definition_id, data, version) VALUES (?, 'other', '{}', 0)"
    for (const id of ['a', 'b']) executor.db.prepare(insert).run(id)
    expect(await write(executor, [prepared('a', 0)], given)).toEqual([{ applied: true, seqs: [1, 2] }])
    const [b, c] = await write(executor, [prepared('b', 0), prepared('c', 0)], given)
    expect([b, c].map((verdict) => verdict?.applied)).toEqual([true, true])
    expect(await write(executor, [prepared('a', 0)], given)).toEqual([{ applied: false, found: 1, foreign: true }])
    expect(rowsOf(executor, 'executions')).toMatchObject(
      ['a', 'b', 'c'].map((id) => ({
        id,
        version: 1,
        definition_id: 'd',
        data: expect.stringContaining(`"id":"${id}"`),
      })),
    )
  })

  test('ids and paths that look like numbers, JSON or SQL are stored as they are', async () => {
    const executor = database()
    const ids = ['1', '1.0', 'null', '[1]', '"', "'; --", '\\', '?1', 'r.value ->> 0', 'ü😀\uffff']
    const commits = ids.map((id) => prepared(id, 0, {}, { timers: [{ action: 'schedule', path: id, fireAt: 1 }] }))
    await write(executor, commits.slice(0, 9), given)
    for (const commit of commits.slice(9)) await write(executor, [commit], given)
    expect(rowsOf(executor, 'executions').map(({ id }) => id)).toEqual(ids)
    expect(rowsOf(executor, 'timers').map(({ execution_id, path }) => [execution_id, path])).toEqual(
      ids.map((id) => [id, id]),
    )
    const verdicts = await write(executor, commits, given)
    expect(verdicts).toEqual(ids.map(() => ({ applied: false, found: 1 })))
  })
})

test('seqs are those of the rows, in the order of the events, beside losers and large events', async () => {
  const executor = emptyDatabase()
  await stock(executor, ['loser'])
  const large = 'x'.repeat(600_000)
  const commits = Array.from({ length: 8 }, (_, n) => {
    const emits = Array.from({ length: n % 3 }, (_, m) => ({
      targetId: null,
      event: newEvent({ id: `${n}.${m}`, kind: 'k', data: (n + m) % 2 === 0 ? {} : { large } }),
    }))
    return prepared(n % 4 === 1 ? 'loser' : `e${n}`, 0, {}, { emits })
  })
  const rows = new Map<unknown, string>()
  for (const part of [commits.slice(0, 4), commits.slice(4)]) {
    const verdicts = await write(executor, part)
    for (const { seq, event } of rowsOf(executor, 'outbox')) rows.set(seq, JSON.parse(String(event)).id)
    for (const [index, verdict] of verdicts.entries()) {
      const { id, emits } = part[index] ?? expect.unreachable()
      expect(verdict.applied).toBe(id !== 'loser')
      if (verdict.applied) expect(verdict.seqs.map((seq) => rows.get(seq))).toEqual(emits.map(({ eventId }) => eventId))
    }
  }
  expect(rows.size).toBe(2 + 1 + 1)
  // sqld takes 5 MB in a parameter.
  const lengths = executor.writes.flat().flatMap(({ params }) => params.map((param) => String(param).length))
  expect(Math.max(...lengths)).toBeLessThan(1_000_000)
})

test('ten thousand events and five hundred spawns are one commit of a few statements', async () => {
  const executor = emptyDatabase()
  const emits = Array.from({ length: 10_000 }, (_, n) => ({
    targetId: `t${n}`,
    event: newEvent({ id: `ev${n}`, kind: 'k' }),
  }))
  const spawns = Array.from({ length: 500 }, (_, n) => ({ childId: `c${n}`, rootPath: '', context: { n } }))
  const verdicts = await write(executor, [prepared('a', 0, {}, { emits, spawns })])
  expect(verdicts).toEqual([{ applied: true, seqs: emits.map((_, index) => index + 1) }])
  expect(rowsOf(executor, 'outbox').map(({ target_id }) => target_id)).toEqual(emits.map(({ targetId }) => targetId))
  expect(rowsOf(executor, 'spawns').map(({ child_id }) => child_id)).toEqual(spawns.map(({ childId }) => childId))
  const [statements = []] = executor.writes
  expect(statements.length).toBeLessThan(12)
  for (const { params } of statements) expect(params.length).toBeLessThan(50)
})

test('times are stored to the last bit', async () => {
  const executor = emptyDatabase()
  const time = fc.double({ noNaN: true, noDefaultInfinity: true, min: 0 })
  const epoch = fc.double({ noNaN: true, min: 1e9, max: 1e10 })
  await fc.assert(
    fc.asyncProperty(fc.array(fc.oneof(time, epoch), { minLength: 2, maxLength: 20 }), async (times) => {
      executor.db.exec('DELETE FROM harel_executions; DELETE FROM harel_timers')
      const commits = times.map((fireAt, n) =>
        prepared(`e${n}`, 0, { finishedAt: fireAt }, { timers: [{ action: 'schedule', path: 'P', fireAt }] }),
      )
      await write(executor, commits)
      expect(rowsOf(executor, 'timers').map(({ fire_at }) => fire_at)).toEqual(times)
      expect(rowsOf(executor, 'executions').map(({ finished_at }) => finished_at)).toEqual(times)
    }),
  )
  await write(executor, [prepared('one', 0, {}, { timers: [{ action: 'schedule', path: 'one', fireAt: 0.1 }] })])
  expect(rowsOf(executor, 'timers').at(-1)?.fire_at).toBe(0.1)
})

test('versions up to the largest are compared exactly (B28)', async () => {
  const executor = emptyDatabase()
  const most = Number.MAX_SAFE_INTEGER
  const insert = "INSERT INTO harel_executions (id, definition_id, data, version) VALUES (?, 'd', '{}', ?)"
  for (const id of ['a', 'b']) executor.db.prepare(insert).run(id, most - 1)
  expect(await write(executor, [prepared('a', most - 2)])).toMatchObject([{ applied: false, found: most - 1 }])
  const verdicts = await write(executor, [prepared('a', most - 1), prepared('b', most - 2)])
  expect(verdicts).toMatchObject([{ applied: true }, { applied: false, found: most - 1 }])
  expect(rowsOf(executor, 'executions').map(({ version }) => version)).toEqual([most, most - 1])
})

test('a trace keeps its newest steps, and with a limit of 0 all of them', async () => {
  for (const [traceMax, kept] of [
    [3, [4, 5, 6]],
    [0, [0, 1, 2, 3, 4, 5, 6]],
  ] as const) {
    const executor = emptyDatabase()
    for (let n = 0; n < 7; n++) {
      const beside = n % 2 === 0 ? [] : [prepared(`other${n}`, 0, {}, { trace: { n } })]
      await write(executor, [prepared('a', n, {}, { trace: { n } }), ...beside], { ...options, traceMax })
    }
    const steps = rowsOf(executor, 'trace').filter(({ execution_id }) => execution_id === 'a')
    expect(steps.map(({ idx }) => idx)).toEqual(kept)
    expect(steps.map(({ entry }) => JSON.parse(String(entry)).n)).toEqual(kept)
    expect(rowsOf(executor, 'trace')).toHaveLength(kept.length + 3)
  }
})

test('summary columns hold what listings show, texts with U+0000 too', async () => {
  const executor = emptyDatabase()
  const outcome = 'a\0b'
  const fields = { status: 'DONE', outcome, activePath: '\u0001x', parentId: 'p', finishedAt: 2.5 } as const
  await write(executor, [prepared('a', 0, fields, {}), prepared('b', 0, fields, {})])
  const summary = { status: 'DONE', parent_id: 'p', finished_at: 2.5, meta_version: 1 }
  const stored = rowsOf(executor, 'executions')
  expect(stored).toMatchObject([summary, summary])
  for (const row of stored) {
    expect(String(row.outcome)).not.toContain('\0')
    expect(fromSummaryColumn(String(row.outcome))).toBe(outcome)
    expect(fromSummaryColumn(String(row.active_path))).toBe('\u0001x')
  }
})
