/** What this process runs of the promises, callbacks and observables that machines have invoked. */
import { type Execution, type HarelEvent, isFinished, newExecution, newId } from '@harel/store-base'
import {
  type AnyActorLogic,
  type AnyActorRef,
  type AnyEventObject,
  createActor,
  fromTransition,
  type Snapshot,
} from 'xstate'
import { pause } from './concurrency.js'
import { type Effect, runEffect } from './effect.js'
import { isFinal, UnknownMachine } from './errors.js'
import type { Firing } from './handle.js'
import { type Draft, type Host, newDraft } from './host.js'
import {
  end,
  isReducer,
  logicOf,
  type PersistedInvoked,
  type Result,
  readInvoked,
  reduce,
  told,
  writeInvoked,
} from './invoked.js'
import { confine, decode, reference } from './references.js'
import { INVOKED, LEASE_PATH, type StartData } from './reserved.js'
import { type Decision, update, write } from './update.js'

/** How many are remembered that wait for room; the others are found by sweeps. */
const MOST_WAITING = 10_000

/** One that is running here. */
interface Running {
  readonly attempt: number
  readonly abort: AbortController
  /** Everything that it has had to say has been told, or cannot be. */
  readonly ended: Promise<void>
  /** Renews the lease, and hands over the events that have arrived. */
  look(): void
}

export class Invocations {
  readonly #host: Host
  readonly #running = new Map<string, Running>()
  /** What has room, and is not running yet. */
  #reserved = 0
  /** What has found no room, in its order. */
  readonly #waiting = new Set<string>()
  #closed = false

  constructor(host: Host) {
    this.#host = host
  }

  /** Whether there is room for one more, which is held for the caller until it lets go of it. */
  #reserve(): boolean {
    if (this.#closed || this.#running.size + this.#reserved >= this.#host.settings.maxInvoked) return false
    this.#reserved += 1
    return true
  }

  /** Takes up what has waited longest, if there is room; others may have taken it up meanwhile. */
  #next(): void {
    const [id] = this.#waiting
    if (id === undefined || !this.#reserve()) return
    this.#waiting.delete(id)
    const { onWarning } = this.#host.settings
    this.#take(id).catch((error) => onWarning(`${id} was left to the next sweep`, error))
  }

  /** Creates the execution, leased to this process if it has room, and runs it. @throws StoreConflict if it exists */
  async create(id: string, parentId: string, { machine, ...data }: StartData): Promise<void> {
    if (machine === undefined) throw new UnknownMachine(INVOKED, data.version, [])
    const logic = logicOf(this.#host, { ...data, machine })
    const mine = !isReducer(logic) && this.#reserve()
    try {
      await this.#created(id, parentId, { ...data, machine }, logic, mine)
    } finally {
      if (mine) this.#reserved -= 1
    }
  }

  async #created(
    id: string,
    parentId: string,
    data: StartData & { machine: string },
    logic: AnyActorLogic,
    mine: boolean,
  ): Promise<void> {
    const stored: PersistedInvoked = { ...data, attempt: mine ? 1 : 0, owner: mine ? this.#host.id : null }
    const activePath = data.src
    const execution = newExecution({ id, definitionId: INVOKED, parentId, childId: id, status: 'RUNNING', activePath })
    writeInvoked(execution, stored)
    const draft = isReducer(logic)
      ? reduce(logic, execution, stored)
      : mine
        ? this.#renewed(execution, stored)
        : this.#leased(false)
    draft.step = { cause: 'start', fromStatus: 'PENDING', toStatus: execution.status, toPath: activePath }
    await this.#host.queue.run(id, () => write(this.#host, execution, draft))
    if (mine) this.#run(id, stored, logic)
  }

  /**
   * Takes up what nobody has any more: its lease has run out.
   *
   * @returns `waiting` if this process has no room for it, or runs it; `gone` if it has ended, or somebody else has it
   * @throws UnknownMachine
   */
  async takeUp(id: string): Promise<Firing> {
    const running = this.#running.get(id)
    running?.look()
    if (running !== undefined) return 'waiting'
    if (this.#reserve()) return (await this.#take(id)) ? 'fired' : 'gone'
    if (this.#waiting.size < MOST_WAITING) this.#waiting.add(id)
    return 'waiting'
  }

  /** With room that was reserved. */
  async #take(id: string): Promise<boolean> {
    let taken: PersistedInvoked | undefined
    try {
      taken = await this.#taken(id)
      if (taken !== undefined) this.#run(id, taken, logicOf(this.#host, taken))
    } finally {
      this.#reserved -= 1
    }
    this.#next()
    return taken !== undefined
  }

  /** Leases it to this process, unless somebody else has it. */
  #taken(id: string): Promise<PersistedInvoked | undefined> {
    const { clock, maxAttempts } = this.#host.settings
    return update<PersistedInvoked | undefined>(this.#host, id, undefined, ({ execution }) => {
      if (execution === undefined) return { result: undefined }
      const stored = readInvoked(execution)
      if (isFinished(execution.status)) return { result: undefined }
      // The lease may have been renewed since it was found to have run out.
      if (stored.owner !== null && (stored.until ?? 0) > clock()) return { result: undefined }
      logicOf(this.#host, stored)
      if (stored.attempt >= maxAttempts) {
        const error = new Error(`${stored.src} was given up after ${stored.attempt} attempts`)
        return { result: undefined, draft: end(execution, stored, { error }) }
      }
      const next = { ...stored, attempt: stored.attempt + 1, owner: this.#host.id }
      return { result: next, draft: this.#renewed(execution, next) }
    })
  }

  #renewed(execution: Execution, stored: PersistedInvoked): Draft {
    const draft = this.#leased(true)
    writeInvoked(execution, { ...stored, until: this.#host.settings.clock() + this.#host.settings.lease })
    return draft
  }

  /** The timer by which others find it when the lease has run out; at once, if nobody has it. */
  #leased(held: boolean): Draft {
    const { clock, lease } = this.#host.settings
    const draft = newDraft()
    const fireAt = clock() + (held ? lease : 0)
    draft.timers.set(LEASE_PATH, { action: 'schedule', path: LEASE_PATH, fireAt })
    return draft
  }

  #run(id: string, { src, ...stored }: PersistedInvoked, logic: AnyActorLogic): void {
    const { attempt, actorId, input, sync } = stored
    const { onWarning, lease } = this.#host.settings
    const abort = new AbortController()
    const ended = Promise.withResolvers<void>()
    // By this nothing that it says is taken for what an earlier run has said: an attempt that was given back counts again.
    const run = newId()
    let told = 0
    let work = Promise.resolve()
    const afterwards = (task: () => Promise<void>): void => {
      work = work.then(task).catch((error) => onWarning(`${src} of ${id} could not be followed`, error))
    }
    const heard = (event: AnyEventObject): void => {
      const result = resultOf(event, actorId)
      told += 1
      const eventId = `${run}:${told}`
      afterwards(async () => {
        const said = result ?? { event: lasting(logic, event), eventId }
        await this.#tell(id, attempt, said, abort.signal).finally(() => {
          if (result !== undefined) ended.resolve()
        })
      })
    }
    const actor = runActor(id, logic, { actorId, input: decode(input, reference), sync, abort: abort.signal, heard })
    abort.signal.addEventListener('abort', () => ended.resolve())
    const look = (): void =>
      afterwards(async () => {
        if (abort.signal.aborted) return
        const events = await this.#renew(id, attempt)
        if (events === undefined) abort.abort()
        for (const { kind, data } of events ?? []) actor.send({ ...(decode(data, reference) as object), type: kind })
      })
    const renewing = setInterval(look, (lease / 3) * 1000)
    const settled = ended.promise.then(async () => {
      clearInterval(renewing)
      await work
      this.#running.delete(id)
      this.#next()
    })
    this.#running.set(id, { attempt, abort, ended: settled, look })
    const effect: Effect = { executionId: id, idempotencyKey: id, attempt, signal: abort.signal }
    runEffect(effect, undefined, () => actor.start())
  }

  /** The execution, while it is this process's to run. */
  #ours(
    id: string,
    attempt: number,
    decide: (execution: Execution, stored: PersistedInvoked) => Draft,
  ): Promise<boolean> {
    return update<boolean>(this.#host, id, undefined, ({ execution }): Decision<boolean> => {
      if (execution === undefined || isFinished(execution.status)) return { result: false }
      const stored = readInvoked(execution)
      if (stored.owner !== this.#host.id || stored.attempt !== attempt) return { result: false }
      return { result: true, draft: decide(execution, stored) }
    })
  }

  /** Renews the lease; returns the events that have arrived, or undefined if somebody else has it, or it was stopped. */
  async #renew(id: string, attempt: number): Promise<HarelEvent[] | undefined> {
    let events: HarelEvent[] = []
    const ours = await this.#ours(id, attempt, (execution, stored) => {
      events = execution.deferred
      execution.deferred = []
      return this.#renewed(execution, stored)
    })
    return ours ? events : undefined
  }

  /**
   * Sends what it says to its machine; with its result, it ends. Dropped if it is no longer this process's; until then it
   * is told again and again: to give it up would be to have the work done a second time, or not at all.
   */
  async #tell(
    id: string,
    attempt: number,
    said: Result | { event: AnyEventObject; eventId: string },
    abort: AbortSignal,
  ): Promise<void> {
    const { lease, onWarning, random } = this.#host.settings
    for (let tries = 1; ; tries++) {
      try {
        await this.#ours(id, attempt, (execution, stored) =>
          'eventId' in said ? told(execution, said.event, said.eventId) : end(execution, stored, said),
        )
        return
      } catch (error) {
        if (isFinal(error)) {
          // Trying again would only call for the same again.
          if ('error' in said) throw error
          said = { error }
          continue
        }
        if (abort.aborted) throw error
        if (tries === 1) onWarning(`what ${id} has said could not be told, and will be told again`, error)
        await pause(Math.min(5, lease / 3, 0.05 * 2 ** tries) * random(), abort)
      }
    }
  }

  /** Is told of each commit of what was invoked, wherever it comes from in this process. */
  changed(execution: Execution): void {
    const running = this.#running.get(execution.id)
    if (running === undefined) return
    if (isFinished(execution.status)) running.abort.abort()
    else if (execution.deferred.length > 0) running.look()
  }

  /** Lets go of all of it, so that others may take it up at once. */
  async close(): Promise<void> {
    this.#closed = true
    const running = [...this.#running]
    for (const [, { abort }] of running) abort.abort()
    await Promise.all(
      running.map(async ([id, { attempt, ended }]) => {
        await ended
        await this.#ours(id, attempt, (execution, stored) => {
          // It was not given the time that an attempt has.
          writeInvoked(execution, { ...stored, owner: null, attempt: attempt - 1 })
          return this.#leased(false)
        })
      }),
    )
  }
}

/** The result that XState's last event of an actor tells of. */
function resultOf(event: AnyEventObject, actorId: string): Result | undefined {
  const { type, output, error } = event as { type: string; output?: unknown; error?: unknown }
  if (type === `xstate.done.actor.${actorId}`) return { output }
  return type === `xstate.error.actor.${actorId}` ? { error } : undefined
}

/** An event without what belongs to this process: the snapshot of an observable has its subscription in it. */
function lasting(logic: AnyActorLogic, event: AnyEventObject): AnyEventObject {
  if (!event.type.startsWith('xstate.snapshot.')) return event
  return {
    ...event,
    snapshot: logic.getPersistedSnapshot((event as { snapshot?: unknown }).snapshot as Snapshot<unknown>),
  }
}

interface ActorOptions {
  readonly actorId: string
  readonly input: unknown
  readonly sync: boolean
  readonly abort: AbortSignal
  heard(event: AnyEventObject): void
}

/** The actor, with a parent that hears what it says, and stops it. */
function runActor(
  executionId: string,
  logic: AnyActorLogic,
  { actorId, input, sync, abort, heard }: ActorOptions,
): AnyActorRef & { start(): unknown } {
  const parent = createActor(
    fromTransition((none, event: AnyEventObject, scope) => {
      if (event.type === 'stop' && abort.aborted) scope.stopChild(actor)
      else if (!abort.aborted) heard(event)
      return none
    }, undefined),
  ).start()
  // `syncSnapshot` is how `invoke` asks for `onSnapshot`; the type does not show it.
  const options = { id: actorId, parent, input, syncSnapshot: sync }
  const actor = createActor(logic, options)
  confine(actor, executionId)
  abort.addEventListener('abort', () => parent.send({ type: 'stop' }))
  return actor
}
