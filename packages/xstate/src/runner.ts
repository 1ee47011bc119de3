import {
  checkKey,
  type Execution,
  ExecutionAlreadyExists,
  type ExecutionStore,
  executions,
  isFinished,
  newEvent,
  newId,
  StoreConflict,
  spawns,
} from '@harel/store-base'
import type { AnyEventObject, AnyStateMachine, SnapshotFrom } from 'xstate'
import { checkCancel, checkCreate, checkListener, checkRedrive, checkRun, checkSend, checkStore } from './arguments.js'
import { atMost, guarded, KeyedQueue, pause, Waits } from './concurrency.js'
import { cancel, redrive, resume, suspend, terminate } from './control.js'
import { Deliveries, type Parked } from './deliveries.js'
import { RunnerClosed, UnknownEvent, UnknownExecution } from './errors.js'
import { knownEvents, matches } from './events.js'
import { type Handled, handleEvent, start } from './handle.js'
import { type Committed, type Host, loadReadable } from './host.js'
import { Invocations } from './invocations.js'
import { Machines } from './machines.js'
import { type PurgeFinishedOptions, type PurgeOptions, type PurgeReport, purge, purgeFinished } from './purge.js'
import { Relay } from './relay.js'
import { INVOKED } from './reserved.js'
import { checkSettings, type RunnerOptions, type Settings } from './settings.js'
import { RESERVED_KEY, restore } from './snapshot.js'
import { findMachine } from './step.js'
import { Sweep } from './sweep.js'
import { Alarms } from './timers.js'
import type { CreateArguments, Emitted, EmittedOf, IdOf, MachineById, Sendable } from './types.js'
import { spawnWork } from './work.js'

export interface SendOptions {
  /** By which the event is told from others: with one that was handled before, nothing happens. Default: a random one. */
  eventId?: string
}

/** How long, in seconds, `run` and `close` wait for steps that have begun. */
const PATIENCE = 5

/**
 * Takes an event that a machine has emitted, and the execution as it was committed. Nobody waits for it; what it throws or
 * rejects with is reported to `onWarning`.
 */
export type Listener<Event> = (event: Event, execution: Execution) => void

/**
 * Runs XState machines durably on any execution store.
 *
 * Each event is one commit: the new state, what the machine sends, starts and delays, and the mark of the event are
 * written together or not at all, and only onto the state that they were computed from. So the effect of an event on its
 * execution is exactly once, whoever delivers it and how often. Actions run before the commit and what machines invoke
 * runs after it, both at least once, with a key by which others can tell a repetition (`currentEffect`).
 *
 * Any number of runners, in any number of processes, may work on one store. Methods reject with a `RunnerError`, or with
 * the `StoreError` that the store has raised; in both cases nothing is half done.
 */
export class DurableRunner<const M extends readonly AnyStateMachine[]> implements AsyncDisposable {
  readonly #host: Host
  readonly #settings: Settings
  readonly #relay: Relay
  readonly #alarms: Alarms
  readonly #listeners = new Map<string, Set<{ readonly listener: Listener<AnyEventObject> }>>()
  readonly #abort = new AbortController()
  /** Ends `run`. */
  readonly #closing = new AbortController()
  #ready: Promise<void> | undefined
  #closed: Promise<void> | undefined

  /** @throws InvalidMachine, InvalidArgument */
  constructor(store: ExecutionStore, options: RunnerOptions<M>) {
    checkStore(store)
    const settings = checkSettings(options)
    const host = {
      id: newId(),
      store,
      machines: new Machines(options.machines),
      settings,
      queue: new KeyedQueue(),
      waits: new Waits(),
      signal: this.#abort.signal,
      committed: (commit: Committed) => this.#committed(commit),
    } as { -readonly [K in keyof Host]: Host[K] }
    this.#settings = settings
    this.#relay = new Relay(host)
    host.invocations = new Invocations(host)
    host.deliveries = new Deliveries(host)
    host.sweep = new Sweep(host, this.#relay)
    this.#host = host
    this.#alarms = new Alarms(settings.clock, (timer) => this.#relay.timer(timer))
  }

  #committed(commit: Committed): void {
    const { execution, draft } = commit
    for (const timer of draft.timers.values()) {
      if (timer.action === 'schedule') {
        this.#alarms.add({ executionId: execution.id, path: timer.path, fireAt: timer.fireAt })
      }
    }
    if (execution.definitionId === INVOKED) this.#host.invocations.changed(execution)
    if (!this.#closing.signal.aborted) this.#relay.commit(commit)
    for (const event of draft.emitted) {
      for (const type of [event.type, '*']) {
        for (const { listener } of this.#listeners.get(type) ?? []) this.#call(() => listener(event, execution))
      }
    }
    for (const log of draft.logs) this.#call(log)
  }

  #call(listener: () => unknown): void {
    guarded(listener, (error) => this.#settings.onWarning('a listener failed', error))
  }

  /** The first one publishes the definitions. */
  async #open(): Promise<Host> {
    if (this.#closed !== undefined) throw new RunnerClosed()
    const { machines, store } = this.#host
    this.#ready ??= machines.publish(store, this.#settings.clock(), this.#settings.onWarning)
    try {
      await this.#ready
    } catch (error) {
      this.#ready = undefined
      throw error
    }
    return this.#host
  }

  /**
   * Starts a machine as a new execution and returns that as committed. What it sends and starts is carried on from then
   * on, without being waited for.
   *
   * @throws ExecutionAlreadyExists, UnknownMachine, NotSerializable
   */
  async create<Id extends IdOf<M[number]>>(
    definitionId: Id,
    ...[options]: CreateArguments<MachineById<M[number], Id>>
  ): Promise<Execution> {
    const checked = checkCreate(options)
    const definition = this.#host.machines.newest(checkKey('definitionId', definitionId))
    const { id } = checked
    const host = await this.#open()
    // Before its actions are run for nothing; the commit is what decides.
    if (id !== undefined && (await host.store.load(id)) !== undefined) throw new ExecutionAlreadyExists(id)
    try {
      return await start(host, { definition, ...checked })
    } catch (error) {
      if (error instanceof StoreConflict) throw new ExecutionAlreadyExists(error.executionId)
      throw error
    }
  }

  /**
   * Lets an execution handle an event, and resolves when that is committed. What it sends and starts is carried on from
   * then on, without being waited for.
   *
   * @throws UnknownExecution, UnknownEvent, UnknownMachine, MachineChanged, TooManyConflicts, NotSerializable, …
   */
  async send(id: string, event: Sendable<M[number]>, options: SendOptions = {}): Promise<Handled> {
    const sent = newEvent(checkSend(id, event, options))
    const host = await this.#open()
    return handleEvent(host, id, sent, (execution) => this.#refuseUnknown(execution, sent.kind))
  }

  #refuseUnknown(execution: Execution, type: string): void {
    if (this.#settings.unknownEvents === 'pass' || execution.definitionId === INVOKED) return
    const known = knownEvents(findMachine(this.#host, execution).definition.machine)
    if (!known.some((descriptor) => matches(descriptor, type))) throw new UnknownEvent(execution.id, type, known)
  }

  /** Calls the listener with each event of this type (`*`: each event) that a machine `emit`s in a step of this process. */
  on<Type extends Emitted<M[number]>['type'] | '*'>(
    type: Type,
    listener: Listener<EmittedOf<M[number], Type>>,
  ): Disposable {
    checkListener(type, listener)
    const listeners = this.#listeners.get(type) ?? new Set()
    // One of its own for each call: a listener may be given twice, and be taken back once.
    const entry = { listener: listener as Listener<AnyEventObject> }
    this.#listeners.set(type, listeners.add(entry))
    return { [Symbol.dispose]: () => void listeners.delete(entry) }
  }

  /**
   * What the machine of an execution looks like now, as XState shows it. Its type is that of the machines that were given;
   * for one of them, or for a machine that they invoke, name it: `snapshot<typeof shipment>(id)`. Nothing checks that.
   *
   * @throws UnknownExecution, MachineChanged, ControlRefused when its start has not succeeded, so that it has no state
   */
  async snapshot<Machine extends AnyStateMachine = M[number]>(id: string): Promise<SnapshotFrom<Machine>> {
    const host = await this.#open()
    const execution = await host.store.load(id)
    if (execution === undefined) throw new UnknownExecution(id)
    const { definition, stored } = findMachine(host, execution)
    return restore(execution, stored, definition).snapshot as SnapshotFrom<Machine>
  }

  /**
   * Works until the signal is aborted or the runner is closed: fires timers, and takes up what a crash has orphaned.
   * What goes wrong is reported to `onWarning` and tried again. Then it waits until nothing is under way, for five
   * seconds at the most: as long as the runner is not closed, events may come from elsewhere for ever.
   */
  async run(options: { signal?: AbortSignal } = {}): Promise<void> {
    const signal = checkRun(options)
    await this.#open()
    const ends = AbortSignal.any([this.#closing.signal, ...(signal === undefined ? [] : [signal])])
    this.#alarms.start()
    try {
      await this.#sweeps(ends)
    } finally {
      this.#alarms.stop()
    }
    await atMost(PATIENCE, this.#relay.idle())
  }

  async #sweeps(ends: AbortSignal): Promise<void> {
    for (let failures = 0; !ends.aborted; ) {
      let seconds: number
      try {
        seconds = await this.#host.sweep.round()
        failures = 0
      } catch (error) {
        failures += 1
        seconds = Math.min(10, 0.1 * 2 ** failures) * (0.5 + this.#settings.random() / 2)
        this.#settings.onWarning('a sweep failed and will be made again', error)
      }
      await pause(seconds, ends)
    }
  }

  /** One part of what `run` does over and over, for those who are called by a clock. @returns seconds until the next is due */
  async sweep(): Promise<number> {
    const host = await this.#open()
    return host.sweep.round()
  }

  /** Until what this process has taken up is done; invoked promises and callbacks may still be running. */
  async settled(): Promise<void> {
    await this.#relay.idle()
  }

  /** As `cancel` in control.ts says. @throws UnknownExecution, TooManyConflicts */
  async cancel(id: string, options: { reason?: string } = {}): Promise<Execution> {
    const { reason } = checkCancel(id, options)
    return cancel(await this.#open(), id, reason)
  }

  /** Ends it where it is, CANCELLED, and its children with it. @throws UnknownExecution, TooManyConflicts */
  async terminate(id: string): Promise<Execution> {
    return terminate(await this.#open(), id)
  }

  /** Holds it, and its children, until `resume`. @throws UnknownExecution, ControlRefused, TooManyConflicts */
  async suspend(id: string): Promise<Execution> {
    return suspend(await this.#open(), id)
  }

  /** Lets it go on where it was suspended. @throws UnknownExecution, ControlRefused, TooManyConflicts */
  async resume(id: string): Promise<Execution> {
    return resume(await this.#open(), id)
  }

  /** Lets a FAILED execution try again what it has failed on. @throws UnknownExecution, ControlRefused, TooManyConflicts */
  async redrive(id: string, options: { skip?: boolean } = {}): Promise<Execution> {
    const { skip } = checkRedrive(id, options)
    return redrive(await this.#open(), id, skip)
  }

  /** What could not be done in `maxAttempts` attempts. */
  async *parked(): AsyncGenerator<Parked, void, undefined> {
    yield* (await this.#open()).deliveries.parked()
  }

  /** Has something parked tried again. @throws UnknownExecution, ControlRefused */
  async unpark(id: string): Promise<void> {
    await (await this.#open()).deliveries.unpark(id)
  }

  /** Gives something parked up for good. @throws UnknownExecution, ControlRefused */
  async discard(id: string): Promise<void> {
    await (await this.#open()).deliveries.discard(id)
  }

  /**
   * The ids of the executions of a machine that are not finished and were stored with this version, and of children that
   * are still to be started with it. Loads each.
   */
  async *stuckOn(definitionId: string, version: string): AsyncGenerator<string, void, undefined> {
    checkKey('definitionId', definitionId)
    checkKey('version', version)
    const host = await this.#open()
    const { store } = host
    for await (const { id, status } of executions(store, { definitionId })) {
      if (isFinished(status)) continue
      const execution = await loadReadable(host, id)
      const stored = execution?.context[RESERVED_KEY] as { version?: unknown } | undefined
      if (stored?.version === version) yield id
    }
    for await (const entry of spawns(store)) {
      const data = spawnWork(entry)?.data
      if (data?.definitionId !== definitionId || data.version !== version) continue
      // An entry may outlive the start of its child.
      if ((await loadReadable(host, entry.childId)) === undefined) yield entry.childId
    }
  }

  /** As `purge` in purge.ts says. */
  async purge(id: string, options?: PurgeOptions): Promise<boolean> {
    return purge(await this.#open(), id, options)
  }

  /** As `purgeFinished` in purge.ts says. */
  async purgeFinished(options: PurgeFinishedOptions): Promise<PurgeReport> {
    return purgeFinished(await this.#open(), options)
  }

  /**
   * Finishes the steps that have begun, for five seconds at the most, and leaves the rest to others, who find it in the
   * store. The store stays open. Calling it again is no error.
   */
  close(): Promise<void> {
    this.#closed ??= this.#close()
    return this.#closed
  }

  async #close(): Promise<void> {
    this.#closing.abort()
    this.#alarms.clear()
    this.#relay.stop()
    await atMost(PATIENCE, this.#idle())
    await atMost(PATIENCE, this.#host.invocations.close())
    this.#abort.abort(new RunnerClosed())
    // What does not heed the signal is not waited for: it commits nothing any more.
    await atMost(PATIENCE, this.#idle())
  }

  /** Until no step is under way, whoever has asked for it. */
  async #idle(): Promise<void> {
    await Promise.all([this.#relay.idle(), this.#host.queue.idle()])
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }
}
