/**
 * Finds what nobody carries on: entries and timers that a crash has orphaned.
 *
 * All runners of a prefix share one sweep, through one execution (id and definition `harel.sweep`): it says from where
 * the queues are to be read on, which parts of them are being worked on and until when, and when the next sweep is due.
 * Whoever commits the next position owns the page that it has read. So each row is read once, however many runners there
 * are; and what a runner has claimed and not removed is found again by the next sweep when the claim has run out.
 */
import {
  CorruptRecord,
  copyExecution,
  type DueTimer,
  type Execution,
  newExecution,
  type OutboxEntry,
  type SpawnEntry,
  StoreConflict,
} from '@harel/store-base'
import { Claims } from './claims.js'
import { type Host, loadReadable, newDraft } from './host.js'
import { type Entry, eventWork, type Relay } from './relay.js'
import { SWEEP } from './reserved.js'
import { type Page, type Queue, readPage } from './sweep-page.js'
import {
  holdsSeq,
  holdsTimer,
  isAhead,
  type Part,
  type Passed,
  type Positions,
  SHORTEST,
  type SweepState,
  setState,
  stateOf,
} from './sweep-state.js'
import { write } from './update.js'
import { describeWork, spawnWork } from './work.js'

/** How long it may take to read a page, in seconds, before others read it. */
const READING = 5

/** What this process has found to be for others is not looked at again for so long, in seconds. */
const LEFT_ALONE = 30
const MOST_LEFT_ALONE = 10_000

/** A row that is parked stays so. */
const LEFT_PARKED = 600

const newSweep = (): Execution => newExecution({ id: SWEEP, definitionId: SWEEP, status: 'RUNNING' })

/** First and last of what was read. */
const span = <T>(entries: readonly T[]): [T, T] | undefined => {
  const [first, last] = [entries[0], entries.at(-1)]
  return first === undefined || last === undefined ? undefined : [first, last]
}

export class Sweep {
  readonly #host: Host
  readonly #relay: Relay
  /** Seqs and timers that are not for this process, with the time until which it leaves them alone. */
  readonly #left = new Map<string, number>()
  readonly #claims: Claims
  /** The queues of which it has been said that they have entries beyond all that can be removed. */
  readonly #beyond = new Set<Queue>()

  constructor(host: Host, relay: Relay) {
    this.#host = host
    this.#relay = relay
    this.#claims = new Claims(host)
  }

  /**
   * Works on an execution; if that takes so long that others would soon take it for orphaned, they are told of it until it
   * is done.
   */
  holding<T>(executionId: string, work: () => Promise<T>): Promise<T> {
    return this.#claims.holding(executionId, work)
  }

  /**
   * Claims the next page and works through it.
   *
   * @returns after how many seconds it is worth while to come again
   */
  async round(): Promise<number> {
    const { settings } = this.#host
    const now = settings.clock()
    const execution = copyExecution((await this.#load()) ?? newSweep())
    const state = stateOf(execution)
    const { maxPause } = settings
    if (isAhead(state.nextAt, now, maxPause)) return this.#until(Math.min(maxPause, state.nextAt - now))
    const soon = SHORTEST * settings.random()
    if (state.owner !== this.#host.id) {
      // Others are about: only one of them is to read the page.
      if (isAhead(state.reading ?? 0, now, READING)) return soon
      if (!(await this.#commit(execution, { ...state, owner: this.#host.id, reading: now + READING }))) return soon
    }
    const page = await this.#read(state, now)
    const mine = this.#filter(page, state, now)
    const next = this.#advance(state, page, mine, now)
    if (!(await this.#commit(execution, next))) return soon
    await Promise.all([this.#takeOver(mine), this.#work(mine)])
    return this.#until(Math.min(maxPause, Math.max(0, next.nextAt - settings.clock())))
  }

  /** What all share. Where it cannot be read it is removed: it holds nothing that is not found again. */
  async #load(): Promise<Execution | undefined> {
    const { store, settings } = this.#host
    try {
      return await store.load(SWEEP)
    } catch (error) {
      if (!(error instanceof CorruptRecord)) throw error
      const version = await this.#versionFound()
      // Others may have come before.
      const again = await loadReadable(this.#host, SWEEP)
      if (again !== null) return again
      await store.purge(SWEEP, version)
      settings.onWarning(`${SWEEP} cannot be read and is made again`, error)
      return store.load(SWEEP)
    }
  }

  /** Of what cannot be read, a conflict tells the version. What has none is removed at any. */
  async #versionFound(): Promise<number> {
    try {
      await this.#host.store.save(newSweep())
    } catch (error) {
      if (error instanceof StoreConflict) return error.found ?? 0
      if (!(error instanceof CorruptRecord)) throw error
    }
    return 0
  }

  /** Not all at the same moment. */
  #until(seconds: number): number {
    return seconds + this.#host.settings.random() * Math.max(SHORTEST, seconds / 4)
  }

  /** The beginnings of queues that hold nothing but what is parked are not read by each sweep. */
  #passed({ passed }: SweepState, now: number): Passed {
    return passed !== undefined && isAhead(passed.until, now, LEFT_ALONE) ? passed : { until: now + LEFT_ALONE }
  }

  /** From where the queues are to be read. */
  #start(state: SweepState, now: number): Positions {
    const { outbox, spawns } = this.#passed(state, now)
    return { outbox: state.outbox ?? outbox, spawns: state.spawns ?? spawns, timers: state.timers }
  }

  async #read(state: SweepState, now: number): Promise<Page> {
    const { grace, onWarning } = this.#host.settings
    // Whoever has armed a timer fires it when it is due; what is late is anybody's.
    const page = await readPage(this.#host, this.#start(state, now), now - grace / 2)
    for (const queue of page.beyond) {
      if (this.#beyond.has(queue)) continue
      this.#beyond.add(queue)
      onWarning(`entries of the ${queue} whose seq is above ${Number.MAX_SAFE_INTEGER} are left alone`)
    }
    return page
  }

  /** What of a page is to be done by this process. */
  #filter(page: Page, { claims, busy }: SweepState, now: number): Page {
    const others = claims.filter(({ until, owner }) => this.#claims.holds(until, now) && owner !== this.#host.id)
    const free = (id: string | null, key: string): boolean =>
      (id === null || !this.#claims.holds(busy[id] ?? 0, now)) && !isAhead(this.#left.get(key) ?? 0, now, LEFT_ALONE)
    return {
      ...page,
      outbox: page.outbox.filter(
        (entry) =>
          !others.some(({ outbox }) => holdsSeq(outbox, entry.seq)) &&
          !this.#relay.has(entry.seq) &&
          free(entry.targetId, `outbox ${entry.seq}`) &&
          this.#isOld(entry, now),
      ),
      spawns: page.spawns.filter(
        (entry) =>
          !others.some(({ spawns }) => holdsSeq(spawns, entry.seq)) &&
          free(entry.childId, `spawn ${entry.seq}`) &&
          (this.#relay.hasStarted(entry.childId) || this.#isOldSpawn(entry, now)),
      ),
      timers: page.timers.filter(
        (timer) => !others.some(({ timers }) => holdsTimer(timers, timer)) && free(timer.executionId, keyOf(timer)),
      ),
      unreadable: page.unreadable.filter(
        ({ work }) => !isAhead(this.#left.get(describeWork(work)) ?? 0, now, LEFT_PARKED),
      ),
    }
  }

  /** Whether its sender should have delivered it already. */
  #isOld({ event }: OutboxEntry, now: number): boolean {
    const { grace } = this.#host.settings
    return !isAhead(Date.parse(event.createdTime ?? '') / 1000 + grace, now, grace)
  }

  #isOldSpawn(entry: SpawnEntry, now: number): boolean {
    const { grace } = this.#host.settings
    return !isAhead((spawnWork(entry)?.data.at ?? 0) + grace, now, grace)
  }

  /** How far the beginnings are passed now. */
  #passedWith(page: Page, state: SweepState, now: number): { passed?: Passed } {
    const passed = { ...this.#passed(state, now) }
    const start = this.#start(state, now)
    for (const queue of ['outbox', 'spawns'] as const) {
      const end = page.ends[queue]
      if (end !== undefined && page[queue].length === 0 && start[queue] === passed[queue]) passed[queue] = end
    }
    return passed.outbox === undefined && passed.spawns === undefined ? {} : { passed }
  }

  #advance(state: SweepState, page: Page, mine: Page, now: number): SweepState {
    const { grace, maxPause } = this.#host.settings
    const found = mine.outbox.length + mine.spawns.length + mine.timers.length
    const [lastEvent, lastSpawn] = [page.outbox.at(-1), page.spawns.at(-1)]
    const { ends } = page
    // Behind what is too young there is only what is younger.
    const after = {
      ...(ends.outbox !== undefined && (!lastEvent || this.#isOld(lastEvent, now)) && { outbox: ends.outbox }),
      ...(ends.spawns !== undefined && (!lastSpawn || this.#isOldSpawn(lastSpawn, now)) && { spawns: ends.spawns }),
      ...(ends.timers && { timers: ends.timers }),
    }
    const more = Object.keys(after).length > 0
    // What is too young now may be orphaned by the time that it is old enough.
    const isYoung =
      page.outbox.some((entry) => !this.#isOld(entry, now)) ||
      page.spawns.some((entry) => !this.#isOldSpawn(entry, now))
    const nextPause = found > 0 ? SHORTEST : Math.min(isYoung ? grace / 2 : maxPause, state.pause * 2)
    const [outbox, spawns, timers] = [span(mine.outbox), span(mine.spawns), span(mine.timers)]
    if (found === 0) this.#claims.release()
    const part: Part = {
      ...(outbox && { outbox: [outbox[0].seq, outbox[1].seq] }),
      ...(spawns && { spawns: [spawns[0].seq, spawns[1].seq] }),
      ...(timers && { timers }),
    }
    return {
      owner: this.#host.id,
      nextAt: more ? now : now + nextPause,
      pause: nextPause,
      ...after,
      ...this.#passedWith(page, state, now),
      claims: [
        ...state.claims.filter(({ owner, until }) => owner !== this.#host.id && this.#claims.holds(until, now)),
        ...(found > 0 ? [this.#claims.take(part, now)] : []),
      ],
      busy: Object.fromEntries(
        Object.entries(state.busy).filter(([id, until]) => this.#claims.holds(until, now) || this.#claims.isBusy(id)),
      ),
    }
  }

  async #commit(execution: Execution, state: SweepState): Promise<boolean> {
    setState(execution, state)
    try {
      await write(this.#host, execution, newDraft())
      return true
    } catch (error) {
      // Somebody else has claimed it.
      if (!(error instanceof StoreConflict)) throw error
      this.#claims.release()
      return false
    }
  }

  async #work({ outbox, spawns, timers }: Page): Promise<void> {
    if (outbox.length + spawns.length + timers.length === 0) return
    this.#claims.keepTelling()
    try {
      const done: number[] = []
      const children = spawns.map((entry) => async () => {
        const work = spawnWork(entry)
        if (work !== undefined && (await this.#relay.sweptSpawn(work))) done.push(entry.seq)
        else this.#leave(`spawn ${entry.seq}`)
      })
      await this.#all(children)
      if (done.length > 0) await this.#host.store.ackSpawn(done)
      const byTarget = Map.groupBy(outbox, ({ targetId }) => targetId)
      const events = [...byTarget.values()].map((entries) => async () => {
        const left = await this.#relay.events(
          entries.map((entry): Entry => ({ seq: entry.seq, work: eventWork(entry) })),
        )
        for (const seq of left) this.#leave(`outbox ${seq}`)
      })
      const alarms = timers.map((timer) => async () => {
        if (!(await this.#relay.settle({ kind: 'timer', ...timer }))) this.#leave(keyOf(timer))
      })
      await this.#all([...events, ...alarms])
    } finally {
      this.#claims.release()
    }
  }

  /**
   * They are no hindrance in their queue, so that nobody needs to claim them: they are taken over once in any case. One
   * after the other, so that what else there is to be stored does not wait for all of them.
   */
  #takeOver({ unreadable }: Page): Promise<void> {
    return this.#relay.run(async () => {
      for (const { work, error } of unreadable) {
        if (this.#host.signal.aborted) return
        await this.#host.deliveries.takeOver(work, error)
        this.#leave(describeWork(work), LEFT_PARKED)
      }
    })
  }

  async #all(tasks: readonly (() => Promise<void>)[]): Promise<void> {
    await Promise.all(tasks.map((task) => this.#relay.run(task)))
  }

  #leave(key: string, seconds = LEFT_ALONE): void {
    this.#left.delete(key)
    this.#left.set(key, this.#host.settings.clock() + seconds)
    for (const oldest of this.#left.keys()) {
      if (this.#left.size <= MOST_LEFT_ALONE) return
      this.#left.delete(oldest)
    }
  }
}

const keyOf = ({ executionId, path, fireAt }: DueTimer): string => `timer ${fireAt} ${executionId} ${path}`
