/**
 * Commands on executions. Each is one commit, made again on a conflict, and what it means for children goes to them as an
 * event in that commit: a crash in between loses nothing.
 */
import { type Execution, type HarelEvent, isFinished, newEvent } from '@harel/store-base'
import { getNextTransitions } from 'xstate'
import { stopChild } from './actions.js'
import { ControlRefused, UnknownExecution } from './errors.js'
import { type Draft, type Host, newDraft } from './host.js'
import { receive } from './invoked.js'
import { CANCEL, INVOKED, RESUME, STOP, SUSPEND } from './reserved.js'
import { type PersistedMachine, readPersisted, restore, writePersisted } from './snapshot.js'
import { advance, disarm, findMachine, goOn, rearm } from './step.js'
import { update } from './update.js'

type Command = 'cancel' | 'terminate' | 'suspend' | 'resume' | 'redrive'

function command(
  host: Host,
  id: string,
  name: Command,
  decide: (execution: Execution) => Draft | undefined | Promise<Draft | undefined>,
): Promise<Execution> {
  return update<Execution>(host, id, undefined, async ({ execution }) => {
    if (execution === undefined) throw new UnknownExecution(id)
    const { status: fromStatus, activePath: fromPath } = execution
    const draft = await decide(execution)
    if (draft === undefined) return { result: execution }
    const { status: toStatus, activePath: toPath } = execution
    draft.step = { ...draft.step, cause: 'control', command: name, fromStatus, fromPath, toStatus, toPath }
    return { result: execution, draft }
  })
}

/** Ends it where it is, CANCELLED, and its children with it. Nothing happens if it has ended. */
export const terminate = (host: Host, id: string): Promise<Execution> =>
  command(host, id, 'terminate', (execution) => {
    if (isFinished(execution.status)) return undefined
    if (execution.definitionId === INVOKED) return receive(host, execution, newEvent({ kind: STOP })).draft
    return terminateDraft(execution, readPersisted(execution))
  })

export function terminateDraft(execution: Execution, stored: PersistedMachine): Draft {
  const draft = newDraft()
  for (const { id, finished } of Object.values(stored.children)) {
    if (finished !== true) stopChild(draft, execution.id, id)
  }
  disarm(stored, draft)
  writePersisted(execution, { ...stored, timers: {} })
  execution.status = 'CANCELLED'
  return draft
}

/**
 * Asks a machine to come to its end: if its state has a transition for `harel.cancel`, it takes that and goes on as
 * CANCELLING, with all that it still has to do, until it reaches a final state and is CANCELLED. Where there is no such
 * transition, and where it cannot be taken (suspended, failed), the execution is terminated.
 */
export const cancel = (host: Host, id: string, reason: string | undefined): Promise<Execution> =>
  command(host, id, 'cancel', async (execution) => {
    if (isFinished(execution.status) || execution.status === 'CANCELLING') return undefined
    if (execution.definitionId === INVOKED) return receive(host, execution, newEvent({ kind: STOP })).draft
    const stored = readPersisted(execution)
    if (execution.status !== 'RUNNING' || stored.value === undefined) return terminateDraft(execution, stored)
    const found = findMachine(host, execution)
    const { snapshot } = restore(execution, found.stored, found.definition)
    // Named outright: a machine that takes any event with `*` has not said that it can be cancelled.
    const named = getNextTransitions(snapshot).some(({ eventType }) => eventType === CANCEL)
    if (!named || !snapshot.can({ type: CANCEL, reason })) return terminateDraft(execution, stored)
    execution.status = 'CANCELLING'
    const event = newEvent({ kind: CANCEL, data: reason === undefined ? {} : { reason } })
    return advance(host, execution, found, { event, command: 'cancel' })
  })

/** Holds it and its running children until `resume`. What arrives meanwhile is kept, what is delayed waits. */
export const suspend = (host: Host, id: string): Promise<Execution> =>
  command(host, id, 'suspend', (execution) => {
    const stored = ofMachine(execution)
    if (execution.status === 'SUSPENDED') {
      if (stored.suspendedBy === null) return undefined
      writePersisted(execution, { ...stored, suspendedBy: null })
      return newDraft()
    }
    if (execution.status !== 'RUNNING') throw new ControlRefused(id, `is ${execution.status}, not RUNNING`)
    return suspendDraft(execution, { ...stored, suspendedBy: null })
  })

/** Lets it go on, with the children that were suspended with it; what has arrived meanwhile is handled, in its order. */
export const resume = (host: Host, id: string): Promise<Execution> =>
  command(host, id, 'resume', (execution) => {
    const stored = ofMachine(execution)
    if (execution.status === 'RUNNING') return undefined
    if (execution.status !== 'SUSPENDED') throw new ControlRefused(id, `is ${execution.status}, not SUSPENDED`)
    return resumeDraft(execution, stored)
  })

/**
 * Brings a failed execution back to the state before the event that it failed on, and lets that be handled again, with
 * what has arrived since.
 *
 * @param skip  leave that event out
 */
export const redrive = (host: Host, id: string, skip: boolean): Promise<Execution> =>
  command(host, id, 'redrive', (execution) => {
    const { cancelling, ...stored } = ofMachine(execution)
    if (execution.status !== 'FAILED') throw new ControlRefused(id, `is ${execution.status}, not FAILED`)
    if (skip && stored.value === undefined)
      throw new ControlRefused(id, 'has failed in its start, which cannot be left out')
    const draft = newDraft()
    execution.status = cancelling === true ? 'CANCELLING' : 'RUNNING'
    execution.error = null
    if (skip) execution.deferred = execution.deferred.slice(1)
    rearm(stored, draft)
    goOn(execution, draft)
    writePersisted(execution, stored)
    return draft
  })

/** A command that came from the parent, as an event. Those that are older than one that was heeded come too late. */
export function commandOfParent(execution: Execution, stored: PersistedMachine, { kind, data }: HarelEvent): Draft {
  const n = Number(data.command)
  if (n <= (stored.command ?? 0)) return newDraft()
  const next = { ...stored, command: n }
  if (kind === SUSPEND && execution.status === 'RUNNING') return suspendDraft(execution, { ...next, suspendedBy: n })
  // One that was suspended by itself stays so.
  const byParent = execution.status === 'SUSPENDED' && typeof stored.suspendedBy === 'number'
  if (kind === RESUME && byParent) return resumeDraft(execution, next)
  writePersisted(execution, next)
  return newDraft()
}

function ofMachine(execution: Execution): PersistedMachine {
  if (execution.definitionId === INVOKED) throw new ControlRefused(execution.id, 'is no machine')
  return readPersisted(execution)
}

function suspendDraft(execution: Execution, stored: PersistedMachine): Draft {
  const draft = newDraft()
  execution.status = 'SUSPENDED'
  disarm(stored, draft)
  tellChildren(execution, stored, draft, SUSPEND)
  writePersisted(execution, stored)
  return draft
}

function resumeDraft(execution: Execution, { suspendedBy: _, ...stored }: PersistedMachine): Draft {
  const draft = newDraft()
  execution.status = 'RUNNING'
  rearm(stored, draft)
  tellChildren(execution, stored, draft, RESUME)
  goOn(execution, draft)
  writePersisted(execution, stored)
  return draft
}

function tellChildren(execution: Execution, { children }: PersistedMachine, draft: Draft, kind: string): void {
  // The version orders the commands of one parent.
  const data = { parent: execution.id, command: execution.version + 1 }
  for (const { id, finished } of Object.values(children)) {
    if (finished !== true) draft.emits.push({ targetId: id, event: newEvent({ kind, data }) })
  }
}
