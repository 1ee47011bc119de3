/** What XState wants done after a transition, in the terms of a commit. */
import {
  checkObject,
  type Execution,
  encodeJson,
  type HarelEvent,
  InvalidArgument,
  type JsonObject,
  type JsonValue,
  newEvent,
} from '@harel/store-base'
import type { Actor, AnyActorLogic, AnyActorRef, AnyActorScope, AnyEventObject, AnyMachineSnapshot } from 'xstate'
import { runEffect, type Step } from './effect.js'
import { ActorNotRestorable } from './errors.js'
import { isFromOutside, OUTSIDE } from './events.js'
import { type Draft, type Host, newDraft } from './host.js'
import { actorLogic, type Definition, isMachine } from './machines.js'
import { checkChildId, checkName, count, unnamed } from './names.js'
import { bind, encodeValid, executionIdOf, splitEvent } from './references.js'
import { INIT, INVOKED, STOP, type StartData } from './reserved.js'
import { keptChildren, type PersistedMachine, persist, RESERVED_KEY } from './snapshot.js'

/** As the pure functions of XState hand it back; its own types know only a part of it. */
export type Action = Parameters<AnyActorScope['actionExecutor']>[0]

interface Sending {
  to?: AnyActorRef | string
  event: AnyEventObject
  id?: string
  delay?: number
}

/** Carries what an action has thrown, which may be an error of a store or of a runner that it has used itself. */
export class Thrown {
  readonly error: unknown

  constructor(error: unknown) {
    this.error = error
  }
}

/** The outcome of a transition that is to be committed. */
export interface Taken {
  readonly host: Host
  readonly definition: Definition
  /** Already a copy of its own. */
  readonly execution: Execution
  /** As it was before. */
  readonly stored: PersistedMachine
  readonly snapshot: AnyMachineSnapshot
  readonly actions: readonly Action[]
  /** As `causeOf` names it. */
  readonly cause: string
}

/** The stored form after the transition, and all that goes into the commit with it. */
export interface Collected {
  readonly next: PersistedMachine
  readonly draft: Draft
  /** The names of the actions, in order. */
  readonly names: string[]
}

/**
 * Runs the machine's own actions, in their order, and notes everything else for the commit.
 *
 * @throws Thrown for what an action throws; NotSerializable, ActorNotRestorable before any action has run
 */
export async function collect(taken: Taken): Promise<Collected> {
  const { host, execution, stored, snapshot, actions } = taken
  const draft = newDraft()
  const started: PersistedMachine = {
    ...stored,
    version: taken.definition.version,
    children: { ...stored.children },
    timers: { ...stored.timers },
  }
  // First, because the context may refer to them.
  const gone = startChildren(taken, started, draft)
  const next = { ...started, ...persist(snapshot) }
  if (actions.some(isCustom)) checkAll(actions, next)
  const names: string[] = []
  for (const action of actions) {
    if (isCustom(action)) {
      const key = [execution.id, taken.cause, names.length, keyPart(action.type)].join(':')
      names.push(action.type)
      await runAction(taken, next, draft, action, key)
    } else note(taken, next, draft, action)
  }
  next.children = keptChildren(snapshot, next.children, gone)
  if (snapshot.status !== 'active') endTimers(next, draft)
  host.signal.throwIfAborted()
  return { next, draft, names }
}

/** Before any action has run: whether what is to be stored can be. @throws NotSerializable */
function checkAll(actions: readonly Action[], next: PersistedMachine): void {
  encodeJson(next.context, 'context')
  for (const { type, params } of actions as readonly { type: string; params: unknown }[]) {
    if (type !== 'xstate.sendTo' && type !== 'xstate.raise') continue
    const { event } = params as Sending
    dataOf(event, `event ${event.type}`)
  }
}

const BUILT_IN = new Set(
  ['raise', 'sendTo', 'cancel', 'spawnChild', 'stopChild', 'emit', 'log'].map((name) => `xstate.${name}`),
)

const isCustom = ({ type }: Action): boolean => !BUILT_IN.has(type)

/** A part of a key or an id that has no `:` of its own, so that no two are alike. */
const keyPart = (text: string): string => text.replace(/[%:]/g, encodeURIComponent)

/** What has led to an action, as its key names it: the id of an event, or `start`. */
export const causeOf = ({ kind, id }: HarelEvent): string =>
  kind === INIT ? 'start' : id === 'start' ? '%73tart' : keyPart(id)

async function runAction(
  { host, execution }: Taken,
  next: PersistedMachine,
  draft: Draft,
  { type, exec, info, params }: Action,
  idempotencyKey: string,
): Promise<void> {
  // XState, too, passes over actions that have a name and no implementation.
  if (exec === undefined) return
  const effect = { executionId: execution.id, idempotencyKey, attempt: 1, signal: host.signal }
  const step: Step = { over: false, send: (ref, event) => send(execution, next, draft, ref, event) }
  const { lease, onWarning } = host.settings
  const text = `the action ${type} of ${execution.id} has been running for ${lease} s; what comes for it waits`
  const late = setTimeout(() => onWarning(text), lease * 1000)
  try {
    await runEffect(effect, step, () => exec(info, params))
  } catch (error) {
    throw new Thrown(error)
  } finally {
    clearTimeout(late)
    step.over = true
  }
}

function note(taken: Taken, next: PersistedMachine, draft: Draft, action: Action): void {
  const { type } = action
  const params: unknown = action.params
  const { host, execution } = taken
  switch (type) {
    case 'xstate.raise': {
      const { event, id, delay } = params as Sending
      if (typeof delay === 'number') delayed(host, execution, next, draft, { event, delay, ...(id && { id }) })
      break
    }
    case 'xstate.sendTo': {
      const sending = params as Sending
      if (typeof sending.delay === 'number') delayed(host, execution, next, draft, sending)
      else send(execution, next, draft, sending.to, sending.event)
      break
    }
    case 'xstate.cancel': {
      const { sendId } = params as { sendId: string }
      delete next.timers[sendId]
      draft.timers.set(sendId, { action: 'cancel', path: sendId })
      break
    }
    case 'xstate.stopChild': {
      const id = params === undefined ? undefined : executionIdOf(params as AnyActorRef)
      if (id !== undefined && isAlive(taken.stored, id)) stopChild(draft, execution.id, id)
      break
    }
    case 'xstate.emit':
      draft.emitted.push(checkEmitted(execution, (params as { event: unknown }).event))
      break
    case 'xstate.log':
      draft.logs.push(() => action.exec?.(action.info, undefined))
      break
  }
}

function checkEmitted({ id }: Execution, event: unknown): AnyEventObject {
  const { type } = checkObject(`the event that ${JSON.stringify(id)} emits`, event)
  if (typeof type === 'string') return event as AnyEventObject
  throw new InvalidArgument(`the type of the event that ${JSON.stringify(id)} emits`, type, 'a string')
}

export function stopChild(draft: Draft, parent: string, id: string): void {
  draft.emits.push({ targetId: id, event: newEvent({ kind: STOP, data: { parent } }) })
}

const isAlive = ({ children }: PersistedMachine, id: string): boolean =>
  Object.values(children).some((child) => child.id === id && child.finished !== true)

function dataOf(event: AnyEventObject, path: string): JsonObject {
  return encodeValid(splitEvent(event, path).data, path) as JsonObject
}

function send(
  execution: Execution,
  next: PersistedMachine,
  draft: Draft,
  to: AnyActorRef | string | undefined,
  event: AnyEventObject,
): void {
  const { targetId, kind, data } = addressed(execution, next, to, event)
  draft.emits.push({ targetId, event: newEvent({ kind, data }) })
}

function addressed(
  execution: Execution,
  next: PersistedMachine,
  to: AnyActorRef | string | undefined,
  event: AnyEventObject,
) {
  const targetId = typeof to === 'object' ? executionIdOf(to) : undefined
  if (targetId === undefined) {
    throw new ActorNotRestorable(
      execution.id,
      typeof to === 'object' ? to.id : String(to),
      'is no execution to send to',
    )
  }
  // How XState writes the escalation of an error.
  if (event.type === 'xstate.error') {
    const actorId = next.actorId ?? execution.id
    const data = dataOf({ type: '', error: (event as { data?: unknown }).data, actorId }, `event ${event.type}`)
    return { targetId, kind: `xstate.error.actor.${actorId}`, data }
  }
  // A machine that passes on what it was sent must not pass on commands, or results of actors that have none.
  if (!isFromOutside(event.type)) {
    throw new InvalidArgument(
      `the type of what is sent to ${JSON.stringify(targetId)}`,
      event.type,
      `a string ${OUTSIDE}`,
    )
  }
  return { targetId, kind: event.type, data: dataOf(event, `event ${event.type}`) }
}

function delayed(
  host: Host,
  execution: Execution,
  next: PersistedMachine,
  draft: Draft,
  { to, event, id, delay = 0 }: Sending,
): void {
  const path = id === undefined ? unnamed(execution, 'timer') : checkName(execution, 'timer', id)
  const at = host.settings.clock() + delay / 1000
  const { targetId, kind, data } =
    to === undefined
      ? { targetId: execution.id, kind: event.type, data: dataOf(event, `event ${event.type}`) }
      : addressed(execution, next, to, event)
  next.timers[path] = { at, type: kind, data, ...(targetId !== execution.id && { to: targetId }) }
  draft.timers.set(path, { action: 'schedule', path, fireAt: at })
}

/** Nothing of an execution that has come to its end may fire. */
function endTimers(next: PersistedMachine, draft: Draft): void {
  for (const path of Object.keys(next.timers)) draft.timers.set(path, { action: 'cancel', path })
  next.timers = {}
}

type Spawned = Actor<AnyActorLogic>

/**
 * Gives each child that the transition has started its execution: those that are in the snapshot now and were not, and
 * those that an action has started. (XState reports no action for a child spawned in `assign`.)
 *
 * @returns the children that were stopped
 */
function startChildren(taken: Taken, next: PersistedMachine, draft: Draft): Set<AnyActorRef> {
  const { snapshot, actions } = taken
  const stopped = new Set<AnyActorRef>()
  const started = new Set<Spawned>()
  for (const { type, params } of actions as readonly { type: string; params: unknown }[]) {
    if (type === 'xstate.stopChild' && params !== undefined) stopped.add(params as AnyActorRef)
    if (type === 'xstate.spawnChild') {
      const { actorRef, src } = params as { actorRef?: Spawned; src: unknown }
      if (actorRef === undefined) {
        throw new ActorNotRestorable(taken.execution.id, String(src), 'is not among the actors of its machine')
      }
      started.add(actorRef)
    }
  }
  for (const ref of Object.values(snapshot.children) as (Spawned | undefined)[]) {
    if (ref !== undefined && executionIdOf(ref) === undefined) started.add(ref)
  }
  // Started and stopped in one step: it has never been.
  for (const ref of started) if (!stopped.has(ref)) startChild(taken, next, draft, ref)
  return stopped
}

function startChild({ host, execution, definition }: Taken, next: PersistedMachine, draft: Draft, ref: Spawned): void {
  // A child without an id gets one from XState that the next process would give to another.
  ref.id = /^x:\d+$/.test(ref.id) ? unnamed(execution, 'actor') : checkName(execution, 'actor', ref.id)
  const n = count(execution, ref.id)
  const suffix = n === 1 && !ref.id.includes('#') ? '' : `#${n}`
  const childId = checkChildId(execution, ref.id, `${execution.id}:${keyPart(ref.id)}${suffix}`)
  const { src, definitionId, version, machine } = sourceOf(host, execution, definition, ref)
  const { input, syncSnapshot = false } = ref.options as { input?: unknown; syncSnapshot?: boolean }
  const start: StartData = {
    definitionId,
    version,
    ...(machine !== undefined && { machine }),
    src,
    actorId: ref.id,
    sync: syncSnapshot,
    at: host.settings.clock(),
    ...(input !== undefined && { input: encodeValid(input, 'input') }),
  }
  bind(ref, childId)
  next.children[ref.id] = {
    id: childId,
    src,
    ...(ref.systemId !== undefined && { systemId: ref.systemId }),
    ...(syncSnapshot && { sync: true }),
  }
  draft.spawns.push({ childId, rootPath: '', context: { [RESERVED_KEY]: start as unknown as JsonValue } })
}

/** `{ ...machine, transition }` and the like. */
const wrapsMachine = (logic: unknown): boolean =>
  typeof logic === 'object' && logic !== null && 'implementations' in logic

/** By which names the logic of a child can be found again, by any process. */
function sourceOf(host: Host, execution: Execution, { id, version, machine }: Definition, ref: Spawned) {
  const src: unknown = ref.src
  const logic: unknown = typeof src === 'string' ? actorLogic(machine, src) : src
  if (isMachine(logic)) {
    const known = host.machines.all.find((each) => each.machine === logic)
    if (known !== undefined) {
      return { src: typeof src === 'string' ? src : known.id, definitionId: known.id, version: known.version }
    }
    throw new ActorNotRestorable(execution.id, ref.id, 'its machine was not given to the runner, and has no name')
  }
  if (wrapsMachine(logic)) {
    throw new ActorNotRestorable(execution.id, ref.id, 'its logic has a machine inside, which cannot be stored with it')
  }
  if (typeof src === 'string' && logic !== undefined) return { src, definitionId: INVOKED, version, machine: id }
  throw new ActorNotRestorable(
    execution.id,
    ref.id,
    `its logic has no name; put it into the actors of setup() of ${id} and start it by its key`,
  )
}
