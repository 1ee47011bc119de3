import { setTimeout as sleep } from 'node:timers/promises'
import {
  type CommitChanges,
  type Execution,
  type ExecutionStore,
  newEvent,
  newExecution,
  OutcomeUnknown,
  StoreConflict,
  StoreError,
  type TimerOp,
} from '@harel/store-base'
import type { Note } from './ledger.js'
import { PATIENCE_MS, settled } from './patience.js'
import { Random } from './random.js'

/** What a writer needs of a store. */
export type Written = Pick<ExecutionStore, 'load' | 'commit'>

/** What is written, and by how many at once. */
export interface StreamOptions {
  /** Stands in front of all ids. */
  ns: string
  /** How many commits have to succeed. */
  commits: number
  /** Writers of this process; each waits for one commit before it begins the next. */
  writers: number
  /** Over how many executions they write. */
  executions: number
  /** Each execution has one writer. Default: false, they all race for all. */
  exclusive?: boolean
  /** Decides which execution is next. */
  seed: number
  /** Told from those of other processes by it. */
  name?: string
  /** How long a call may take, and how long there may be no commit. Default: `PATIENCE_MS`. */
  patienceMs?: number
}

/**
 * What an execution knows of itself. It is written with everything else, so that it tells which commits are in it
 * whatever their writers were told.
 */
interface Known {
  applied: string[]
  /** When each timer that is armed fires. */
  timers: Record<string, number>
}

const TIMERS = 3

export const knownOf = (execution: Execution): Known => execution.context as unknown as Known

/** What the commit with this id writes beside the execution. */
export const eventsOf = (commit: string, execution: string) => [
  { id: `${commit}/own`, targetId: execution },
  { id: `${commit}/none`, targetId: null },
]

export const childOf = (commit: string): string => `${commit}/child`

/**
 * Writes until so many commits have succeeded, each with two events, a spawn, timers, a trace step and an event id of its
 * own, and puts down what it is told. It goes on after every error of a store; any other error is a breach.
 */
export async function writeStream(store: Written, record: (note: Note) => void, options: StreamOptions): Promise<void> {
  const { ns, commits, writers, executions, exclusive = false, seed, name = '0', patienceMs = PATIENCE_MS } = options
  const random = new Random(seed)
  let left = commits
  let tried = 0
  // For all together: in a storm somebody always comes last.
  let deadline = performance.now() + patienceMs
  const write = async (writer: number) => {
    const own = exclusive ? Math.ceil((executions - writer) / writers) : executions
    while (left-- > 0) {
      const n = random.below(own)
      const execution = `${ns}e${exclusive ? writer + n * writers : n}`
      while (!(await attempt(store, record, execution, `${ns}${name}.${tried++}`, random, patienceMs))) {
        if (performance.now() > deadline) throw new Error(`nothing can be written to ${execution} for too long`)
      }
      deadline = performance.now() + patienceMs
    }
  }
  await Promise.all(Array.from({ length: writers }, (_, writer) => write(writer)))
}

/** False when nothing was written and it is to be tried again. */
async function attempt(
  store: Written,
  record: (note: Note) => void,
  id: string,
  commit: string,
  random: Random,
  patienceMs: number,
): Promise<boolean> {
  const held = await patiently(() => store.load(id), random, patienceMs)
  const execution = held === undefined ? firstOf(id) : structuredClone(held)
  const { version } = execution
  const changes = changesOf(execution, commit)
  record({ note: 'begun', commit, execution: id })
  try {
    const seqs = await settled(store.commit(execution, changes), `commit ${commit}`, patienceMs)
    record({ note: 'applied', commit, seqs })
    if (execution.version !== version + 1) {
      record({ note: 'breach', what: `${commit} has succeeded and left its caller at version ${execution.version}` })
    }
    return true
  } catch (error) {
    if (execution.version !== version) {
      record({ note: 'breach', what: `${commit} has failed and left its caller at version ${execution.version}` })
    }
    if (error instanceof OutcomeUnknown) {
      record({ note: 'unknown', commit })
      return true
    }
    if (!(error instanceof StoreError)) throw error
    record({ note: 'refused', commit, ...(error instanceof StoreConflict && { found: error.found }) })
    if (error instanceof StoreConflict && error.found === version) {
      record({ note: 'breach', what: `${commit} was refused because of version ${version}, which it goes on from` })
    }
    if (!(error instanceof StoreConflict)) {
      if (!error.retryable) throw error
      await sleep(random.below(50))
    }
    return false
  }
}

const firstOf = (id: string): Execution =>
  newExecution({ id, definitionId: 'stream', context: { applied: [], timers: {} } })

/** Puts the commit into the execution, and into what goes with it. */
function changesOf(execution: Execution, commit: string): CommitChanges {
  const { applied, timers } = knownOf(execution)
  const cancelled = `t${(applied.length + 1) % TIMERS}`
  const scheduled = `t${applied.length % TIMERS}`
  applied.push(commit)
  delete timers[cancelled]
  timers[scheduled] = applied.length
  const ops: TimerOp[] = [
    { action: 'cancel', path: cancelled },
    { action: 'schedule', path: scheduled, fireAt: applied.length },
  ]
  return {
    emits: eventsOf(commit, execution.id).map(({ id, targetId }) => ({ targetId, event: newEvent({ id, kind: 'e' }) })),
    processedEventId: commit,
    timers: ops,
    spawns: [{ childId: childOf(commit), rootPath: '', context: {} }],
    trace: { commit },
  }
}

/** Reads, again and again while the server is away. */
async function patiently<T>(read: () => Promise<T>, random: Random, patienceMs: number): Promise<T> {
  const deadline = performance.now() + patienceMs
  for (;;) {
    try {
      return await settled(read(), 'a read', patienceMs)
    } catch (error) {
      if (!(error instanceof StoreError && error.retryable) || performance.now() > deadline) throw error
      await sleep(random.below(50))
    }
  }
}
