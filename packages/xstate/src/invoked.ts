/**
 * What machines invoke or spawn that is no machine (promises, callbacks, observables, reducers), as it is stored.
 *
 * Each is an execution of its own (definition `harel.invoked`), because that is the one thing that every store keeps,
 * fences and finds again: its version keeps two processes apart, its one timer is the lease of whoever runs it, and its
 * last commit, with the result as an event for the machine, is made once.
 */
import { type Execution, type HarelEvent, type JsonObject, type JsonValue, newEvent } from '@harel/store-base'
import { type AnyActorLogic, type AnyEventObject, createActor, type Snapshot } from 'xstate'
import { UnknownMachine } from './errors.js'
import type { Handled } from './handle.js'
import { type Draft, type Host, newDraft } from './host.js'
import { actorLogic } from './machines.js'
import { decode, encode, encodeValid, reference } from './references.js'
import { LEASE_PATH, resultId, STOP, type StartData } from './reserved.js'
import { RESERVED_KEY } from './snapshot.js'
import { errorData, tellParent } from './step.js'
import type { Decision } from './update.js'

export interface PersistedInvoked extends StartData {
  machine: string
  /** How often it has been taken up. */
  attempt: number
  /** The runner that has it; null: it waits for one. */
  owner: string | null
  /** Until when, in epoch seconds; written with each renewal. */
  until?: number
  /** Of a reducer: its snapshot. */
  state?: JsonValue
}

/** @throws UnknownMachine for what was not written by this package */
export function readInvoked(execution: Execution): PersistedInvoked {
  const stored = execution.context[RESERVED_KEY] as unknown as PersistedInvoked | undefined
  if (typeof stored?.machine !== 'string') throw UnknownMachine.foreign(execution)
  return stored
}

export function writeInvoked(execution: Execution, stored: PersistedInvoked): void {
  execution.context = { ...execution.context, [RESERVED_KEY]: stored as unknown as JsonValue }
}

/** @throws UnknownMachine */
export function logicOf(
  { machines }: Host,
  { machine, version, src }: Pick<PersistedInvoked, 'machine' | 'version' | 'src'>,
): AnyActorLogic {
  const definition = machines.find(machine, version) ?? machines.newest(machine)
  const logic = actorLogic(definition.machine, src)
  if (logic === undefined) throw new UnknownMachine(`${machine} with an actor ${src}`, version, [])
  return logic
}

/** Without a start of its own it is a reducer: nothing but its snapshot, changed by events. */
export const isReducer = (logic: AnyActorLogic): boolean => logic.start === undefined

/** Takes a reducer to its beginning, or one event further. */
export function reduce(
  logic: AnyActorLogic,
  execution: Execution,
  stored: PersistedInvoked,
  event?: HarelEvent,
): Draft {
  const actor = createActor(logic, {
    id: stored.actorId,
    input: decode(stored.input, reference),
    ...(event !== undefined && { snapshot: decode(stored.state, reference) as Snapshot<unknown> }),
  })
  // With nobody to tell, XState throws it where nobody catches it.
  actor.subscribe({ error: () => {} })
  actor.start()
  if (event !== undefined) actor.send({ ...(decode(event.data, reference) as object), type: event.kind })
  const snapshot = actor.getSnapshot() as Snapshot<unknown>
  if (snapshot.status === 'error') return end(execution, stored, { error: snapshot.error })
  if (snapshot.status === 'done') return end(execution, stored, { output: snapshot.output })
  const state = encode(logic.getPersistedSnapshot(snapshot), 'snapshot') as JsonValue
  writeInvoked(execution, { ...stored, state })
  const draft = newDraft()
  if (stored.sync) tellParent(execution, stored, draft, 'snapshot', { snapshot: state })
  return draft
}

/** An event for what was invoked. It is kept in the execution until the process that runs it hands it over. */
export function receive(host: Host, execution: Execution, event: HarelEvent): Decision<Handled> {
  const draft = newDraft()
  const result: Handled = { execution, outcome: 'handled' }
  if (event.kind === STOP) {
    execution.status = 'CANCELLED'
    draft.timers.set(LEASE_PATH, { action: 'cancel', path: LEASE_PATH })
  } else if (!event.kind.startsWith('harel.')) {
    const stored = readInvoked(execution)
    const logic = logicOf(host, stored)
    if (isReducer(logic)) return { result, draft: reduce(logic, execution, stored, event) }
    execution.deferred = [...execution.deferred, event]
  }
  return { result, draft }
}

/** Something that it has to say before its end. */
export function told(execution: Execution, { type, ...data }: AnyEventObject, eventId: string): Draft {
  const draft = newDraft()
  const encoded = encodeValid(data, `event ${type}`) as JsonObject
  draft.emits.push({ targetId: execution.parentId, event: newEvent({ id: eventId, kind: type, data: encoded }) })
  return draft
}

export type Result = { readonly output: unknown } | { readonly error: unknown }

/** Its end. A result that JSON does not carry becomes an error, with the path to what it does not. */
export function end(execution: Execution, stored: PersistedInvoked, result: Result): Draft {
  const draft = newDraft()
  const data = resultData(result)
  const isError = 'error' in data
  execution.status = 'DONE'
  execution.outcome = isError ? 'error' : 'done'
  draft.timers.set(LEASE_PATH, { action: 'cancel', path: LEASE_PATH })
  tellParent(execution, stored, draft, isError ? 'error.actor' : 'done.actor', data)
  // There is one result, so that its id can be known.
  for (const { event } of draft.emits) event.id = resultId(execution.id)
  writeInvoked(execution, { ...stored, owner: null })
  return draft
}

function resultData(result: Result): JsonObject {
  if ('error' in result) return { error: errorData(result.error) }
  if (result.output === undefined) return {}
  try {
    return { output: encodeValid(result.output, 'output') }
  } catch (refused) {
    return { error: errorData(refused) }
  }
}
