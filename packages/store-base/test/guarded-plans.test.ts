import { expect, test } from 'vitest'
import { prepareCommit } from '../src/prepare.js'
import { newEvent, newExecution } from '../src/records.js'
import { guardedCommits } from '../src/sql/guarded-commit.js'
import { storeSchema } from '../src/sql/schema.js'
import { SqliteExecutor } from './sqlite-executor.js'

/** A commit that writes to every table. */
const commitOf = (id: string, version: number) =>
  prepareCommit(newExecution({ id, definitionId: 'd', version }), {
    emits: [
      { targetId: 'x', event: newEvent({ kind: 'k' }) },
      { targetId: null, event: newEvent({ kind: 'k' }) },
    ],
    processedEventId: 'e',
    spawns: [{ childId: 'c', rootPath: '', context: {} }],
    timers: [
      { action: 'schedule', path: 'A', fireAt: 1 },
      { action: 'cancel', path: 'B' },
    ],
    trace: {},
  })

const tables = ['executions', 'outbox', 'spawns', 'timers', 'processed_events', 'trace']

/** What of the plans walks through one of the tables, or sorts. */
function expensive(executor: SqliteExecutor, commits: ReturnType<typeof commitOf>[]): string[] {
  const { statements } = guardedCommits({ prefix: 'harel', traceMax: 5, summary: true })(commits)
  expect(statements.length).toBeGreaterThan(8)
  return statements
    .flatMap(({ sql, params }) => executor.db.prepare(`EXPLAIN QUERY PLAN ${sql}`).all(...params))
    .map(({ detail }) => String(detail))
    .filter((detail) => /TEMP B-TREE/.test(detail) || /^SCAN (e|t|harel_\w+)\b(?! VIRTUAL)/.test(detail))
}

const analyses: [string, (executor: SqliteExecutor) => void][] = [
  ['an empty database', () => {}],
  [
    'a database in which ANALYZE has found all rows alike',
    ({ db }) => {
      for (let n = 0; n < 500; n++) {
        db.exec(`INSERT INTO harel_executions (id, version, data, definition_id) VALUES ('e${n}', 1, '{}', 'd')`)
        db.exec(`INSERT INTO harel_timers (execution_id, path, fire_at) VALUES ('e', 'p${n}', 1)`)
        db.exec(`INSERT INTO harel_trace (execution_id, idx, entry) VALUES ('e', ${n}, '{}')`)
      }
      db.exec('ANALYZE')
    },
  ],
]

test.each(analyses)('no statement of a commit, alone or shared, reads a table as a whole on %s', (_, prepare) => {
  const executor = new SqliteExecutor()
  for (const { kind, sql } of storeSchema('sqlite')) if (kind !== 'column') executor.db.exec(sql)
  prepare(executor)
  for (const version of [0, 1]) {
    expect(expensive(executor, [commitOf('a', version)])).toEqual([])
    expect(expensive(executor, [commitOf('a', version), commitOf('b', version), commitOf('c', 3)])).toEqual([])
  }
})

test('where a key is missing these tests would find what is read as a whole', () => {
  const executor = new SqliteExecutor()
  for (const { kind, sql } of storeSchema('sqlite')) if (kind !== 'column') executor.db.exec(sql)
  for (const table of tables) {
    const columns = executor.db
      .prepare(`SELECT group_concat(name) AS names FROM pragma_table_info('harel_${table}')`)
      .get()
    executor.db.exec(`DROP TABLE harel_${table}; CREATE TABLE harel_${table} (${columns?.names})`)
  }
  executor.db.exec('CREATE UNIQUE INDEX a ON harel_processed_events (event_id, execution_id)')
  executor.db.exec('CREATE UNIQUE INDEX b ON harel_timers (path, execution_id)')
  executor.db.exec('CREATE UNIQUE INDEX c ON harel_executions (version, id)')
  const found = expensive(executor, [commitOf('a', 1), commitOf('b', 1)])
  expect(found.length).toBeGreaterThan(3)
})
