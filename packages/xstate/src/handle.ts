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
import { UnknownExecution } from './errors.js'
import { type Host, newDraft } from './host.js'
import { receive } from './invoked.js'
import type { Definition } from './machines.js'
import { INIT, INVOKED, RESUME, STOP, type StartData, SUSPEND } from './reserved.js'
import { childOf, type PersistedMachine, writePersisted } from './snapshot.js'
import { advance, disarm, findMachine } from './step.js'
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
    if (processed) return { result: { execution, outcome: 'duplicate' } }
    if (isFinished(execution.status)) return { result: { execution, outcome: 'finished' } }
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
  if (!isRunning(execution)) return { result: { execution, outcome: 'deferred' }, draft: defer(execution, event) }
  if (isStale(found.stored, event)) return { result: handled, draft: newDraft() }
  return { result: handled, draft: await advance(host, execution, found, { event }) }
}

const isRunning = ({ status }: Execution): boolean => status === 'RUNNING' || status === 'CANCELLING'

/** Suspended, failed or not started: the event waits in the execution itself. */
function defer(execution: Execution, event: HarelEvent) {
  execution.deferred = [...execution.deferred, event]
  return newDraft()
}

/**
 * Whether it comes from a child that the machine has let go of. XState knows its children by ids that it uses again;
 * the result of the one before must not be taken for the result of the next.
 */
const isStale = (stored: PersistedMachine, { kind, data }: HarelEvent): boolean =>
  /^xstate\.((done|error)\.actor|snapshot)\./.test(kind) &&
  data.executionId !== undefined &&
  childOf(stored, data.executionId) === undefined

/** Lets a delayed event of a machine take place. False: the timer is not armed for this moment any more. */
export function fireTimer(host: Host, executionId: string, path: string, fireAt: number): Promise<boolean> {
  return update<boolean>(host, executionId, undefined, async ({ execution }) => {
    if (execution === undefined) return { result: false }
    const { definition, stored } = findMachine(host, execution)
    // Whoever has fired, cancelled or armed it again since it was read has done so in a commit of its own.
    if (isFinished(execution.status) || stored.timers[path]?.at !== fireAt) return { result: false }
    if (!isRunning(execution)) {
      const draft = newDraft()
      disarm(stored, draft)
      return { result: true, draft }
    }
    const { [path]: fired, ...others } = stored.timers
    if (fired === undefined) return { result: false }
    const event = newEvent({ id: timeoutEventId(executionId, path, fireAt), kind: fired.type, data: fired.data })
    const found = { definition, stored: { ...stored, timers: others } }
    const draft =
      fired.to === undefined
        ? await advance(host, execution, found, { event })
        : { ...newDraft(), emits: [{ targetId: fired.to, event }] }
    if (fired.to !== undefined) writePersisted(execution, found.stored)
    // There is no mark to be kept for ever: that the timer is gone from the record is what keeps it from firing twice.
    if (!draft.timers.has(path)) draft.timers.set(path, { action: 'cancel', path })
    return { result: true, draft }
  })
}
