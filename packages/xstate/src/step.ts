/** One event of a machine, in memory: transition, actions, and what is to be committed. */
import {
  type Execution,
  encodeJson,
  type HarelEvent,
  type JsonObject,
  type JsonValue,
  newEvent,
  type Step,
  StoreError,
  type TimerOp,
} from '@harel/store-base'
import type { AnyActorRef, AnyActorScope, AnyEventObject, AnyMachineSnapshot, StateValue } from 'xstate'
import { type Action, causeOf, collect, Thrown } from './actions.js'
import { ActionFailed, MigrationFailed, RunnerError } from './errors.js'
import { type Draft, type Host, newDraft } from './host.js'
import type { Definition } from './machines.js'
import { checkMigrated } from './migrated.js'
import { decode, encode } from './references.js'
import { CONTINUE, INIT } from './reserved.js'
import type { Migration, RunnerOptions } from './settings.js'
import {
  activePath,
  childOf,
  type PersistedMachine,
  RESERVED_KEY,
  readPersisted,
  restore,
  unstarted,
  writePersisted,
} from './snapshot.js'

/** The machine of an execution and what is stored of it, brought to the newest version if need be. */
export interface Found {
  readonly definition: Definition
  readonly stored: PersistedMachine
  /** After a migration: what brings the queue of timers in line with those that are stored now. */
  readonly moved?: readonly TimerOp[]
}

/** @throws UnknownMachine, MigrationFailed, and InvalidArgument for what `migrate` must not return */
export function findMachine(host: Host, execution: Execution): Found {
  const found = versionOf(host, execution)
  const { suspendedBy, ...stored } = found.stored
  // What this package has suspended, or what has failed, and what it sets going again itself, has neither.
  if ((suspendedBy === undefined && execution.error === null) || !isRunning(execution.status)) return found
  // A command from outside of this package has set it going again, and knows nothing of timers.
  const armed = timersMoved({}, stored.timers)
  return { ...found, stored, moved: [...(found.moved ?? []), ...armed] }
}

function versionOf(host: Host, execution: Execution): Found {
  const stored = readPersisted(execution)
  const { definitionId } = execution
  const exact = host.machines.find(definitionId, stored.version)
  if (exact !== undefined) return { definition: exact, stored }
  const { migrate } = host.settings
  if (migrate !== undefined && host.machines.knows(definitionId)) {
    const newest = host.machines.newest(definitionId)
    const migration = { executionId: execution.id, definitionId, from: stored.version, to: newest.version }
    const moved = migrated(migrate, stored, migration)
    if (moved !== undefined) {
      const next = { ...moved, version: newest.version }
      return { definition: newest, stored: next, moved: timersMoved(stored.timers, next.timers) }
    }
  }
  return { definition: host.machines.get(definitionId, stored.version), stored }
}

type Migrate = NonNullable<RunnerOptions['migrate']>

function migrated(migrate: Migrate, stored: PersistedMachine, migration: Migration): PersistedMachine | undefined {
  let moved: PersistedMachine | undefined
  try {
    moved = migrate(structuredClone(stored), migration)
  } catch (error) {
    throw new MigrationFailed(migration.executionId, errorText(error), error)
  }
  if (moved !== undefined) checkMigrated(moved, stored)
  return moved
}

type Timers = PersistedMachine['timers']

const timersMoved = (before: Timers, after: Timers): TimerOp[] => [
  ...Object.keys(before)
    .filter((path) => after[path] === undefined)
    .map((path): TimerOp => ({ action: 'cancel', path })),
  ...Object.entries(after)
    .filter(([path, { at }]) => before[path]?.at !== at)
    .map(([path, { at }]): TimerOp => ({ action: 'schedule', path, fireAt: at })),
]

/** What the step itself has decided about a timer goes before. */
export function moveTimers({ moved = [] }: Found, draft: Draft): void {
  for (const op of moved) if (!draft.timers.has(op.path)) draft.timers.set(op.path, op)
}

interface Cause {
  readonly event: HarelEvent
  readonly command?: NonNullable<Step['command']>
}

/**
 * Takes the execution one event further. A transition or an action that throws makes it FAILED: in the state before the
 * event, which waits in `deferred` for `redrive`; or, by option, is raised as `ActionFailed`.
 */
export async function advance(host: Host, execution: Execution, found: Found, cause: Cause): Promise<Draft> {
  const from = { fromStatus: execution.status, fromPath: execution.activePath }
  const { event } = cause
  const stored = withSender(found.stored, event)
  let draft: Draft
  let names: string[] = []
  try {
    const taken = transition(host, execution, { ...found, stored }, event)
    if (taken.snapshot.status === 'error') throw taken.snapshot.error
    const { definition } = found
    const collected = await collect({ host, execution, definition, stored, ...taken, cause: causeOf(event) })
    ;({ draft, names } = collected)
    settle(execution, collected.next, taken.snapshot, draft)
  } catch (caught) {
    const isRefused = caught instanceof RunnerError || caught instanceof StoreError
    const error = caught instanceof Thrown ? caught.error : caught
    if (isRefused || host.signal.aborted) throw error
    if (host.settings.onActionError === 'raise') throw new ActionFailed(execution.id, errorText(error), error)
    draft = fail(execution, found.stored, event, error)
  }
  moveTimers(found, draft)
  execution.processedEvents += 1
  describe(host, execution, draft, { ...from, cause, names })
  return draft
}

/** A child whose last event this is has ended, and needs no stopping. */
function withSender(stored: PersistedMachine, { kind, data }: HarelEvent): PersistedMachine {
  if (!/^xstate\.(done|error)\.actor\./.test(kind)) return stored
  const [actorId, child] = childOf(stored, data.executionId) ?? []
  if (actorId === undefined || child === undefined) return stored
  return { ...stored, children: { ...stored.children, [actorId]: { ...child, finished: true } } }
}

interface Transitioned {
  readonly snapshot: AnyMachineSnapshot
  readonly actions: Action[]
}

/**
 * What XState's `initialTransition` and `transition` do, with an actor scope of our own: theirs knows neither a parent nor
 * children, so that `sendParent` and `sendTo` would throw.
 */
function transition(host: Host, execution: Execution, { definition, stored }: Found, event: HarelEvent): Transitioned {
  const actions: Action[] = []
  const { machine } = definition
  const scopeOf = (self: AnyActorRef): AnyActorScope => ({
    self,
    id: self.id,
    sessionId: self.sessionId,
    system: self.system,
    logger: host.settings.logger,
    defer: () => {},
    emit: () => {},
    stopChild: () => {},
    actionExecutor: (action: Action) => {
      actions.push(action)
      // It makes room in the system for the next actor of the same systemId; with `stopChild` above it does no more.
      if (action.type === 'xstate.stopChild') action.exec?.(action.info, action.params)
    },
  })
  if (event.kind === INIT) {
    const { self, refer } = unstarted(execution)
    const { input } = decode(event.data, refer) as { input?: unknown }
    return { snapshot: machine.getInitialSnapshot(scopeOf(self), input), actions }
  }
  const { self, snapshot, refer } = restore(execution, stored, definition)
  const data = decode(event.data, refer) as object
  const next: unknown = machine.transition(snapshot, { ...data, type: event.kind } as AnyEventObject, scopeOf(self))
  return { snapshot: next as AnyMachineSnapshot, actions }
}

/** Puts the new state into the record. */
function settle(execution: Execution, next: PersistedMachine, snapshot: AnyMachineSnapshot, draft: Draft): void {
  writePersisted(execution, next)
  execution.error = null
  execution.activePath = activePath(next.value ?? {})
  if (snapshot.status === 'active') {
    if (execution.status === 'PENDING') execution.status = 'RUNNING'
    if (next.sync) tellParent(execution, next, draft, 'snapshot', { snapshot: shown(next, snapshot) })
    return
  }
  execution.status = execution.status === 'CANCELLING' ? 'CANCELLED' : 'DONE'
  execution.outcome = execution.activePath
  tellParent(execution, next, draft, 'done.actor', next.output === undefined ? {} : { output: next.output })
}

const shown = ({ value, context }: PersistedMachine, { status }: AnyMachineSnapshot): JsonValue => ({
  status,
  value: value as JsonValue,
  context,
})

/** In XState's words: `xstate.done.actor.<id>` and the like. `executionId` says which child of that id it was. */
export function tellParent(
  { id, parentId }: Execution,
  { actorId }: { actorId?: string },
  draft: Draft,
  what: 'done.actor' | 'error.actor' | 'snapshot',
  data: JsonObject,
): void {
  if (parentId === null || actorId === undefined) return
  draft.emits.push({ targetId: parentId, event: eventOfChild(id, actorId, what, data) })
}

/** What a parent is told of its child. */
export const eventOfChild = (
  id: string,
  actorId: string,
  what: 'done.actor' | 'error.actor' | 'snapshot',
  data: JsonObject,
): HarelEvent => newEvent({ kind: `xstate.${what}.${actorId}`, data: { ...data, actorId, executionId: id } })

/** The most characters of an error that are kept: what tells of a failure must fit into any record. */
const LONGEST_TEXT = 4000

/** Whatever it is, as a text that every store takes. */
function textOf(read: () => unknown): string {
  let text: string
  try {
    text = String(read())
  } catch {
    return 'a value that has no text'
  }
  return (text.length > LONGEST_TEXT ? `${text.slice(0, LONGEST_TEXT)}…` : text).toWellFormed()
}

/** What a thrown value is called in a record. */
export const errorText = (error: unknown): string =>
  error instanceof Error ? `${textOf(() => error.name)}: ${textOf(() => error.message)}` : textOf(() => error)

/** What every record has room for of a thrown value that is JSON. */
function plainData(value: unknown): JsonValue | undefined {
  try {
    const encoded = encode(value, 'error')
    return encodeJson(encoded, 'error').length <= LONGEST_TEXT ? (encoded as JsonValue) : undefined
  } catch {
    return undefined
  }
}

function codeOf(error: Error & { code?: unknown }): unknown {
  try {
    const { code } = error
    return typeof code === 'string' ? textOf(() => code) : code
  } catch {
    return undefined
  }
}

/** A thrown value as an event carries it: as it is, or as an error where it is one, is no JSON, or is too long. */
export function errorData(error: unknown): JsonValue {
  const isError = error instanceof Error
  const plain = isError || error === undefined ? undefined : plainData(error)
  if (plain !== undefined) return plain
  const known: Error = isError ? error : new Error(textOf(() => error))
  const kept = { name: textOf(() => known.name), code: codeOf(known) }
  return encode(Object.assign(new Error(textOf(() => known.message)), kept), 'error') as JsonValue
}

function fail(execution: Execution, stored: PersistedMachine, event: HarelEvent, error: unknown): Draft {
  const draft = newDraft()
  const cancelling = execution.status === 'CANCELLING'
  execution.status = 'FAILED'
  execution.error = errorText(error)
  execution.deferred = [event, ...execution.deferred]
  disarm(stored, draft)
  writePersisted(execution, cancelling ? { ...stored, cancelling } : stored)
  tellParent(execution, stored, draft, 'error.actor', { error: errorData(error) })
  return draft
}

/** Takes the timers out of the queue, where they would be found due in each sweep; the record keeps them. */
export function disarm({ timers }: PersistedMachine, draft: Draft): void {
  for (const path of Object.keys(timers)) draft.timers.set(path, { action: 'cancel', path })
}

/** Puts the timers that the record has kept back into the queue; late ones are due at once. */
export function rearm({ timers }: PersistedMachine, draft: Draft): void {
  for (const [path, { at }] of Object.entries(timers)) {
    draft.timers.set(path, { action: 'schedule', path, fireAt: at })
  }
}

/** Has the events that were kept handled, in their order: each in a step of its own, which then asks for the next one. */
export function goOn(execution: Execution, draft: Draft): void {
  if (isRunning(execution.status) && execution.deferred.length > 0) askToGoOn(execution, draft)
}

/** Has it look, as soon as it is running, whether it has kept events. */
export function askToGoOn({ id }: Execution, draft: Draft): void {
  draft.emits.push({ targetId: id, event: newEvent({ kind: CONTINUE }) })
}

/** Whether it handles events now; otherwise they are kept. */
export const isRunning = (status: Execution['status']): boolean => status === 'RUNNING' || status === 'CANCELLING'

interface Described {
  readonly fromStatus: Execution['status']
  readonly fromPath: string | null
  readonly cause: Cause
  readonly names: string[]
}

/** The paths of the active states that have none inside. */
function leavesOf(execution: Execution): string[] {
  const below = (value: StateValue | undefined, path: string): string[] => {
    if (typeof value === 'string') return [path + value]
    return Object.entries(value ?? {}).flatMap(([key, inner]) => below(inner, `${path}${key}.`))
  }
  return below(readPersisted(execution).value, '')
}

/** For observers, and for the trace if there is one. */
function describe(host: Host, execution: Execution, draft: Draft, { cause, names, ...from }: Described): void {
  const { event, command } = cause
  const isStart = event.kind === INIT
  draft.step = {
    cause: command !== undefined ? 'control' : isStart ? 'start' : 'event',
    ...from,
    toStatus: execution.status,
    toPath: execution.activePath,
    eventKind: event.kind,
    eventId: event.id,
    actions: names,
    ...(command !== undefined && { command }),
  }
  if (!host.settings.trace) return
  draft.trace = {
    event_kind: event.kind,
    event_id: isStart ? null : event.id,
    from_path: from.fromPath,
    to_path: execution.activePath,
    from_status: from.fromStatus,
    to_status: execution.status,
    active: leavesOf(execution),
    actions: names,
    worker: host.settings.worker,
    context_out: (execution.context[RESERVED_KEY] as JsonObject | undefined)?.context ?? {},
    timestamp: host.settings.clock(),
  }
}
