import { pythonFloat } from './python-float.js'

/** A value that JSON can carry. Numbers are doubles; see `numbers` in the store options for what that loses. */
export type JsonValue = null | boolean | number | string | JsonValue[] | JsonObject

/** An object that JSON can carry. */
export type JsonObject = { [key: string]: JsonValue }

/** The states of an execution. `DONE` and `CANCELLED` are finished; `FAILED` is a dead letter that can be redriven. */
export const STATUSES = ['PENDING', 'RUNNING', 'DONE', 'CANCELLED', 'SUSPENDED', 'CANCELLING', 'FAILED'] as const

export type Status = (typeof STATUSES)[number]

/** An event: what an execution handles and what it sends to others. Its `id` is what deduplication goes by. */
export interface HarelEvent {
  id: string
  kind: string
  /** ISO 8601 text, kept as `YYYY-MM-DDTHH:MM:SS[.ffffff][Z|±HH:MM]`, or null. */
  createdTime: string | null
  /** As `createdTime`. */
  receivedTime: string | null
  data: JsonObject
}

/** What a parent remembers of a child execution. */
export interface ChildState {
  rootPath: string
  finished: boolean
  outcome: string | null
  result: JsonObject
  submachine: boolean
  key: string
}

/**
 * A running state machine: the versioned record that a store keeps.
 *
 * `version` is 0 for one that was never stored and is raised by the store after each successful commit. All times
 * are epoch seconds.
 */
export interface Execution {
  id: string
  definitionId: string
  definitionFqn: string | null
  rootPath: string
  status: Status
  outcome: string | null
  error: string | null
  activePath: string | null
  history: JsonObject
  context: JsonObject
  processedEvents: number
  version: number
  /** 0 (default) to 4. */
  priority: number
  parentId: string | null
  childId: string | null
  deferred: HarelEvent[]
  children: { [childId: string]: ChildState }
  invokeSeq: { [path: string]: number }
  createdAt: number | null
  updatedAt: number | null
  finishedAt: number | null
  expiresAt: number | null
}

/** An event on its way to `targetId`; null addresses nobody. */
export interface Emit {
  targetId: string | null
  event: HarelEvent
}

/** A child execution to be created. `rootPath` may be empty. */
export interface Spawn {
  childId: string
  rootPath: string
  context: JsonObject
}

/** Arms the timer of `path` (replacing an armed one) or cancels it. `fireAt` is in epoch seconds. */
export type TimerOp = { action: 'schedule'; path: string; fireAt: number } | { action: 'cancel'; path: string }

/** A free-form record of one step. `readTrace` adds `index`, which counts from 0 per execution. */
export type TraceStep = JsonObject

/** An undelivered event. `seq` is unique in the outbox of a prefix. */
export interface OutboxEntry {
  seq: number
  targetId: string | null
  event: HarelEvent
}

/** A child execution that is still to be created. `seq` is unique among the spawns of a prefix. */
export interface SpawnEntry {
  seq: number
  parentId: string
  childId: string
  rootPath: string
  context: JsonObject
}

/** A timer whose time has come. `fireAt` is in epoch seconds. */
export interface DueTimer {
  executionId: string
  path: string
  fireAt: number
}

/** One version of a machine's definition; `publishedAt` is in epoch seconds. */
export interface DefinitionRecord {
  id: string
  version: string
  definition: JsonValue
  publishedAt?: number
}

/** The part of an execution that a listing shows. */
export interface ExecutionSummary {
  id: string
  definitionId: string
  status: Status
  outcome: string | null
  activePath: string | null
  version: number
  parentId: string | null
  finishedAt: number | null
}

/** Describes a commit to an observer; never stored. */
export interface Step {
  cause: 'create' | 'start' | 'event' | 'control'
  fromStatus: Status
  toStatus: Status
  fromPath?: string | null
  toPath?: string | null
  eventKind?: string | null
  eventId?: string | null
  actions?: readonly string[]
  command?: 'cancel' | 'terminate' | 'suspend' | 'resume' | 'redrive' | null
}

/** A fresh random id: 32 lower-case hexadecimal digits. */
export const newId = (): string => crypto.randomUUID().replaceAll('-', '')

/** An execution that was never stored: the given fields, defaults for the rest, a random id when none is given. */
export function newExecution(fields: { definitionId: string } & Partial<Execution>): Execution {
  return {
    id: newId(),
    definitionFqn: null,
    rootPath: '',
    status: 'PENDING',
    outcome: null,
    error: null,
    activePath: null,
    history: {},
    context: {},
    processedEvents: 0,
    version: 0,
    priority: 0,
    parentId: null,
    childId: null,
    deferred: [],
    children: {},
    invokeSeq: {},
    createdAt: null,
    updatedAt: null,
    finishedAt: null,
    expiresAt: null,
    ...fields,
  }
}

/** An event: the given fields, defaults for the rest, a random id when none is given. */
export function newEvent(fields: { kind: string } & Partial<HarelEvent>): HarelEvent {
  return { id: newId(), createdTime: null, receivedTime: null, data: {}, ...fields }
}

/** Whether an execution of this status has come to its end (`FAILED` has not: it can be redriven). */
export const isFinished = (status: Status): boolean => status === 'DONE' || status === 'CANCELLED'

/**
 * Sets the bookkeeping times as every writer does before a commit: `createdAt` once, `updatedAt` always,
 * `finishedAt` exactly while the execution is finished. `now` is in epoch seconds. A store never does this itself.
 */
export function stamp(execution: Execution, now: number): void {
  execution.createdAt ??= now
  execution.updatedAt = now
  execution.finishedAt = isFinished(execution.status) ? (execution.finishedAt ?? now) : null
}

/** The moment in epoch seconds, the unit of every time in the protocol. */
export const epochSeconds = (date: Date): number => date.getTime() / 1000

/** The moment as a `Date`; fractions of a millisecond are lost. */
export const toDate = (seconds: number): Date => new Date(seconds * 1000)

/**
 * The id of the event that a fired timer delivers. Everybody who sweeps one timer must arrive at the same text, for
 * it is what deduplicates the event, so `fireAt` is written as Python writes a float.
 */
export const timeoutEventId = (executionId: string, path: string, fireAt: number): string =>
  `timeout:${executionId}:${path}:${pythonFloat(fireAt)}`
