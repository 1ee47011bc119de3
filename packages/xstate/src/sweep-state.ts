/** What the runners of a prefix share about their sweeps: the context of the execution `harel.sweep`. */
import { compareBytes, type DueTimer, type Execution, isKey, type JsonObject, type JsonValue } from '@harel/store-base'
import { RESERVED_KEY } from './snapshot.js'

/** The shortest pause between two sweeps, in seconds; it doubles while there is nothing to do. */
export const SHORTEST = 0.1

/** A part of the queues: from, to, both included. */
export interface Part {
  outbox?: [number, number]
  spawns?: [number, number]
  timers?: [DueTimer, DueTimer]
}

/** A part that a runner is working on. */
export interface Claim extends Part {
  owner: string
  /** Epoch seconds. */
  until: number
}

/** The last that was read of each queue; absent: nothing yet. */
export interface Positions {
  outbox?: number | undefined
  spawns?: number | undefined
  timers?: DueTimer | undefined
}

/** The beginnings of queues in which no row can be read, and until when nobody looks at them again. */
export interface Passed extends Omit<Positions, 'timers'> {
  until: number
}

/** Behind these the current sweep reads on; absent: from the beginning. */
export interface SweepState extends Positions {
  /** The runner that has committed last; while `reading`, it alone reads the queues. */
  owner?: string
  /** Until when, in epoch seconds. */
  reading?: number
  /** When the next sweep may begin, in epoch seconds. */
  nextAt: number
  pause: number
  passed?: Passed
  claims: Claim[]
  /** Executions that are worked on for longer than others would wait, with the time until which they are. */
  busy: { [executionId: string]: number }
}

/**
 * How far the clocks of a fleet may differ, in seconds. What lies further ahead than anybody sets it is of a clock that
 * was wrong, and counts for nothing: else all would wait until that time has come.
 */
const APART = 30

/** Whether a time that was set at most so many seconds ahead has still to come. */
export const isAhead = (time: number, now: number, atMost: number): boolean =>
  time > now && time <= now + atMost + APART

/** What of the stored state can be used: a part that is misshapen counts as absent, for it can be made again. */
export function stateOf({ context }: Execution): SweepState {
  const stored = membersOf(context[RESERVED_KEY])
  const { owner, reading, nextAt, pause, outbox, spawns, timers, passed, claims, busy } = stored
  return {
    ...(typeof owner === 'string' && { owner }),
    ...(isNumber(reading) && { reading }),
    nextAt: isNumber(nextAt) ? nextAt : 0,
    pause: isNumber(pause) && pause > 0 ? pause : SHORTEST,
    ...(isSeq(outbox) && { outbox }),
    ...(isSeq(spawns) && { spawns }),
    ...(isTimer(timers) && { timers }),
    ...passedOf(passed),
    claims: Array.isArray(claims) ? claims.flatMap(claimOf) : [],
    busy: Object.fromEntries(
      Object.entries(membersOf(busy)).filter((entry): entry is [string, number] => isNumber(entry[1])),
    ),
  }
}

function passedOf(stored: Stored): { passed?: Passed } {
  const { until, outbox, spawns } = membersOf(stored)
  if (!isNumber(until)) return {}
  return { passed: { until, ...(isSeq(outbox) && { outbox }), ...(isSeq(spawns) && { spawns }) } }
}

function claimOf(stored: JsonValue): Claim[] {
  const { owner, until, outbox, spawns, timers } = membersOf(stored)
  if (typeof owner !== 'string' || !isNumber(until)) return []
  const part: Part = {
    ...(isPair(outbox, isSeq) && { outbox }),
    ...(isPair(spawns, isSeq) && { spawns }),
    ...(isPair(timers, isTimer) && { timers }),
  }
  return [{ owner, until, ...part }]
}

type Stored = JsonValue | undefined

/** None of what is no object. */
const membersOf = (value: Stored): Partial<JsonObject> =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? value : {}

const isNumber = (value: Stored): value is number => typeof value === 'number'

const isSeq = (value: Stored): value is number => isNumber(value) && Number.isSafeInteger(value) && value >= 0

function isTimer(value: Stored): value is JsonObject & DueTimer {
  const { executionId, path, fireAt } = membersOf(value)
  return isKey(executionId) && isKey(path) && isNumber(fireAt)
}

const isPair = <T extends JsonValue>(value: Stored, isEnd: (end: Stored) => end is T): value is [T, T] =>
  Array.isArray(value) && value.length === 2 && value.every(isEnd)

export function setState(execution: Execution, state: SweepState): void {
  execution.context = { [RESERVED_KEY]: state as unknown as JsonValue }
}

const compareTimers = (a: DueTimer, b: DueTimer): number =>
  a.fireAt - b.fireAt || compareBytes(a.executionId, b.executionId) || compareBytes(a.path, b.path)

/** Whether an entry of a queue lies within a part of it. */
export const holdsSeq = (range: Part['outbox'], seq: number): boolean =>
  range !== undefined && seq >= range[0] && seq <= range[1]

export const holdsTimer = (range: Part['timers'], timer: DueTimer): boolean =>
  range !== undefined && compareTimers(timer, range[0]) >= 0 && compareTimers(timer, range[1]) <= 0
