/** Carries on what commits have enqueued: first what this process has committed itself, by its own seqs. */
import type { DueTimer, Emit } from '@harel/store-base'
import { KeyedQueue, Pool } from './concurrency.js'
import { isPassing } from './errors.js'
import type { Committed, Host } from './host.js'
import { perform, type SpawnWork, spawnWork, subjectOf, type Work } from './work.js'

/** How much may wait in memory. What finds no room is left to the sweeps: it is in the store. */
const ROOM = 10_000

/** How many started children are remembered, whose entries a sweep may then remove without looking for the child. */
const REMEMBERED = 10_000

/** An entry of the outbox on its way. */
export interface Entry {
  readonly seq: number
  readonly work: Work | undefined
}

export class Relay {
  readonly #host: Host
  readonly #pool: Pool
  readonly #acks: Acks
  /** Seqs of the outbox that this process is working on. */
  readonly #known = new Set<number>()
  readonly #started = new Set<string>()
  /** What is for one execution is done in the order in which it was committed: its start, then its events. */
  readonly #order = new KeyedQueue()

  constructor(host: Host) {
    this.#host = host
    this.#pool = new Pool(host.settings.concurrency, ROOM)
    this.#acks = new Acks(host)
  }

  /** Takes up all that a commit has enqueued; returns at once. */
  commit({ execution, draft, seqs }: Committed): void {
    for (const spawn of draft.spawns) {
      const work = spawnWork({ ...spawn, parentId: execution.id })
      if (work !== undefined) this.#add(() => this.#order.run(work.childId, () => this.spawn(work)))
    }
    const byTarget = Map.groupBy(
      draft.emits.map((emit, index): Entry & { emit: Emit } => ({
        emit,
        seq: seqs[index] ?? 0,
        work: eventWork(emit),
      })),
      ({ emit }) => emit.targetId,
    )
    for (const [target, entries] of byTarget) {
      for (const { seq } of entries) this.#known.add(seq)
      const added = this.#add(() => this.#order.run(target ?? '', () => this.events(entries)))
      if (!added) for (const { seq } of entries) this.#known.delete(seq)
    }
  }

  /** Whether this process is working on the entry anyway. */
  has(seq: number): boolean {
    return this.#known.has(seq)
  }

  #add(task: () => Promise<unknown>, dropped?: () => void): boolean {
    return this.#pool.add(async () => {
      try {
        await task()
      } catch (error) {
        this.#host.settings.onWarning('an entry was left to the next sweep', error)
      }
    }, dropped)
  }

  /** Runs it with the others, as far as there is room. */
  run(task: () => Promise<void>): Promise<void> {
    return new Promise((resolve) => {
      if (!this.#add(() => task().finally(resolve), resolve)) resolve()
    })
  }

  timer(timer: DueTimer): void {
    this.#add(() => this.settle({ kind: 'timer', ...timer }))
  }

  /** Entries for one target, in their order. @returns the seqs of those that are left alone */
  async events(entries: readonly Entry[]): Promise<number[]> {
    const left: number[] = []
    for (const { seq } of entries) this.#known.add(seq)
    try {
      for (const { seq, work } of entries) {
        if (work === undefined || (await this.settle(work))) this.#acks.add(seq)
        else left.push(seq)
      }
      return left
    } finally {
      for (const { seq } of entries) this.#known.delete(seq)
    }
  }

  async spawn(work: SpawnWork): Promise<boolean> {
    const settled = await this.settle(work, true)
    if (settled) this.#remember(work.childId)
    return settled
  }

  #remember(childId: string): void {
    this.#started.add(childId)
    if (this.#started.size <= REMEMBERED) return
    for (const oldest of this.#started) {
      this.#started.delete(oldest)
      return
    }
  }

  /** Whether this process has started the child itself. */
  hasStarted(childId: string): boolean {
    return this.#started.has(childId)
  }

  /** An entry of a sweep. True: it may be removed. */
  async sweptSpawn(work: SpawnWork): Promise<boolean> {
    return this.#started.delete(work.childId) || this.settle(work)
  }

  /**
   * Does it, or hands it over to `Deliveries`. True: it is out of its queue's way, and may be removed there.
   */
  async settle(work: Work, isFresh = false): Promise<boolean> {
    try {
      return await this.#host.sweep.holding(subjectOf(work), () => perform(this.#host, work, isFresh))
    } catch (error) {
      if (this.#host.signal.aborted || isPassing(error)) return false
      if (!(await this.#host.deliveries.takeOver(work, error))) return false
      // A timer that is done is gone by itself; this one has moved.
      if (work.kind === 'timer') await this.#host.store.deleteTimer(work.executionId, work.path, work.fireAt)
      return true
    }
  }

  /** Leaves to others what has not begun. */
  stop(): void {
    this.#pool.clear()
  }

  /** Until nothing is under way and nothing waits. */
  async idle(): Promise<void> {
    do {
      await this.#pool.idle()
      await this.#acks.idle()
    } while (this.#pool.busy)
  }
}

export const eventWork = ({ targetId, event }: Emit): Work | undefined =>
  targetId === null ? undefined : { kind: 'event', targetId, event }

/** Removes entries from the outbox, those that are done while a removal is under way with the next one. */
class Acks {
  readonly #host: Host
  #done: number[] = []
  #flushing: Promise<void> | undefined

  constructor(host: Host) {
    this.#host = host
  }

  /** Is not waited for: an entry that stays is found handled by whoever delivers it again. */
  add(seq: number): void {
    this.#done.push(seq)
    this.#flushing ??= this.#flush().finally(() => {
      this.#flushing = undefined
    })
  }

  async #flush(): Promise<void> {
    while (this.#done.length > 0) {
      try {
        await this.#host.store.ackOutbox(this.#done.splice(0))
      } catch (error) {
        this.#host.settings.onWarning('handled entries stay in the outbox until the next sweep', error)
      }
    }
  }

  async idle(): Promise<void> {
    await this.#flushing
  }
}
