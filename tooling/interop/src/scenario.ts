import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  decodeEvent,
  decodeExecution,
  type Execution,
  type ExecutionStore,
  encodeExecution,
  type JsonObject,
  StoreConflict,
  type TraceStep,
} from '@harel/store-base'

/** Steps that are played on a store which keeps so many steps of a trace. */
export interface Part {
  trace_max: number
  steps: readonly Step[]
}

/**
 * What both languages do in the same way. Executions are held under names; `set` makes one or changes its fields, which
 * are named as on the wire. A timer without a time is cancelled.
 */
type Step =
  | {
      op: 'commit'
      execution: string
      set?: JsonObject
      emits?: readonly [target: string | null, event: JsonObject][]
      processed?: string
      timers?: readonly [path: string, fireAt: number | null][]
      spawns?: readonly [childId: string, rootPath: string, context: JsonObject][]
      trace?: TraceStep
      conflict?: readonly [expected: number, found: number | null]
    }
  | { op: 'load'; id: string; execution: string }
  | { op: 'ack_outbox'; execution: string; index: number }
  | { op: 'ack_first_spawn'; parent: string }
  | { op: 'append_trace'; id: string; trace: TraceStep }
  | { op: 'delete_timer'; id: string; path: string; fire_at: number }
  | { op: 'purge'; id: string; version: number; purged: boolean }

type CommitStep = Extract<Step, { op: 'commit' }>

// Parsed here: as an imported module, its member `__proto__` would be lost.
const read = (name: string) => JSON.parse(readFileSync(join(import.meta.dirname, name), 'utf8'))

/** Every operation of a store, for ids that start with `chk-`. */
export const scenario: readonly Part[] = read('scenario.json')

/** What a store must hold after the scenario, as `canonical` reads it with ranks. */
export const expected: unknown = read('expected.json')

/** The same without the events of senders that were purged. */
export function withoutOrphans(): unknown {
  const { outbox, ...rest } = expected as { outbox: { seq: number; target_id: string | null }[] }
  const left = outbox.filter(({ target_id }) => target_id !== 'chk-done-1')
  return { ...rest, outbox: left.map((entry, index) => ({ ...entry, seq: index + 1 })) }
}

/** Plays the parts of a scenario, each on a store that is opened for it. */
export async function play(
  parts: readonly Part[],
  open: (options: { traceMax: number }) => Promise<ExecutionStore>,
): Promise<void> {
  const held = new Map<string, Execution>()
  const seqs = new Map<string, readonly number[]>()
  for (const { trace_max, steps } of parts) {
    await using store = await open({ traceMax: trace_max })
    for (const step of steps) await playStep(store, step, held, seqs)
  }
}

async function playStep(
  store: ExecutionStore,
  step: Step,
  held: Map<string, Execution>,
  seqs: Map<string, readonly number[]>,
): Promise<void> {
  switch (step.op) {
    case 'commit':
      return commit(store, step, held, seqs)
    case 'load':
      held.set(step.execution, present(await store.load(step.id), step.id))
      return
    case 'ack_outbox':
      return store.ackOutbox(present(seqs.get(step.execution)?.[step.index], step.execution))
    case 'ack_first_spawn': {
      const first = (await store.pendingSpawns()).find(({ parentId }) => parentId === step.parent)
      return store.ackSpawn(present(first, step.parent).seq)
    }
    case 'append_trace':
      return store.appendTrace(step.id, step.trace)
    case 'delete_timer':
      return store.deleteTimer(step.id, step.path, step.fire_at)
    case 'purge':
      assert.equal(await store.purge(step.id, step.version), step.purged)
  }
}

async function commit(
  store: ExecutionStore,
  step: CommitStep,
  held: Map<string, Execution>,
  seqs: Map<string, readonly number[]>,
): Promise<void> {
  const before = held.get(step.execution)
  const execution = step.set === undefined ? present(before, step.execution) : changed(before, step.set)
  held.set(step.execution, execution)
  const committing = store.commit(execution, {
    emits: (step.emits ?? []).map(([targetId, event]) => ({ targetId, event: decodeEvent(JSON.stringify(event)) })),
    timers: (step.timers ?? []).map(([path, fireAt]) =>
      fireAt === null ? { action: 'cancel', path } : { action: 'schedule', path, fireAt },
    ),
    spawns: (step.spawns ?? []).map(([childId, rootPath, context]) => ({ childId, rootPath, context })),
    ...(step.processed === undefined ? {} : { processedEventId: step.processed }),
    ...(step.trace === undefined ? {} : { trace: step.trace }),
  })
  if (step.conflict === undefined) {
    seqs.set(step.execution, await committing)
    return
  }
  const [wanted, found] = step.conflict
  await assert.rejects(committing, new StoreConflict(execution.id, wanted, found))
}

function changed(execution: Execution | undefined, fields: JsonObject): Execution {
  const before = execution === undefined ? {} : JSON.parse(encodeExecution(execution, execution.version, ''))
  return decodeExecution(JSON.stringify({ ...before, ...fields }))
}

function present<T>(value: T | undefined, what: string): T {
  assert(value !== undefined, `there is no ${what}`)
  return value
}
