/** What is measured of every backend, by name. */
import type { Actions } from './contender.ts'
import type { Stock } from './stock.ts'

export interface Workload {
  /** What is done once, for people. */
  readonly about: string
  /** Measured with every size of payload. */
  readonly isSized?: boolean
  /** Peers have something like it. */
  readonly hasPeers?: boolean
  /** Nobody does it more than once at a time. */
  readonly isAlone?: boolean
  /** How many pages of the outbox it uses up in a turn. */
  readonly pages?: number
  /** @returns what does it once; undefined where the contender has no such thing */
  bind(does: Partial<Actions>, stock: Stock): (() => unknown) | undefined
}

export const WORKLOADS = {
  state: {
    about: 'a commit of the state alone',
    hasPeers: true,
    bind: ({ state }, { lend }) => state && (() => lend(state)),
  },
  commit: {
    about: 'a commit with one event and a dedupe id',
    isSized: true,
    hasPeers: true,
    bind: ({ commit }, { lend }) => commit && (() => lend(commit)),
  },
  full: {
    about: 'a commit with two events, a dedupe id, two timers, a child and a trace step',
    hasPeers: true,
    bind: ({ full }, { lend }) => full && (() => lend(full)),
  },
  load: {
    about: 'an execution is read',
    isSized: true,
    bind: ({ load }, { lend }) => load && (() => lend(({ execution }) => load(execution.id))),
  },
  'load-for-event': {
    about: 'an execution is read, with the mark of an event',
    bind: ({ loadForEvent }, { lend }) => loadForEvent && (() => lend(({ execution }) => loadForEvent(execution.id))),
  },
  page: {
    about: 'a page of 100 pending events is read',
    isAlone: true,
    bind: ({ page }) => page && (() => page()),
  },
  relay: {
    about: 'a page of 100 pending events is read and acknowledged',
    isAlone: true,
    pages: 20,
    bind: ({ relay }) => relay && (() => relay()),
  },
  timers: {
    about: 'a page of 100 due timers is read',
    isAlone: true,
    bind: ({ timers }, { now }) => timers && (() => timers(now)),
  },
  'list-first': {
    about: 'the first page of 100 of a listing',
    isAlone: true,
    bind: ({ list }, { first }) => list && (() => list(first)),
  },
  'list-deep': {
    about: 'a page of 100 far behind in a listing',
    isAlone: true,
    bind: ({ list }, { deep }) => list && (() => list(deep)),
  },
} as const satisfies Record<string, Workload>

export type WorkloadName = keyof typeof WORKLOADS

export const WORKLOAD_NAMES = Object.keys(WORKLOADS) as WorkloadName[]
