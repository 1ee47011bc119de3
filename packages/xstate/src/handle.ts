/** What a machine does with events, with its start and with its timers: each is one commit. */
import {
  type Execution,
  type HarelEvent,
  isFinished,
  type JsonValue,
  newEvent,
  newExecution,
  timeoutEventId,
} from '@harel/store-base'
import { commandOfParent, terminateDraft } from './control.js'
import { ControlRefused, UnknownExecution } from './errors.js'
import { type Draft, type Host, newDraft } from './host.js'
import { receive } from './invoked.js'
import type { Definition } from './machines.js'
import {
  CONTINUE,
  DELIVERY,
  eventIdOf,
  INIT,
  INVOKED,
  RESUME,
  STOP,
  type StartData,
  SUSPEND,
  SWEEP,
} from './reserved.js'
import { childOf, type PersistedMachine, writePersisted } from './snapshot.js'
import { advance, askToGoOn, disarm, type Found, findMachine, goOn, isRunning, moveTimers } from './step.js'
import { type Decision, update, write } from './update.js'

/**
 * What became of an event: `handled` by the machine; a `duplicate` of one that was handled before; `deferred`, kept in
 * the execution until it is resumed or redriven; or of no effect because the execution is `finished`.
 */
export type EventOutcome = 'handled' | 'duplicate' | 'deferred' | 'finished'

export interface Handled {
  /** As it is stored now. */
  readonly execution: Execution
  readonly outcome: EventOutcome
}

/** What is to be started, and for whom. */
export interface Start {
  readonly id?: string
  readonly definition: Definition
  readonly input: JsonValue | undefined
  readonly priority?: number
  readonly parent?: { readonly id: string; readonly data: StartData }
}

/**
 * Starts a machine as a new execution, in one commit with all that its start wants done.
 *
 * @throws StoreConflict when the id is in use
 */
export function start(host: Host, { id, definition, input, priority = 0, parent }: Start): Promise<Execution> {
  const execution = newExecution({
    ...(id !== undefined && { id }),
    definitionId: definition.id,
    priority,
    parentId: parent?.id ?? null,
    childId: parent === undefined ? null : (id ?? null),
  })
  const stored: PersistedMachine = {
    version: definition.version,
    context: {},
    children: {},
    timers: {},
    history: {},
    ...(parent !== undefined && { actorId: parent.data.actorId, ...(parent.data.sync && { sync: true }) }),
  }
  const event = newEvent({ kind: INIT, data: input === undefined ? {} : { input } })
  return host.queue.run(execution.id, async () => {
    await write(host, execution, await advance(host, execution, { definition, stored }, { event }))
    return execution
  })
}

/**
 * Handles an event, exactly once whoever delivers it and how often.
 *
 * @param check called with what was loaded; what it throws is thrown, with nothing written
 * @throws UnknownExecution, UnknownMachine, MachineChanged, NotSerializable, …
 */
export function handleEvent(
  host: Host,
  id: string,
  event: HarelEvent,
  check?: (execution: Execution) => void,
): Promise<Handled> {
  return update<Handled>(host, id, event.id, async ({ execution, processed }) => {
    if (execution === undefined) throw new UnknownExecution(id)
    if (execution.definitionId === SWEEP || execution.definitionId === DELIVERY) {
      throw new ControlRefused(id, 'belongs to the runner and takes no events')
    }
    if (processed) return { result: { execution, outcome: 'duplicate' } }
    if (isFinished(execution.status)) return { result: { execution, outcome: 'finished' } }
    if (isCommand(event) && event.data.parent !== execution.parentId) {
      return { result: { execution, outcome: 'handled' }, draft: { ...newDraft(), processedEventId: event.id } }
    }
    check?.(execution)
    const decision =
      execution.definitionId === INVOKED ? receive(host, execution, event) : await take(host, execution, event)
    if (decision.draft !== undefined) decision.draft.processedEventId = event.id
    return decision
  })
}

async function take(host: Host, execution: Execution, event: HarelEvent): Promise<Decision<Handled>> {
  const found = findMachine(host, execution)
  const handled: Handled = { execution, outcome: 'handled' }
  if (event.kind === STOP) return { result: handled, draft: terminateDraft(execution, found.stored) }
  if (event.kind === SUSPEND || event.kind === RESUME) {
    return { result: handled, draft: commandOfParent(execution, found.stored, event) }
  }
  if (event.kind === CONTINUE) {
    if (isHeldElsewhere(execution, found)) return { result: { execution, outcome: 'deferred' } }
    return { result: handled, draft: await takeKept(host, execution, found) }
  }
  // Suspended, failed or not started; or there are others that came first.
  if (!isRunning(execution.status) || execution.deferred.length > 0) {
    execution.deferred = [...execution.deferred, event]
    const draft = newDraft()
    goOn(execution, draft)
    if (isHeldElsewhere(execution, found) && execution.deferred.length === 1) askToGoOn(execution, draft)
    return { result: { execution, outcome: 'deferred' }, draft }
  }
  return { result: handled, draft: await takeOne(host, execution, found, event) }
}

const takeOne = async (host: Host, execution: Execution, found: Found, event: HarelEvent): Promise<Draft> =>
  isStale(found.stored, event) ? newDraft() : advance(host, execution, found, { event })

/** The first of the events that the execution has kept. */
async function takeKept(host: Host, execution: Execution, found: Found): Promise<Draft> {
  const [event, ...others] = execution.deferred
  if (event === undefined || !isRunning(execution.status)) return newDraft()
  execution.deferred = others
  const draft = await takeOne(host, execution, found, event)
  goOn(execution, draft)
  return draft
}

/** Only from its parent: another execution may have the id of a child. */
const isCommand = ({ kind }: HarelEvent): boolean => kind === STOP || kind === SUSPEND || kind === RESUME

/**
 * Whether it comes from a child that the machine has let go of. XState knows its children by ids that it uses again;
 * the result of the one before must not be taken for the result of the next.
 */
const isStale = (stored: PersistedMachine, { kind, data }: HarelEvent): boolean =>
  /^xstate\.((done|error)\.actor|snapshot)\./.test(kind) &&
  data.executionId !== undefined &&
  childOf(stored, data.executionId) === undefined

/**
 * Whether a command from outside of this package has suspended it, and may resume it without a word to us: what is due
 * meanwhile stays where sweeps look.
 */
const isHeldElsewhere = ({ status }: Execution, { stored }: Found): boolean =>
  status === 'SUSPENDED' && stored.suspendedBy === undefined

/** `gone`: there is nothing left for the timer to do. `waiting`: there is, and not yet, or not by this process. */
export type Firing = 'fired' | 'gone' | 'waiting'

/** Lets a delayed event of a machine take place. */
export function fireTimer(host: Host, executionId: string, path: string, fireAt: number): Promise<Firing> {
  return update<Firing>(host, executionId, undefined, async ({ execution }) => {
    if (execution === undefined || isFinished(execution.status)) return { result: 'gone' }
    const found = findMachine(host, execution)
    if (isHeldElsewhere(execution, found)) return { result: 'waiting' }
    const draft =
      found.stored.timers[path]?.at === fireAt
        ? await fire(host, execution, found, path)
        : // Whoever has fired, cancelled or armed it again since it was read has done so in a commit of its own.
          found.moved && moveAll(execution, found)
    if (draft === undefined) return { result: 'gone' }
    // There is no mark to be kept for ever: that the timer is gone from the record is what keeps it from firing twice.
    if (!draft.timers.has(path)) draft.timers.set(path, { action: 'cancel', path })
    return { result: 'fired', draft }
  })
}

async function fire(host: Host, execution: Execution, found: Found, path: string): Promise<Draft | undefined> {
  const { [path]: fired, ...timers } = found.stored.timers
  if (fired === undefined) return undefined
  if (!isRunning(execution.status)) {
    const draft = newDraft()
    disarm(found.stored, draft)
    return draft
  }
  const event = newEvent({
    id: eventIdOf(timeoutEventId(execution.id, path, fired.at)),
    kind: fired.type,
    data: fired.data,
  })
  const after = { ...found, stored: { ...found.stored, timers } }
  if (fired.to === undefined) return advance(host, execution, after, { event })
  const draft = moveAll(execution, after)
  draft.emits.push({ targetId: fired.to, event })
  return draft
}

/** Stores what a migration has made of a machine. */
function moveAll(execution: Execution, found: Found): Draft {
  const draft = newDraft()
  if (isRunning(execution.status)) moveTimers(found, draft)
  else disarm(found.stored, draft)
  writePersisted(execution, found.stored)
  return draft
}
