import { InvalidPrefix } from './errors.js'

/** What the tables, keys and collections of one prefix are called: the names of Python harel, and our own. */
export interface Names {
  readonly prefix: string
  readonly executions: string
  readonly outbox: string
  readonly processedEvents: string
  readonly spawns: string
  readonly timers: string
  readonly trace: string
  readonly counters: string
  readonly groups: string
  readonly messages: string
  readonly transportLocks: string
  readonly transportCounters: string
  /**
   * Ours alone. Not `<prefix>_definitions`: that name is reserved by Python harel for a format that is not out yet.
   */
  readonly definitions: string
}

/** The names of a prefix. @throws InvalidPrefix unless it is an ASCII identifier of at most 30 characters */
export function Names(prefix = 'harel'): Names {
  if (typeof prefix !== 'string' || !/^[A-Za-z_][A-Za-z0-9_]{0,29}$/.test(prefix)) {
    throw new InvalidPrefix(prefix)
  }
  return {
    prefix,
    executions: `${prefix}_executions`,
    outbox: `${prefix}_outbox`,
    processedEvents: `${prefix}_processed_events`,
    spawns: `${prefix}_spawns`,
    timers: `${prefix}_timers`,
    trace: `${prefix}_trace`,
    counters: `${prefix}_counters`,
    groups: `${prefix}_transport_groups`,
    messages: `${prefix}_transport_messages`,
    transportLocks: `${prefix}_transport_locks`,
    transportCounters: `${prefix}_transport_counters`,
    definitions: `${prefix}_definition_versions`,
  }
}
