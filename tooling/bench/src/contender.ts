/** Those who are measured beside each other, and what they do. */
import type { ExecutionStore, SyncExecutionStore } from '@harel/store-base'
import { commitOf, fullOf, nextEventId, type Subject } from './subjects.ts'

/** `driver`: the bare driver by hand, doing the same writes; `peer`: what people use instead. */
export type Role = 'store' | 'driver' | 'peer'

/** A place in a listing. */
export interface Place {
  /** Null: the beginning. */
  readonly cursor: string | null
  /** The id in front of it; as a text, less than any. */
  readonly after: string
}

/** Entries in a page of a queue or of a listing. */
export const PAGE = 100

/** What is asked for in the workloads. Results are promises, or not. */
export interface Actions {
  /** Commits the state alone. */
  state(subject: Subject): unknown
  /** Commits the state with one event and a dedupe id. */
  commit(subject: Subject): unknown
  /** Commits the state with two events, a dedupe id, two timers, a child and a trace step. */
  full(subject: Subject): unknown
  load(id: string): unknown
  /** With the mark of an event that was not processed. */
  loadForEvent(id: string): unknown
  /** Reads the first page of the outbox and acknowledges it. */
  relay(): unknown
  /** Reads a page of the outbox. */
  page(): unknown
  /** Reads the first page of the timers that are due. */
  timers(now: number): unknown
  /** Reads a page of a listing of everything. */
  list(place: Place): unknown
}

export interface Contender {
  readonly name: string
  readonly role: Role
  readonly does: Partial<Actions>
  /** Its calls are done when they return, so that there is never more than one under way. */
  readonly isSync?: boolean
  /** It is measured where at least so many are under way at once. Default: 1. */
  readonly from?: number
  /** And at most so many. */
  readonly upTo?: number
  /** It works in a process of its own, whose processor time is not known here. */
  readonly isElsewhere?: boolean
}

const full = (length: number): void => {
  if (length < PAGE) throw new Error(`a page has only ${length} entries`)
}

/** What a store does for each workload. */
export function actionsOf(store: ExecutionStore | SyncExecutionStore): Actions {
  const acknowledge = (entries: readonly { seq: number }[]) => {
    full(entries.length)
    return store.ackOutbox(entries.map(({ seq }) => seq))
  }
  return {
    state: ({ execution }) => store.save(execution),
    commit: (subject) => store.commit(...commitOf(subject, nextEventId())),
    full: (subject) => store.commit(...fullOf(subject, nextEventId())),
    load: (id) => store.load(id),
    loadForEvent: (id) => store.loadForEvent(id, nextEventId()),
    relay: () => {
      const page = store.pendingOutbox({ limit: PAGE })
      return page instanceof Promise ? page.then(acknowledge) : acknowledge(page)
    },
    page: () => store.pendingOutbox({ limit: PAGE }),
    timers: (now) => store.dueTimers(now, { limit: PAGE }),
    list: ({ cursor }) => store.listExecutions({ limit: PAGE, cursor }),
  }
}

/** A store as a contender. */
export const storeContender = (name: string, store: ExecutionStore, more: Pick<Contender, 'from'> = {}): Contender => ({
  name,
  role: 'store',
  does: actionsOf(store),
  ...more,
})
