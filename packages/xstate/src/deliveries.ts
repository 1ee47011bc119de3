/**
 * Work that failed. It is moved out of its queue into an execution of its own (definition `harel.delivery`), which counts
 * the attempts, carries the last error, and has a timer for the next one: so it survives restarts on every store, holds up
 * nothing behind it, and costs nothing until it is due. After the last attempt the execution is FAILED: parked.
 */
import { type Execution, executions, isFinished, type JsonValue, newExecution, StoreConflict } from '@harel/store-base'
import { ControlRefused, isFinal, UnknownExecution, UnknownMachine } from './errors.js'
import type { Firing } from './handle.js'
import { type Draft, type Host, loadReadable, newDraft } from './host.js'
import { DELIVERY, hashOf, RETRY_PATH } from './reserved.js'
import { RESERVED_KEY } from './snapshot.js'
import { errorText } from './step.js'
import { update, write } from './update.js'
import { describeWork, perform, subjectOf, type Work, whyUnreadable } from './work.js'

/** The first pause and the longest, in seconds. */
const FIRST = 0.25
const LONGEST = 60

/** Something that could not be done, with what stood in the way. */
export interface Parked {
  /** Of the entry, for `unpark` and `discard`. */
  readonly id: string
  readonly kind: Work['kind']
  /** The execution that it is for; empty where the entry cannot be read. */
  readonly executionId: string
  readonly work: Work
  readonly attempts: number
  readonly error: string
  /** When it failed first, in epoch seconds. */
  readonly since: number | null
}

interface PersistedDelivery {
  /** As text: inside another record it might be nested too deep for any. */
  work: string
  attempts: number
}

/** Undefined: it was not written by this package. */
function deliveryOf({ definitionId, context }: Execution): { work: Work; attempts: number } | undefined {
  const stored = context[RESERVED_KEY] as unknown as PersistedDelivery | undefined
  if (definitionId !== DELIVERY || typeof stored?.work !== 'string') return undefined
  return { work: JSON.parse(stored.work) as Work, attempts: stored.attempts }
}

/** Tells it from others of its kind that are for the same execution. */
function nameOf(work: Work): string {
  if (work.kind === 'event') return work.event.id
  if (work.kind === 'timer') return `${work.path} ${work.fireAt}`
  return work.kind === 'unreadable' ? `${work.queue} ${work.seq}` : ''
}

const idOf = (work: Work): string => {
  // Hashed, because the names together may be longer than an id can be.
  const key = JSON.stringify([work.kind, subjectOf(work), nameOf(work)])
  return `${DELIVERY}:${hashOf(key).slice(0, 32)}`
}

function keep(execution: Execution, work: Work, attempts: number): void {
  const next: PersistedDelivery = { work: JSON.stringify(work), attempts }
  execution.context = { [RESERVED_KEY]: next as unknown as JsonValue }
}

export class Deliveries {
  readonly #host: Host

  constructor(host: Host) {
    this.#host = host
  }

  #pause(attempts: number): number {
    const { clock, random } = this.#host.settings
    return clock() + Math.min(LONGEST, FIRST * 2 ** attempts) * (0.5 + random() / 2)
  }

  /** Takes over work that has failed once. True: it may leave its queue. */
  async takeOver(work: Work, error: unknown): Promise<boolean> {
    const execution = newExecution({ id: idOf(work), definitionId: DELIVERY, status: 'RUNNING', activePath: 'waiting' })
    const draft = this.#failed(execution, work, 1, error)
    const { onWarning } = this.#host.settings
    try {
      await write(this.#host, execution, draft)
      onWarning(`${describeWork(work)} has failed and will be tried again`, error)
      return true
    } catch (refused) {
      // It was taken over before, by a process that did not live to say so.
      if (refused instanceof StoreConflict) return true
      if (!isFinal(refused)) throw refused
      onWarning(`${describeWork(work)} stays in its queue, for the store does not take it over`, refused)
      return false
    }
  }

  #failed(execution: Execution, work: Work, attempts: number, error: unknown): Draft {
    const draft = newDraft()
    const { maxAttempts, onWarning } = this.#host.settings
    keep(execution, work, attempts)
    execution.error = errorText(error)
    if (attempts < maxAttempts) {
      draft.timers.set(RETRY_PATH, { action: 'schedule', path: RETRY_PATH, fireAt: this.#pause(attempts) })
    } else {
      execution.status = 'FAILED'
      execution.activePath = 'parked'
      draft.timers.set(RETRY_PATH, { action: 'cancel', path: RETRY_PATH })
      onWarning(`${describeWork(work)} is parked after ${attempts} attempts`, error)
    }
    return draft
  }

  /** Another attempt, when its time has come. */
  async retry(id: string): Promise<Firing> {
    const delivery = await this.#host.store.load(id)
    if (delivery === undefined) return 'gone'
    const found = deliveryOf(delivery)
    if (found === undefined) throw UnknownMachine.foreign(delivery)
    if (delivery.status === 'FAILED' || isFinished(delivery.status)) return 'gone'
    // Held from outside of this package.
    if (delivery.status !== 'RUNNING') return 'waiting'
    const { work, attempts } = found
    let failure: { error: unknown } | undefined
    try {
      if (await perform(this.#host, work)) {
        await this.#host.store.purge(id, delivery.version)
        return 'fired'
      }
    } catch (error) {
      failure = { error }
    }
    await update<void>(this.#host, id, undefined, ({ execution }) => {
      if (execution?.version !== delivery.version) return { result: undefined }
      if (failure !== undefined) {
        return { result: undefined, draft: this.#failed(execution, work, attempts + 1, failure.error) }
      }
      // Its machine is not known here; somebody else may know it.
      const draft = newDraft()
      draft.timers.set(RETRY_PATH, { action: 'schedule', path: RETRY_PATH, fireAt: this.#pause(attempts) })
      return { result: undefined, draft }
    })
    return 'fired'
  }

  /** All that is parked, in constant memory. */
  async *parked(): AsyncGenerator<Parked, void, undefined> {
    for await (const { id } of executions(this.#host.store, { definitionId: DELIVERY, status: 'FAILED' })) {
      const delivery = await loadReadable(this.#host, id)
      const found = delivery?.status === 'FAILED' ? deliveryOf(delivery) : undefined
      if (!delivery || found === undefined) continue
      const { work, attempts } = found
      const { error, createdAt: since } = delivery
      yield { id, kind: work.kind, executionId: subjectOf(work), work, attempts, error: error ?? '', since }
    }
  }

  /** Gives parked work a new series of attempts, the first one at once. @throws UnknownExecution, ControlRefused */
  unpark(id: string): Promise<void> {
    return update<void>(this.#host, id, undefined, ({ execution }) => {
      if (execution === undefined) throw new UnknownExecution(id)
      const found = deliveryOf(execution)
      if (found === undefined) throw new ControlRefused(id, 'is no parked entry')
      if (execution.status !== 'FAILED') return { result: undefined }
      const draft = newDraft()
      execution.status = 'RUNNING'
      execution.activePath = 'waiting'
      keep(execution, found.work, 0)
      const fireAt = this.#host.settings.clock()
      draft.timers.set(RETRY_PATH, { action: 'schedule', path: RETRY_PATH, fireAt })
      return { result: undefined, draft }
    })
  }

  /** Removes parked work for good. @throws UnknownExecution, ControlRefused */
  async discard(id: string): Promise<void> {
    const delivery = await this.#host.store.load(id)
    if (delivery === undefined) throw new UnknownExecution(id)
    const work = delivery.status === 'FAILED' ? deliveryOf(delivery)?.work : undefined
    if (work === undefined) throw new ControlRefused(id, 'is not parked')
    // What has been repaired since is no longer what was to be given up.
    if (work.kind === 'unreadable' && (await whyUnreadable(this.#host, work)) !== undefined) {
      const { store } = this.#host
      await (work.queue === 'outbox' ? store.ackOutbox(work.seq) : store.ackSpawn(work.seq))
    }
    await this.#host.store.purge(id, delivery.version)
  }
}
