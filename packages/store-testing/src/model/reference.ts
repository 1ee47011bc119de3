import type {
  CommitChanges,
  DefinitionRecord,
  DueTimer,
  Emit,
  Execution,
  ExecutionSummary,
  ListQuery,
  SpawnEntry,
  TraceStep,
} from '@harel/store-base'
import { byBytes } from '../fixtures.js'

const byTime = (a: DueTimer, b: DueTimer): number =>
  a.fireAt - b.fireAt || byBytes(a.executionId, b.executionId) || byBytes(a.path, b.path)

/**
 * What a store is to do, as plainly as it can be said: in one place, one call after the other, in no hurry. Seqs are the
 * store's to choose, so queues are kept by what tells their entries apart: the id of an event, the id of a child.
 */
export class Reference {
  readonly executions = new Map<string, Execution>()
  readonly marks = new Set<string>()
  readonly traces = new Map<string, { steps: TraceStep[]; next: number }>()
  readonly events = new Map<string, Emit & { seq: number }>()
  readonly children = new Map<string, Omit<SpawnEntry, 'seq'>>()
  readonly definitions = new Map<string, DefinitionRecord>()
  #timers: DueTimer[] = []
  readonly #traceMax: number

  constructor(traceMax: number) {
    this.#traceMax = traceMax
  }

  versionOf(id: string): number | null {
    return this.executions.get(id)?.version ?? null
  }

  /** Whether a commit of this version is applied. */
  accepts(id: string, version: number): boolean {
    return (this.versionOf(id) ?? 0) === version
  }

  /** A commit that was accepted. `execution` has the new version already. */
  commit(execution: Execution, changes: CommitChanges, seqs: readonly number[]): void {
    const { id } = execution
    const { emits = [], spawns = [], timers = [], processedEventId, trace } = changes
    this.executions.set(id, structuredClone(execution))
    for (const [index, emit] of emits.entries()) this.events.set(emit.event.id, { ...emit, seq: seqs[index] ?? -1 })
    for (const spawn of spawns) this.children.set(spawn.childId, { parentId: id, ...spawn })
    if (processedEventId !== undefined) this.marks.add(JSON.stringify([id, processedEventId]))
    for (const op of timers) {
      this.#timers = this.#timers.filter(({ executionId, path }) => executionId !== id || path !== op.path)
      if (op.action === 'schedule') this.#timers.push({ executionId: id, path: op.path, fireAt: op.fireAt })
    }
    if (trace !== undefined) this.appendTrace(id, trace)
  }

  isProcessed(id: string, eventId: string): boolean {
    return this.marks.has(JSON.stringify([id, eventId]))
  }

  appendTrace(id: string, step: TraceStep): void {
    const { steps, next } = this.traces.get(id) ?? { steps: [], next: 0 }
    this.traces.set(id, { steps: [...steps, { ...step, index: next }].slice(-this.#traceMax), next: next + 1 })
  }

  dueTimers(now: number): DueTimer[] {
    return this.#timers.filter(({ fireAt }) => fireAt <= now).sort(byTime)
  }

  deleteTimer(timer: DueTimer): void {
    this.#timers = this.#timers.filter((armed) => byTime(armed, timer) !== 0)
  }

  list({ status, definitionId, rootsOnly = false }: ListQuery): ExecutionSummary[] {
    const statuses = status === undefined ? undefined : [status].flat()
    return [...this.executions.values()]
      .filter((execution) => statuses === undefined || statuses.includes(execution.status))
      .filter((execution) => definitionId === undefined || execution.definitionId === definitionId)
      .filter((execution) => !rootsOnly || execution.parentId === null)
      .sort((a, b) => byBytes(a.id, b.id))
      .map(({ id, definitionId, status, outcome, activePath, version, parentId, finishedAt }) => ({
        ...{ id, definitionId, status, outcome, activePath, version, parentId, finishedAt },
      }))
  }

  publish(record: DefinitionRecord): DefinitionRecord {
    const key = JSON.stringify([record.id, record.version])
    const first = this.definitions.get(key) ?? record
    this.definitions.set(key, first)
    return first
  }

  purge(id: string, version: number): boolean {
    const stored = this.versionOf(id)
    if (stored !== null && stored !== version) return false
    this.executions.delete(id)
    for (const mark of this.marks) if ((JSON.parse(mark) as string[])[0] === id) this.marks.delete(mark)
    this.traces.delete(id)
    this.#timers = this.#timers.filter(({ executionId }) => executionId !== id)
    for (const [key, { targetId }] of this.events) if (targetId === id) this.events.delete(key)
    for (const [key, { parentId }] of this.children) if (parentId === id) this.children.delete(key)
    return stored !== null
  }
}
