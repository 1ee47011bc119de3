/**
 * Finds what nobody carries on: entries and timers that a crash has orphaned.
 *
 * All runners of a prefix share one sweep, through one execution (id and definition `harel.sweep`): it says from where
 * the queues are to be read on, which parts of them are being worked on and until when, and when the next sweep is due.
 * Whoever commits the next position owns the page that it has read. So each row is read once, however many runners there
 * are; and what a runner has claimed and not removed is found again by the next sweep when the claim has run out.
 */
import {
  type DueTimer,
  type Execution,
  type JsonValue,
  newExecution,
  type OutboxEntry,
  type SpawnEntry,
  StoreConflict,
} from '@harel/store-base'
import { type Host, newDraft } from './host.js'
import { type Entry, eventWork, type Relay } from './relay.js'
import { SWEEP } from './reserved.js'
import { RESERVED_KEY } from './snapshot.js'
import { update, write } from './update.js'
import { spawnWork } from './work.js'

/** The shortest pause between two sweeps, in seconds; it doubles while there is nothing to do. */
const SHORTEST = 0.1

/** How long it may take to read a page, in seconds, before others read it. */
const READING = 5

/** What this process has found to be for others is not looked at again for so long, in seconds. */
const LEFT_ALONE = 30
const MOST_LEFT_ALONE = 10_000

/**
 * How far the clocks of a fleet may differ, in seconds. What lies further ahead than anybody sets it is of a clock that
 * was wrong, and counts for nothing: else all would wait until that time has come.
 */
const APART = 30

/** Whether a time that was set at most so many seconds ahead has still to come. */
const isAhead = (time: number, now: number, atMost: number): boolean => time > now && time <= now + atMost + APART

/** A part of the queues that a runner is working on: from, to, both included. */
interface Claim {
  owner: string
  /** Epoch seconds. */
  until: number
  outbox?: [number, number]
  spawns?: [number, number]
  timers?: [DueTimer, DueTimer]
}

interface SweepState {
  /** The runner that has committed last; while `reading`, it alone reads the queues. */
  owner?: string
  /** Until when, in epoch seconds. */
  reading?: number
  /** When the next sweep may begin, in epoch seconds. */
  nextAt: number
  pause: number
  /** Behind these the current sweep reads on; absent: from the beginning. */
  outbox?: number
  spawns?: number
  timers?: DueTimer
  claims: Claim[]
  /** Executions that are worked on for longer than others would wait, with the time until which they are. */
  busy: { [executionId: string]: number }
}

interface Page {
  outbox: OutboxEntry[]
  spawns: SpawnEntry[]
  timers: DueTimer[]
}

const compare = (a: DueTimer, b: DueTimer): number =>
  a.fireAt - b.fireAt ||
  Buffer.compare(Buffer.from(a.executionId), Buffer.from(b.executionId)) ||
  Buffer.compare(Buffer.from(a.path), Buffer.from(b.path))

const within = (seq: number, range: readonly [number, number] | undefined): boolean =>
  range !== undefined && seq >= range[0] && seq <= range[1]

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
  /** The claim of this process, while it works on it. */
  #claim: Claim | undefined
  readonly #busy = new Set<string>()

  constructor(host: Host, relay: Relay) {
    this.#host = host
    this.#relay = relay
  }

  #telling: NodeJS.Timeout | undefined

  /** How long a claim holds, in seconds: short, because what a dead process has claimed waits for that long. */
  get #claimFor(): number {
    return Math.max(1, 2 * this.#host.settings.grace)
  }

  /**
   * Claims the next page and works through it.
   *
   * @returns after how many seconds it is worth while to come again
   */
  async round(): Promise<number> {
    const { settings, store } = this.#host
    const now = settings.clock()
    const loaded = (await store.load(SWEEP)) ?? newExecution({ id: SWEEP, definitionId: SWEEP, status: 'RUNNING' })
    const execution = { ...loaded }
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
    await this.#work(mine)
    return this.#until(Math.min(maxPause, Math.max(0, next.nextAt - settings.clock())))
  }

  /** Not all at the same moment. */
  #until(seconds: number): number {
    return seconds + this.#host.settings.random() * Math.max(SHORTEST, seconds / 4)
  }

  async #read(state: SweepState, now: number): Promise<Page> {
    const { store, settings } = this.#host
    const { pageSize: limit, grace } = settings
    const [spawns, outbox, timers] = await Promise.all([
      store.pendingSpawns({ limit, after: state.spawns }),
      store.pendingOutbox({ limit, after: state.outbox }),
      // Whoever has armed a timer fires it when it is due; what is late is anybody's.
      store.dueTimers(now - grace / 2, { limit, after: state.timers }),
    ])
    return { outbox, spawns, timers }
  }

  /** What of a page is to be done by this process. */
  #filter(page: Page, { claims, busy }: SweepState, now: number): Page {
    const others = claims.filter(({ until, owner }) => this.#holds(until, now) && owner !== this.#host.id)
    const free = (id: string | null, key: string): boolean =>
      (id === null || !this.#holds(busy[id] ?? 0, now)) && !isAhead(this.#left.get(key) ?? 0, now, LEFT_ALONE)
    return {
      outbox: page.outbox.filter(
        (entry) =>
          !others.some(({ outbox }) => within(entry.seq, outbox)) &&
          !this.#relay.has(entry.seq) &&
          free(entry.targetId, `outbox ${entry.seq}`) &&
          this.#isOld(entry, now),
      ),
      spawns: page.spawns.filter(
        (entry) =>
          !others.some(({ spawns }) => within(entry.seq, spawns)) &&
          free(entry.childId, `spawn ${entry.seq}`) &&
          (this.#relay.hasStarted(entry.childId) || this.#isOldSpawn(entry, now)),
      ),
      timers: page.timers.filter(
        (timer) =>
          !others.some(
            ({ timers: range }) => range && compare(timer, range[0]) >= 0 && compare(timer, range[1]) <= 0,
          ) && free(timer.executionId, keyOf(timer)),
      ),
    }
  }

  /** Whether a claim until then is still to be respected. */
  #holds(until: number, now: number): boolean {
    return isAhead(until, now, this.#claimFor)
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

  #advance(state: SweepState, page: Page, mine: Page, now: number): SweepState {
    const { grace, pageSize, maxPause } = this.#host.settings
    const found = mine.outbox.length + mine.spawns.length + mine.timers.length
    const [lastEvent, lastSpawn, lastTimer] = [page.outbox.at(-1), page.spawns.at(-1), page.timers.at(-1)]
    // Behind what is too young there is only what is younger.
    const after = {
      ...(page.outbox.length >= pageSize && lastEvent && this.#isOld(lastEvent, now) && { outbox: lastEvent.seq }),
      ...(page.spawns.length >= pageSize && lastSpawn && this.#isOldSpawn(lastSpawn, now) && { spawns: lastSpawn.seq }),
      ...(page.timers.length >= pageSize && lastTimer && { timers: lastTimer }),
    }
    const more = Object.keys(after).length > 0
    // What is too young now may be orphaned by the time that it is old enough.
    const isYoung =
      page.outbox.some((entry) => !this.#isOld(entry, now)) ||
      page.spawns.some((entry) => !this.#isOldSpawn(entry, now))
    const nextPause = found > 0 ? SHORTEST : Math.min(isYoung ? grace / 2 : maxPause, state.pause * 2)
    const [outbox, spawns, timers] = [span(mine.outbox), span(mine.spawns), span(mine.timers)]
    this.#claim =
      found === 0
        ? undefined
        : {
            owner: this.#host.id,
            until: now + this.#claimFor,
            ...(outbox && { outbox: [outbox[0].seq, outbox[1].seq] }),
            ...(spawns && { spawns: [spawns[0].seq, spawns[1].seq] }),
            ...(timers && { timers }),
          }
    return {
      owner: this.#host.id,
      nextAt: more ? now : now + nextPause,
      pause: nextPause,
      ...after,
      claims: [
        ...state.claims.filter(({ owner, until }) => owner !== this.#host.id && this.#holds(until, now)),
        ...(this.#claim ? [this.#claim] : []),
      ],
      busy: Object.fromEntries(
        Object.entries(state.busy).filter(([id, until]) => this.#holds(until, now) || this.#busy.has(id)),
      ),
    }
  }

  async #commit(execution: Execution, state: SweepState): Promise<boolean> {
    execution.context = { [RESERVED_KEY]: state as unknown as JsonValue }
    try {
      await write(this.#host, execution, newDraft())
      return true
    } catch (error) {
      // Somebody else has claimed it.
      if (!(error instanceof StoreConflict)) throw error
      this.#claim = undefined
      return false
    }
  }

  async #work({ outbox, spawns, timers }: Page): Promise<void> {
    if (outbox.length + spawns.length + timers.length === 0) return
    this.#keepTelling()
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
      this.#claim = undefined
    }
  }

  async #all(tasks: readonly (() => Promise<void>)[]): Promise<void> {
    await Promise.all(tasks.map((task) => this.#relay.run(task)))
  }

  #leave(key: string): void {
    this.#left.delete(key)
    this.#left.set(key, this.#host.settings.clock() + LEFT_ALONE)
    for (const oldest of this.#left.keys()) {
      if (this.#left.size <= MOST_LEFT_ALONE) return
      this.#left.delete(oldest)
    }
  }

  /**
   * Tells others every now and then what this process is still working on, for as long as there is anything: one commit
   * for all of it, however much it is.
   */
  #keepTelling(): void {
    if (this.#telling !== undefined) return
    this.#telling = setTimeout(
      async () => {
        // What cannot be told now is told the next time.
        await this.#tell().catch(() => {})
        this.#telling = undefined
        if (this.#claim !== undefined || this.#busy.size > 0) this.#keepTelling()
      },
      Math.min(this.#claimFor / 3, (2 / 3) * this.#host.settings.grace) * 1000,
    )
    this.#telling.unref()
  }

  #tell(): Promise<void> {
    return update<void>(this.#host, SWEEP, undefined, ({ execution }) => {
      const own = this.#claim
      if (execution === undefined || (own === undefined && this.#busy.size === 0)) return { result: undefined }
      const state = stateOf(execution)
      const now = this.#host.settings.clock()
      const until = now + this.#claimFor
      const claims = state.claims.filter(({ owner }) => owner !== this.#host.id)
      const others = Object.entries(state.busy).filter(([, end]) => this.#holds(end, now))
      const busy = Object.fromEntries([...others, ...[...this.#busy].map((id) => [id, until] as const)])
      const next: SweepState = { ...state, claims: own === undefined ? claims : [...claims, { ...own, until }], busy }
      execution.context = { [RESERVED_KEY]: next as unknown as JsonValue }
      return { result: undefined, draft: newDraft() }
    })
  }

  /**
   * Works on an execution; if that takes so long that others would soon take it for orphaned, it tells them, and goes on
   * telling them until it is done.
   */
  async holding<T>(executionId: string, work: () => Promise<T>): Promise<T> {
    const timeout = setTimeout(
      () => {
        this.#busy.add(executionId)
        this.#keepTelling()
      },
      (this.#host.settings.grace / 4) * 1000,
    )
    try {
      return await work()
    } finally {
      clearTimeout(timeout)
      this.#busy.delete(executionId)
    }
  }
}

const keyOf = ({ executionId, path, fireAt }: DueTimer): string => `timer ${fireAt} ${executionId} ${path}`

const stateOf = ({ context }: Execution): SweepState =>
  (context[RESERVED_KEY] as unknown as SweepState | undefined) ?? { nextAt: 0, pause: SHORTEST, claims: [], busy: {} }
