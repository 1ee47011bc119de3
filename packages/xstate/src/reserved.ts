/** The names that this package keeps for itself in a store, and in the events between executions. */
import { createHash } from 'node:crypto'
import { type JsonValue, MAX_KEY_BYTES } from '@harel/store-base'

/** Ids of executions, of definitions and of events with this beginning belong to the runner itself. */
export const RESERVED_PREFIX = 'harel.'

/** The definition of what a machine invokes that is no machine: a promise, a callback, an observable. */
export const INVOKED = 'harel.invoked'

/** The definition of an entry that could not be delivered at once. */
export const DELIVERY = 'harel.delivery'

/** The execution, and its definition, by which runners share the sweeps. */
export const SWEEP = 'harel.sweep'

/** XState's names of the events that a machine starts with, and that ends it. */
export const INIT = 'xstate.init'
export const STOP = 'xstate.stop'

/** Commands of a parent to its children. */
export const SUSPEND = 'harel.suspend'
export const RESUME = 'harel.resume'

/** Lets an execution handle the first of the events that it has kept. */
export const CONTINUE = 'harel.continue'

/** Asks a machine to come to an end in its own way. */
export const CANCEL = 'harel.cancel'

/** How a child is to be started: what a spawn entry says, under the reserved key of its context. */
export interface StartData {
  /** The id of a machine, or `INVOKED`. */
  definitionId: string
  version: string
  /** Whose actor `src` is, where it is no machine itself. */
  machine?: string
  src: string
  /** What the parent calls it. */
  actorId: string
  /** Whether the parent wants to hear of each step. */
  sync: boolean
  input?: JsonValue
  /** When it was spawned, in epoch seconds. */
  at: number
}

/** The paths of the runner's own timers: when an invoked actor may be taken up, when a delivery is tried again. */
export const LEASE_PATH = 'harel.lease'
export const RETRY_PATH = 'harel.retry'

/** How the ids of the events begin that fired timers deliver (`timeoutEventId` of store-base). */
const TIMEOUT_PREFIX = 'timeout:'

/** Whether an event id is one that the runner makes itself: who could send it could have the real one taken for a repetition. */
export const isOwnEventId = (id: string): boolean => id.startsWith(RESERVED_PREFIX) || id.startsWith(TIMEOUT_PREFIX)

/** What stands for a text that may be longer than an id can be. */
export const hashOf = (text: string): string => createHash('sha256').update(text).digest('hex')

/** An event id that everybody arrives at, hashed where it is longer than an id may be. */
export const eventIdOf = (text: string): string =>
  Buffer.byteLength(text) <= MAX_KEY_BYTES ? text : `${RESERVED_PREFIX}sha256:${hashOf(text)}`

/** The ids of the one result of what was invoked, and of the news that the id of a child is in use. */
export const resultId = (executionId: string): string => eventIdOf(`${RESERVED_PREFIX}result:${executionId}`)
export const takenId = (executionId: string): string => eventIdOf(`${RESERVED_PREFIX}taken:${executionId}`)
