/**
 * Work that failed. It is moved out of its queue into an execution of its own (definition `harel.delivery`), which counts
 * the attempts, carries the last error, and has a timer for the next one: so it survives restarts on every store, holds up
 * nothing behind it, and costs nothing until it is due. After the last attempt the execution is FAILED: parked.
 */
import { type Execution, executions, isFinished, type JsonValue, newExecution, StoreConflict } from '@harel/store-base'
import { pause } from './concurrency.js'
import { ControlRefused, isFinal, TooManyConflicts, UnknownExecution, UnknownMachine } from './errors.js'
import type { Firing } from './handle.js'
import { type Draft, type Host, loadReadable, newDraft } from './host.js'
import { DELIVERY, hashOf, RETRY_PATH } from './reserved.js'
import { RESERVED_KEY } from './snapshot.js'
import { errorText } from './step.js'
import { retryPause, update, write } from './update.js'
import { describeWork, parseWork, perform, subjectOf, type Work, whyUnreadable } from './work.js'

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

/** For people. */
const DAMAGED = 'what it was to deliver cannot be read'
const REMEDY = `${DAMAGED}; discard removes it`

interface PersistedDelivery {
  /** As text: inside another record it might be nested too deep for any. */
  work: string
  attempts: number
}

/** Undefined: it is damaged. */
function contentOf({ context }: Execution): { work: Work; attempts: number } | undefined {
  const stored = context[RESERVED_KEY] as Partial<PersistedDelivery> | null | undefined
  const work = parseWork(stored?.work)
  return work && { work, attempts: typeof stored?.attempts === 'number' ? stored.attempts : 0 }
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

/** Others may call theirs alike, but not by such an id. */
const isOurs = ({ id, definitionId }: Execution): boolean => definitionId === DELIVERY && id.startsWith(`${DELIVERY}:`)

const isParked = (execution: Execution): boolean => isOurs(execution) && execution.status === 'FAILED'

function park(execution: Execution, draft: Draft): void {
  execution.status = 'FAILED'
  execution.activePath = 'parked'
  draft.timers.set(RETRY_PATH, { action: 'cancel', path: RETRY_PATH })
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
      if (isParked(execution)) this.#tellParked(work, 1, error)
      else onWarning(`${describeWork(work)} has failed and will be tried again`, error)
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
    keep(execution, work, attempts)
    execution.error = errorText(error)
    // A row that cannot be read does not get better by itself; when it has been repaired, a sweep finds it.
    if (work.kind === 'unreadable' || attempts >= this.#host.settings.maxAttempts) park(execution, draft)
    else draft.timers.set(RETRY_PATH, { action: 'schedule', path: RETRY_PATH, fireAt: this.#pause(attempts) })
    return draft
  }

  #tellParked(work: Work, attempts: number, error: unknown): void {
    const count = attempts === 1 ? 'one attempt' : `${attempts} attempts`
    this.#host.settings.onWarning(`${describeWork(work)} is parked after ${count}`, error)
  }

  /** Another attempt, when its time has come. */
  async retry(id: string): Promise<Firing> {
    const delivery = await this.#host.store.load(id)
    if (delivery === undefined) return 'gone'
    if (!isOurs(delivery)) throw UnknownMachine.foreign(delivery)
    if (delivery.status === 'FAILED' || isFinished(delivery.status)) return 'gone'
    // Held from outside of this package.
    if (delivery.status !== 'RUNNING') return 'waiting'
    const found = contentOf(delivery)
    if (found === undefined) return this.#parkDamaged(delivery)
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
    const parked = await update<boolean>(this.#host, id, undefined, ({ execution }) => {
      if (execution?.version !== delivery.version) return { result: false }
      if (failure !== undefined) {
        const draft = this.#failed(execution, work, attempts + 1, failure.error)
        return { result: isParked(execution), draft }
      }
      // Its machine is not known here; somebody else may know it.
      const draft = newDraft()
      draft.timers.set(RETRY_PATH, { action: 'schedule', path: RETRY_PATH, fireAt: this.#pause(attempts) })
      return { result: false, draft }
    })
    if (parked) this.#tellParked(work, attempts + 1, failure?.error)
    return 'fired'
  }

  /** Nobody can tell any more what it was to deliver. */
  async #parkDamaged({ id, version }: Execution): Promise<Firing> {
    await update<void>(this.#host, id, undefined, ({ execution }) => {
      if (execution?.version !== version) return { result: undefined }
      const draft = newDraft()
      execution.error = DAMAGED
      park(execution, draft)
      return { result: undefined, draft }
    })
    this.#host.settings.onWarning(`${id} is parked: ${REMEDY}`)
    return 'fired'
  }

  /** All that is parked, in constant memory. */
  async *parked(): AsyncGenerator<Parked, void, undefined> {
    for await (const { id } of executions(this.#host.store, { definitionId: DELIVERY, status: 'FAILED' })) {
      const delivery = await loadReadable(this.#host, id)
      if (!delivery || !isParked(delivery)) continue
      const found = contentOf(delivery)
      if (found === undefined) {
        this.#host.settings.onWarning(`${id} is passed over: ${REMEDY}`)
        continue
      }
      const { work, attempts } = found
      // It has been repaired, or somebody has removed it.
      if (work.kind === 'unreadable' && (await whyUnreadable(this.#host, work)) === undefined) {
        await this.#host.store.purge(id, delivery.version)
        continue
      }
      const { error, createdAt: since } = delivery
      yield { id, kind: work.kind, executionId: subjectOf(work), work, attempts, error: error ?? '', since }
    }
  }

  /** Gives parked work a new series of attempts, the first one at once. @throws UnknownExecution, ControlRefused */
  unpark(id: string): Promise<void> {
    return update<void>(this.#host, id, undefined, ({ execution }) => {
      if (execution === undefined) throw new UnknownExecution(id)
      if (!isOurs(execution)) throw new ControlRefused(id, 'is no parked entry')
      const found = contentOf(execution)
      if (found === undefined) throw new ControlRefused(id, `cannot be tried again: ${REMEDY}`)
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

  /** Removes parked work for good. @throws UnknownExecution, ControlRefused, TooManyConflicts */
  async discard(id: string): Promise<void> {
    const { store } = this.#host
    const delivery = await this.#purgeParked(id)
    const work = delivery && contentOf(delivery)?.work
    // What has been repaired since is no longer what was to be given up.
    if (work?.kind !== 'unreadable' || (await whyUnreadable(this.#host, work)) === undefined) return
    await (work.queue === 'outbox' ? store.ackOutbox(work.seq) : store.ackSpawn(work.seq))
  }

  /** What was removed; undefined: somebody else has done so meanwhile. */
  async #purgeParked(id: string): Promise<Execution | undefined> {
    const { store, settings, signal } = this.#host
    for (let attempt = 1; ; attempt++) {
      const delivery = await store.load(id)
      if (delivery === undefined && attempt > 1) return undefined
      if (delivery === undefined) throw new UnknownExecution(id)
      if (!isParked(delivery)) throw new ControlRefused(id, 'is not parked')
      if (await store.purge(id, delivery.version)) return delivery
      if (attempt >= settings.maxConflicts) throw new TooManyConflicts(id, attempt)
      await pause(retryPause(attempt) * settings.random(), signal)
    }
  }
}
