import type { Verdict } from '../backend.js'
import type { PreparedCommit } from '../prepare.js'
import type { RunSql } from './executor.js'
import type { Sql } from './listing.js'
import type { SqliteStatements } from './sqlite-statements.js'

/**
 * A commit step by step, for a connection on which a step is no round trip: the statements are simpler than those of
 * `guardedCommits`. The compare-and-set comes first, so that a refused commit has written nothing.
 */
export async function stepwiseCommit(
  statements: SqliteStatements,
  traceMax: number,
  commit: PreparedCommit,
  run: RunSql,
): Promise<Verdict> {
  const { id, expected, emits, processedEventId, spawns, timers, trace } = commit
  const attempts = [...(expected === 0 ? [statements.insert(commit)] : []), ...statements.updates(commit)]
  if (!(await changesRow(attempts, run))) {
    const [stored] = await run([statements.version(id)])
    const found = stored?.rows[0]?.[0] ?? null
    return { applied: false, found: found === null ? null : Number(found) }
  }
  const companions = [
    ...emits.map((emit) => statements.emit(emit)),
    ...(processedEventId === undefined ? [] : [statements.mark(id, processedEventId)]),
    ...spawns.map((spawn) => statements.spawn(id, spawn)),
    ...timers.map((timer) => statements.timer(id, timer)),
    ...(trace === undefined ? [] : statements.trace(id, trace, traceMax)),
  ]
  const results = companions.length === 0 ? [] : await run(companions)
  return { applied: true, seqs: results.slice(0, emits.length).map(({ lastId }) => lastId) }
}

/** Whether one of them does; they are tried in turn until then. */
async function changesRow(attempts: readonly Sql[], run: RunSql): Promise<boolean> {
  for (const attempt of attempts) {
    const [result] = await run([attempt])
    if (result !== undefined && result.changes > 0) return true
  }
  return false
}
