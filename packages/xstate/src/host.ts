import {
  CorruptRecord,
  type Emit,
  type Execution,
  type ExecutionStore,
  type Spawn,
  type Step,
  type TimerOp,
  type TraceStep,
} from '@harel/store-base'
import type { AnyEventObject } from 'xstate'
import type { KeyedQueue, Waits } from './concurrency.js'
import type { Deliveries } from './deliveries.js'
import type { Invocations } from './invocations.js'
import type { Machines } from './machines.js'
import type { Settings } from './settings.js'
import type { Sweep } from './sweep.js'

/** What one step wants written, and what is to happen once it is. */
export interface Draft {
  emits: Emit[]
  spawns: Spawn[]
  /** By path; the last one counts. */
  timers: Map<string, TimerOp>
  processedEventId?: string
  trace?: TraceStep
  step?: Step
  /** Events for listeners in this process, by XState's `emit`. */
  emitted: AnyEventObject[]
  /** `log()` actions. */
  logs: (() => void)[]
}

export const newDraft = (): Draft => ({ emits: [], spawns: [], timers: new Map(), emitted: [], logs: [] })

/** A commit that has been made. `seqs` are those of `draft.emits`, in their order. */
export interface Committed {
  readonly execution: Execution
  readonly draft: Draft
  readonly seqs: readonly number[]
}

/** What the parts of a runner share. */
export interface Host {
  readonly id: string
  readonly store: ExecutionStore
  readonly machines: Machines
  readonly settings: Settings
  /** One step at a time for each execution, as far as this process is concerned. */
  readonly queue: KeyedQueue
  readonly waits: Waits
  readonly invocations: Invocations
  readonly deliveries: Deliveries
  readonly sweep: Sweep
  /** Aborted when the runner is closed. */
  readonly signal: AbortSignal
  /** Is told of each commit: relays what it enqueued, arms its timers, calls listeners. Never throws. */
  committed(commit: Committed): void
}

/** For those who look at many: what cannot be read is reported, and null. */
export async function loadReadable({ store, settings }: Host, id: string): Promise<Execution | undefined | null> {
  try {
    return await store.load(id)
  } catch (error) {
    if (!(error instanceof CorruptRecord)) throw error
    settings.onWarning(`${id} cannot be read and is passed over`, error)
    return null
  }
}
