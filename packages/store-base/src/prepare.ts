import {
  checkArray,
  checkKey,
  checkKeyOrEmpty,
  checkKeyOrNull,
  checkMembers,
  checkObject,
  checkVersion,
  foldTimers,
  readArgument,
} from './arguments.js'
import { encodeJson, encodeState, wireEvent } from './encode.js'
import { InvalidArgument } from './errors.js'
import { toJson } from './json.js'
import { type Numbers, refuseRounded } from './numbers.js'
import type { CommitChanges } from './protocol.js'
import type { Execution, Status, TimerOp } from './records.js'

/** The columns of an execution by which listings filter, and which they show. */
export interface SummaryColumns {
  readonly definitionId: string
  readonly status: Status
  readonly outcome: string | null
  readonly activePath: string | null
  readonly parentId: string | null
  readonly finishedAt: number | null
}

/** A commit as a backend gets it: checked, serialised, plain data that can be sent to another thread. */
export interface PreparedCommit extends SummaryColumns {
  readonly id: string
  /** The version that must be stored now; 0: none. */
  readonly expected: number
  /** The version of the payload: `expected + 1`. */
  readonly version: number
  /** Random; stands in the payload, so that a commit whose reply was lost can be recognised. */
  readonly token: string
  /** The payload of the execution. */
  readonly data: string
  readonly emits: readonly PreparedEmit[]
  readonly processedEventId: string | undefined
  /** At most one per path. */
  readonly timers: readonly TimerOp[]
  readonly spawns: readonly PreparedSpawn[]
  /** The text of a trace step. */
  readonly trace: string | undefined
}

export interface PreparedEmit {
  readonly targetId: string | null
  readonly eventId: string
  /** The text of the event. */
  readonly event: string
}

export interface PreparedSpawn {
  readonly childId: string
  readonly rootPath: string
  /** The text of the context. */
  readonly context: string
}

/** The length of all texts of JSON in a commit: their bytes or less, a third of them at least. */
export function textLength({ data, emits, spawns, trace = '' }: PreparedCommit): number {
  let length = data.length + trace.length
  for (const { event } of emits) length += event.length
  for (const { context } of spawns) length += context.length
  return length
}

const CHANGES = ['emits', 'processedEventId', 'timers', 'spawns', 'trace', 'step'] as const
const NOTHING: readonly never[] = []

/**
 * Checks and serialises a commit. Afterwards it depends on the caller's objects no more.
 *
 * @throws InvalidArgument, NotSerializable
 */
export function prepareCommit(
  execution: Execution,
  changes: CommitChanges = {},
  numbers: Numbers = 'exact',
): PreparedCommit {
  return {
    ...readArgument('execution', execution, (given) => prepareState(given, numbers)),
    ...readArgument('changes', changes, (given) => prepareChanges(given, numbers)),
  }
}

function prepareState(execution: Execution, numbers: Numbers) {
  checkObject('execution', execution)
  const expected = checkVersion('execution.version', execution.version)
  // The new version is set after the write, when it is too late to find out that it cannot be.
  if (!Reflect.set(execution, 'version', expected)) {
    throw new InvalidArgument('execution', execution, 'an object whose version can be set (not a frozen one)')
  }
  const version = expected + 1
  const token = crypto.randomUUID()
  const { wire, data } = encodeState(execution, version, token, numbers)
  return {
    id: wire.id,
    definitionId: wire.definition_id,
    status: wire.status,
    outcome: wire.outcome,
    activePath: wire.active_path,
    parentId: wire.parent_id,
    finishedAt: wire.finished_at,
    expected,
    version,
    token,
    data,
  }
}

function prepareChanges(changes: CommitChanges, numbers: Numbers) {
  const { emits, processedEventId, timers, spawns, trace } = checkMembers('changes', changes, CHANGES)
  return {
    emits: emits === undefined ? NOTHING : prepareEmits(emits, numbers),
    processedEventId:
      processedEventId === undefined ? undefined : checkKey('changes.processedEventId', processedEventId),
    timers: timers === undefined ? NOTHING : foldTimers('changes.timers', timers),
    spawns: spawns === undefined ? NOTHING : prepareSpawns(spawns, numbers),
    trace: trace === undefined ? undefined : prepareTrace('changes.trace', trace, numbers),
  }
}

const prepareEmits = (emits: unknown, numbers: Numbers): PreparedEmit[] =>
  checkArray('changes.emits', emits).map((emit, index) => {
    const where = `changes.emits[${index}]`
    const { targetId, event } = checkObject(where, emit)
    const target = checkKeyOrNull(`${where}.targetId`, targetId)
    const wire = wireEvent(`${where}.event`, event, 0, numbers)
    return { targetId: target, event: toJson(wire, `${where}.event`), eventId: wire.id }
  })

const prepareSpawns = (spawns: unknown, numbers: Numbers): PreparedSpawn[] =>
  checkArray('changes.spawns', spawns).map((spawn, index) => {
    const where = `changes.spawns[${index}]`
    const { childId, rootPath, context } = checkObject(where, spawn)
    return {
      childId: checkKey(`${where}.childId`, childId),
      rootPath: checkKeyOrEmpty(`${where}.rootPath`, rootPath),
      context: encodeJson(checkObject(`${where}.context`, context), `${where}.context`, numbers),
    }
  })

/**
 * The text of a trace step, without an `index` of its own: the store counts. @throws InvalidArgument, NotSerializable
 */
export function prepareTrace(argument: string, step: unknown, numbers: Numbers): string {
  const given = checkObject(argument, step)
  if (!('index' in given)) return encodeJson(given, argument, numbers)
  if (numbers === 'exact') refuseRounded(argument, given)
  const { index: _counted, ...rest } = given
  return encodeJson(rest, argument, numbers)
}
