/** What there is to do for executions besides the events from outside, and how it is done. */
import {
  type CorruptRecord,
  type DueTimer,
  ExecutionAlreadyExists,
  type HarelEvent,
  type QueuePage,
  type SpawnEntry,
  StoreConflict,
} from '@harel/store-base'
import { UnknownMachine } from './errors.js'
import { type Firing, fireTimer, handleEvent, start } from './handle.js'
import type { Host } from './host.js'
import type { Definition } from './machines.js'
import { CONTINUE, INVOKED, LEASE_PATH, RETRY_PATH, type StartData, takenId } from './reserved.js'
import { RESERVED_KEY } from './snapshot.js'
import { errorData, eventOfChild } from './step.js'

/** A child to be started. */
export interface SpawnWork {
  readonly kind: 'spawn'
  readonly parentId: string
  readonly childId: string
  readonly data: StartData
}

/** A row that the store cannot read: it stays in its queue until somebody repairs it or gives it up. */
export interface UnreadableWork {
  readonly kind: 'unreadable'
  readonly queue: 'outbox' | 'spawns'
  readonly seq: number
}

export type Work =
  | { readonly kind: 'event'; readonly targetId: string; readonly event: HarelEvent }
  | SpawnWork
  | UnreadableWork
  | { readonly kind: 'timer'; readonly executionId: string; readonly path: string; readonly fireAt: number }

/** The execution that is worked on; empty where nobody can tell. */
export function subjectOf(work: Work): string {
  if (work.kind === 'event') return work.targetId
  if (work.kind === 'spawn') return work.childId
  return work.kind === 'timer' ? work.executionId : ''
}

/** For people. */
export const describeWork = (work: Work): string =>
  work.kind === 'unreadable' ? `entry ${work.seq} of the ${work.queue}` : `${work.kind} for ${subjectOf(work)}`

type Members = Partial<Record<string, unknown>>

const isObject = (value: unknown): value is Members =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const areTexts = (...values: unknown[]): boolean => values.every((value) => typeof value === 'string' && value !== '')

const SHAPES: { readonly [Kind in Work['kind']]: (work: Members) => boolean } = {
  event: ({ targetId, event }) => isObject(event) && areTexts(targetId, event.id, event.kind),
  spawn: ({ parentId, childId, data }) => isObject(data) && areTexts(parentId, childId),
  unreadable: ({ queue, seq }) => (queue === 'outbox' || queue === 'spawns') && Number.isSafeInteger(seq),
  timer: ({ executionId, path, fireAt }) => areTexts(executionId, path) && typeof fireAt === 'number',
}

/** Undefined: it is none, or damaged. */
export function parseWork(text: unknown): Work | undefined {
  if (typeof text !== 'string') return undefined
  let work: unknown
  try {
    work = JSON.parse(text)
  } catch {
    return undefined
  }
  if (!isObject(work) || typeof work.kind !== 'string' || !Object.hasOwn(SHAPES, work.kind)) return undefined
  return SHAPES[work.kind as Work['kind']](work) ? (work as unknown as Work) : undefined
}

/** Undefined: it was not written by this package. */
export function spawnWork({ parentId, childId, context }: Omit<SpawnEntry, 'seq'>): SpawnWork | undefined {
  const data = context[RESERVED_KEY] as unknown as StartData | undefined
  return typeof data === 'object' && data !== null ? { kind: 'spawn', parentId, childId, data } : undefined
}

/**
 * Does it, once or once more: whatever was done already is found done.
 *
 * @param isFresh  nobody can have done it yet
 * @returns false if it is not for this process now: the machine is not known here, or the execution is held from outside
 * @throws what stands in the way
 */
export async function perform(host: Host, work: Work, isFresh = false): Promise<boolean> {
  try {
    if (work.kind === 'event') {
      const { outcome } = await handleEvent(host, work.targetId, work.event)
      // Every other event is kept in the execution.
      return outcome !== 'deferred' || work.event.kind !== CONTINUE
    }
    if (work.kind === 'spawn') await startChild(host, work, isFresh)
    else if (work.kind === 'unreadable') await readAgain(host, work)
    else {
      const firing = await fire(host, work)
      if (firing === 'waiting') return false
      // Whoever has seen to that did not know this one: it would be found due for ever.
      if (firing === 'gone') await host.store.deleteTimer(work.executionId, work.path, work.fireAt)
    }
    return true
  } catch (error) {
    if (error instanceof UnknownMachine) return false
    throw error
  }
}

function fire(host: Host, { executionId, path, fireAt }: DueTimer): Promise<Firing> {
  if (path === LEASE_PATH) return host.invocations.takeUp(executionId)
  if (path === RETRY_PATH) return host.deliveries.retry(executionId)
  return fireTimer(host, executionId, path, fireAt)
}

/** What stands in the way of reading it; undefined: nothing does, or it is gone. */
export async function whyUnreadable(
  { store }: Host,
  { queue, seq }: UnreadableWork,
): Promise<CorruptRecord | undefined> {
  let first: { seq: number; error: CorruptRecord } | undefined
  const page: QueuePage = {
    limit: 1,
    ...(seq > 0 && { after: seq - 1 }),
    onUnreadable: (found, error) => {
      first ??= { seq: found, error }
      // Ends the reading: a store would read on for an entry that can be read, however many rows that takes.
      throw error
    },
  }
  try {
    await (queue === 'outbox' ? store.pendingOutbox(page) : store.pendingSpawns(page))
  } catch (error) {
    if (first === undefined) throw error
  }
  return first?.seq === seq ? first.error : undefined
}

/** What can be read by now is done by the sweeps. */
async function readAgain(host: Host, work: UnreadableWork): Promise<void> {
  const reason = await whyUnreadable(host, work)
  if (reason !== undefined) throw reason
}

/** Where it would be migrated, a start, which has no state yet, begins with the newest version. @throws UnknownMachine */
function definitionOf({ machines, settings }: Host, { definitionId, version }: StartData): Definition {
  const known = machines.find(definitionId, version)
  if (known !== undefined) return known
  return settings.migrate === undefined ? machines.get(definitionId, version) : machines.newest(definitionId)
}

async function startChild(host: Host, { parentId, childId: id, data }: SpawnWork, isFresh: boolean): Promise<void> {
  // Looked for first: a start that comes too late would run its actions for nothing.
  const known = isFresh ? undefined : await host.store.load(id)
  if (known !== undefined) return known.parentId === parentId ? undefined : tellTaken(host, parentId, id, data)
  try {
    if (data.definitionId === INVOKED) return await host.invocations.create(id, parentId, data)
    await start(host, { id, definition: definitionOf(host, data), input: data.input, parent: { id: parentId, data } })
  } catch (error) {
    if (!(error instanceof StoreConflict)) throw error
    const other = await host.store.load(id)
    // Otherwise it was started before, and may have been purged since.
    if (other !== undefined && other.parentId !== parentId) await tellTaken(host, parentId, id, data)
  }
}

/** The machine gets an error for a child that cannot be started, because an execution of others has its id. */
async function tellTaken(host: Host, parentId: string, id: string, { actorId }: StartData): Promise<void> {
  const event = eventOfChild(id, actorId, 'error.actor', { error: errorData(new ExecutionAlreadyExists(id)) })
  await handleEvent(host, parentId, { ...event, id: takenId(id) })
}
