/**
 * XState's snapshot as it stands in an execution. `context[RESERVED_KEY]` holds what only XState understands; the rest is
 * in the record's own fields, where listings, monitors and the control plane of other languages look for it:
 * `activePath`, `status`, `outcome`, `error`, `history` and `children`. Other keys of `context` are left as they are.
 */
import type { ChildState, Execution, JsonObject, JsonValue } from '@harel/store-base'
import type { AnyActorRef, AnyMachineSnapshot, AnyStateMachine, Snapshot, StateValue } from 'xstate'
import { ControlRefused, MachineChanged, UnknownMachine } from './errors.js'
import { type Definition, statesOf } from './machines.js'
import { ACTIVE, confine, decode, encode, executionIdOf, reference } from './references.js'
import { DELIVERY, INVOKED, SWEEP } from './reserved.js'

/** The one member of an execution's context that belongs to this package. */
export const RESERVED_KEY = 'xstate'

/** A child of a machine, under the id that the machine knows it by. */
export interface PersistedChild {
  /** The id of the child's execution. */
  id: string
  src: string
  systemId?: string
  /** It tells the parent of each of its steps (`onSnapshot`). */
  sync?: boolean
  /** Its last event has been handled. */
  finished?: boolean
}

/** An event that a machine has delayed, under the id by which it can cancel it. */
export interface PersistedTimer {
  /** Epoch seconds. */
  at: number
  type: string
  data: JsonObject
  /** The execution that it is for; absent: the machine itself. */
  to?: string
}

/** What is stored of a machine that is running; its `history` stands in the record's own field. */
export interface PersistedMachine {
  /** Of the definition that this was written with. */
  version: string
  /** Absent before the start has succeeded. */
  value?: StateValue
  context: JsonObject
  output?: JsonValue
  children: { [actorId: string]: PersistedChild }
  timers: { [id: string]: PersistedTimer }
  /** For each history node the ids of the states that it remembers. */
  history: { [nodeId: string]: string[] }
  /** What the parent calls this machine, and whether it wants to hear of each step; absent in a root. */
  actorId?: string
  sync?: boolean
  /** While suspended: the command of the parent that did it, or null if somebody asked for this very execution. */
  suspendedBy?: number | null
  /** While failed: it was on the way to its end by `cancel`. */
  cancelling?: boolean
  /** The parent's last command that was heeded; older ones come too late. */
  command?: number
}

/** Why a command on a machine cannot be for an execution of the runner's own. */
const NO_MACHINE = new Map([
  [INVOKED, 'is no machine, but what one has invoked'],
  [DELIVERY, 'is no machine, but something that could not be delivered; use unpark or discard'],
  [SWEEP, 'belongs to the runner'],
])

/** @throws ControlRefused for what is no machine, UnknownMachine for what was not written by this package */
export function readPersisted(execution: Execution): PersistedMachine {
  const reason = NO_MACHINE.get(execution.definitionId)
  if (reason !== undefined) throw new ControlRefused(execution.id, reason)
  const stored = execution.context[RESERVED_KEY] as unknown as PersistedMachine | undefined
  if (typeof stored?.version !== 'string') throw UnknownMachine.foreign(execution)
  return { ...stored, history: execution.history as PersistedMachine['history'] }
}

/** Sets what follows from it, too: `children` for the control plane. */
export function writePersisted(execution: Execution, { history, ...stored }: PersistedMachine): void {
  // Members that are undefined are dropped by the store.
  execution.context = { ...execution.context, [RESERVED_KEY]: stored as unknown as JsonValue }
  execution.history = history
  execution.children = Object.fromEntries(
    Object.entries(stored.children).map(([key, { id, finished = false }]): [string, ChildState] => [
      id,
      { rootPath: '', finished, outcome: null, result: {}, submachine: true, key },
    ]),
  )
}

/** A machine as it is taken up again for one step. */
export interface Restored {
  readonly self: AnyActorRef
  readonly snapshot: AnyMachineSnapshot
  readonly refer: (executionId: string) => AnyActorRef
}

function selfOf({ id, parentId }: Execution, snapshot: Snapshot<unknown>): AnyActorRef {
  if (parentId === null) return reference(id, { snapshot })
  const self = reference(id, { snapshot, parent: reference(parentId) })
  confine(self, id)
  return self
}

/** A machine before its start. */
export function unstarted(execution: Execution): Pick<Restored, 'self' | 'refer'> {
  const self = selfOf(execution, ACTIVE)
  return { self, refer: (id) => (id === execution.id ? self : reference(id)) }
}

/** @throws MachineChanged, ControlRefused before the start has succeeded */
export function restore(execution: Execution, stored: PersistedMachine, { id, machine }: Definition): Restored {
  if (stored.value === undefined) throw new ControlRefused(execution.id, 'has no state: its start has not succeeded')
  const snapshot = resolve(execution, stored, id, machine)
  // The snapshot is this function's own, so what depends on it in a circle may be put into it afterwards.
  const self = selfOf(execution, snapshot as Snapshot<unknown>)
  const references = new Map([[execution.id, self]])
  for (const [actorId, { id: childId, src, systemId }] of Object.entries(stored.children)) {
    const child = reference(childId, { id: actorId, src, parent: self, ...(systemId !== undefined && { systemId }) })
    references.set(childId, child)
    snapshot.children[actorId] = child
  }
  const refer = (executionId: string): AnyActorRef => {
    const known = references.get(executionId) ?? reference(executionId)
    references.set(executionId, known)
    return known
  }
  snapshot.context = decode(stored.context, refer)
  snapshot.output = decode(stored.output, refer)
  return { self, snapshot, refer }
}

function resolve(
  execution: Execution,
  stored: PersistedMachine,
  definitionId: string,
  machine: AnyStateMachine,
): AnyMachineSnapshot {
  const nodes = statesOf(machine)
  const historyValue = Object.fromEntries(
    Object.entries(stored.history).map(([node, ids]) => [
      node,
      ids.flatMap((remembered) => nodes.get(remembered) ?? []),
    ]),
  )
  try {
    return machine.resolveState({ value: stored.value ?? {}, context: {}, historyValue })
  } catch (cause) {
    const state = JSON.stringify(stored.value).slice(0, 200)
    throw new MachineChanged(execution.id, definitionId, stored.version, state, cause)
  }
}

/** The part of the stored form that XState's snapshot decides. @throws NotSerializable */
export function persist(
  snapshot: AnyMachineSnapshot,
): Pick<PersistedMachine, 'value' | 'context' | 'output' | 'history'> {
  const history = Object.entries(snapshot.historyValue as { [node: string]: readonly { id: string }[] })
  return {
    value: snapshot.value as StateValue,
    context: encode(snapshot.context, 'context') as JsonObject,
    ...(snapshot.output !== undefined && { output: encode(snapshot.output, 'output') as JsonValue }),
    history: Object.fromEntries(history.map(([node, states]) => [node, states.map(({ id }) => id)])),
  }
}

/** The path of the active state; of a parallel state, the path of that state itself. */
export function activePath(value: StateValue): string {
  if (typeof value === 'string') return value
  const [[key, inner] = [], ...others] = Object.entries(value)
  if (key === undefined || inner === undefined || others.length > 0) return ''
  const below = activePath(inner)
  return below === '' ? key : `${key}.${below}`
}

/** The child of a machine that runs as this execution. */
export function childOf(stored: PersistedMachine, executionId: unknown): [string, PersistedChild] | undefined {
  return Object.entries(stored.children).find(([, { id }]) => id === executionId)
}

/** The stored form of the children that a snapshot still has. */
export function keptChildren(
  snapshot: AnyMachineSnapshot,
  known: { readonly [actorId: string]: PersistedChild },
  gone: ReadonlySet<AnyActorRef>,
): { [actorId: string]: PersistedChild } {
  const kept: { [actorId: string]: PersistedChild } = {}
  for (const ref of Object.values(snapshot.children) as (AnyActorRef | undefined)[]) {
    const child = ref === undefined || gone.has(ref) || !Object.hasOwn(known, ref.id) ? undefined : known[ref.id]
    if (ref !== undefined && child !== undefined && executionIdOf(ref) === child.id) kept[ref.id] = child
  }
  return kept
}
