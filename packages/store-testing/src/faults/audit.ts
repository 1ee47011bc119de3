import type { Execution, ExecutionStore } from '@harel/store-base'
import { loaded, outboxOf, spawnsOf, timersOf } from '../fixtures.js'
import type { Attempt, Ledger } from './ledger.js'
import { childOf, eventsOf, knownOf } from './stream.js'

/** What a database holds after a stream, beside what the writers were told. */
export interface Audit {
  /** Commits that were found in the database. */
  commits: number
  /** Commits of which the writer was told that they are done. */
  acknowledged: number
  /** Commits of which the writer was told that nothing was written. */
  refused: number
  /** Commits of which the writer was told nothing, or that nothing can be told. */
  unknown: number
  /** What should be there and is not: a few words each. */
  lost: string[]
  /** What should not be there, or not twice: a few words each. */
  doubled: string[]
  /** What a writer saw go wrong: a sentence each. */
  breaches: string[]
}

/** Whether a database holds just what it should, and no writer saw anything go wrong. */
export const isWhole = ({ lost, doubled, breaches }: Audit): boolean =>
  lost.length + doubled.length + breaches.length === 0

/** Two lists that must hold the same, each entry once. */
interface Comparison {
  readonly expected: readonly string[]
  readonly found: readonly string[]
}

/** What all comparisons start from. */
interface Evidence {
  readonly store: ExecutionStore
  readonly ns: string
  readonly attempts: readonly (readonly [commit: string, Attempt])[]
  readonly executions: readonly Execution[]
  /** The commits that the executions consist of. */
  readonly living: ReadonlySet<string>
  /** These, and those of lives that a purge has ended. */
  readonly applied: ReadonlySet<string>
}

/** How many calls are under way at once. */
const AT_ONCE = 64

/**
 * Compares what writers were told with what is there. Nobody may be writing any more, and nothing may have been
 * acknowledged or fired. Each execution names the commits that it consists of; that list is taken for the truth.
 *
 * @param store reaches the database without faults
 * @param ns stands in front of all ids of the stream
 */
export async function audit(store: ExecutionStore, ledger: Ledger, ns: string, traceMax: number): Promise<Audit> {
  const executions = await inParts(await store.idsWithPrefix(`${ns}e`), (id) => loaded(store, id))
  const past = ledger.pastLives.flatMap(({ applied }) => applied)
  const living = executions.flatMap((execution) => knownOf(execution).applied)
  const attempts = [...ledger.attempts]
  const evidence = { store, ns, attempts, executions, living: new Set(living), applied: new Set([...past, ...living]) }

  const lost: string[] = []
  const doubled: string[] = []
  for (const { expected, found } of [
    { expected: [...evidence.applied], found: [...past, ...living] },
    versions(evidence),
    await steps(evidence, traceMax),
    await timers(evidence),
    await marks(evidence),
    await children(evidence),
    ...(await events(evidence)),
  ]) {
    const missing = new Set(expected)
    for (const row of found) if (!missing.delete(row)) doubled.push(row)
    lost.push(...missing)
  }

  const acknowledged = told('applied', attempts)
  const refused = told('refused', attempts)
  lost.push(
    ...acknowledged.filter((commit) => !evidence.applied.has(commit)).map((commit) => `${commit}, acknowledged`),
  )
  doubled.push(...refused.filter((commit) => evidence.applied.has(commit)).map((commit) => `${commit}, refused`))
  return {
    commits: evidence.applied.size,
    acknowledged: acknowledged.length,
    refused: refused.length,
    unknown: attempts.length - acknowledged.length - refused.length,
    lost,
    doubled,
    breaches: [...ledger.breaches, ...(past.length === 0 ? falseConflicts(evidence) : [])],
  }
}

function versions({ executions }: Evidence): Comparison {
  return {
    expected: executions.map((execution) => `version ${knownOf(execution).applied.length} of ${execution.id}`),
    found: executions.map(({ id, version }) => `version ${version} of ${id}`),
  }
}

async function steps({ store, executions }: Evidence, traceMax: number): Promise<Comparison> {
  const step = (id: string, index: unknown, commit: unknown) => `step ${index} of ${id}, ${commit}`
  const traces = inParts(executions, async ({ id }) =>
    (await store.readTrace(id)).map(({ index, commit }) => step(id, index, commit)),
  )
  return {
    expected: executions.flatMap((execution) =>
      knownOf(execution)
        .applied.map((commit, index) => step(execution.id, index, commit))
        .slice(-traceMax),
    ),
    found: (await traces).flat(),
  }
}

async function timers({ store, ns, executions }: Evidence): Promise<Comparison> {
  const timer = (id: string, path: string, fireAt: number) => `timer ${path} of ${id} at ${fireAt}`
  return {
    expected: executions.flatMap((execution) =>
      Object.entries(knownOf(execution).timers).map(([path, fireAt]) => timer(execution.id, path, fireAt)),
    ),
    found: (await timersOf(store, ns)).map(({ executionId, path, fireAt }) => timer(executionId, path, fireAt)),
  }
}

async function marks({ store, attempts, living }: Evidence): Promise<Comparison> {
  const mark = (commit: string) => `mark of ${commit}`
  const isMarked = await inParts(attempts, ([commit, { execution }]) => store.isProcessed(execution, commit))
  return {
    expected: [...living].map(mark),
    found: attempts.flatMap(([commit], index) => (isMarked[index] === true ? [mark(commit)] : [])),
  }
}

async function children({ store, ns, living }: Evidence): Promise<Comparison> {
  return {
    expected: [...living].map((commit) => `child ${childOf(commit)}`),
    found: (await spawnsOf(store, ns)).map(({ childId }) => `child ${childId}`),
  }
}

/** The events in the outbox, and the seqs that their writers were given. */
async function events({ store, ns, attempts, living, applied }: Evidence): Promise<Comparison[]> {
  const queue = await outboxOf(store, ns)
  const name = ({ id, targetId }: { id: string; targetId: string | null }) => `event ${id} to ${targetId}`
  const seqs = new Map(queue.map(({ seq, event }) => [event.id, seq]))
  const acknowledged = attempts.flatMap(([commit, { execution, verdict }]) =>
    verdict?.note === 'applied' && living.has(commit)
      ? [{ commit, given: verdict.seqs, stored: eventsOf(commit, execution).map(({ id }) => seqs.get(id)) }]
      : [],
  )
  return [
    {
      expected: attempts.flatMap(([commit, { execution }]) =>
        eventsOf(commit, execution)
          // A purge takes those that are addressed to what it removes.
          .filter(({ targetId }) => (targetId === null ? applied : living).has(commit))
          .map(name),
      ),
      found: queue.map(({ event: { id }, targetId }) => name({ id, targetId })),
    },
    {
      expected: acknowledged.map(({ commit, given }) => `seqs ${given} of ${commit}`),
      found: acknowledged.map(({ commit, stored }) => `seqs ${stored} of ${commit}`),
    },
  ]
}

/** A conflict reports a version that somebody has stored: it is not above the last one. */
function falseConflicts({ attempts, executions }: Evidence): string[] {
  const versionOf = new Map(executions.map(({ id, version }) => [id, version]))
  return attempts.flatMap(([commit, { execution, verdict }]) => {
    if (verdict?.note !== 'refused' || verdict.found === undefined || verdict.found === null) return []
    const version = versionOf.get(execution) ?? 0
    return verdict.found <= version
      ? []
      : [`${commit} was refused because of version ${verdict.found} of ${execution}, which is at ${version}`]
  })
}

const told = (note: string, attempts: Evidence['attempts']): string[] =>
  attempts.flatMap(([commit, { verdict }]) => (verdict?.note === note ? [commit] : []))

async function inParts<T, R>(items: readonly T[], call: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = []
  for (let start = 0; start < items.length; start += AT_ONCE) {
    results.push(...(await Promise.all(items.slice(start, start + AT_ONCE).map(call))))
  }
  return results
}
