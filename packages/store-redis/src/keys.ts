import type { Settings } from './options.js'

/** The keys of a prefix. The first are those of Python harel; its writes do not reach the others, which are ours alone. */
export class Keys {
  readonly #prefix: string
  readonly outbox: string
  readonly outboxCounter: string
  readonly spawns: string
  readonly spawnCounter: string
  readonly timers: string

  /** A sorted set of execution ids, all with the score 0 and so in the order of their bytes. */
  readonly ids: string
  /** Is there once all executions were looked for, those of other writers included. */
  readonly idsComplete: string
  /** The ids of executions that we have written after another writer. */
  readonly mixed: string
  /**
   * A sorted set in the order of bytes, with two members for each execution: its definition, NUL, its status, what it is
   * and its id; and the same without the definition.
   */
  readonly filters: string
  /** A hash of what stands in front of an execution's id in `filters`, as `placeOf` makes it, by that id. */
  readonly places: string
  /** Is there if commits feed `filters` and `places`; `complete` once all executions were looked for. */
  readonly filtersKept: string
  readonly definitions: string

  /** Those that the commits of all executions write to, as their script wants them. */
  readonly shared: readonly string[]

  constructor({ prefix, hashTag }: Settings) {
    this.#prefix = hashTag ? `{${prefix}}` : prefix
    this.outbox = `${this.#prefix}:outbox`
    this.outboxCounter = `${this.outbox}:seq`
    this.spawns = `${this.#prefix}:spawns`
    this.spawnCounter = `${this.spawns}:seq`
    this.timers = `${this.#prefix}:timers`
    this.ids = `${this.#prefix}:index:ids`
    this.idsComplete = `${this.#prefix}:index:complete`
    this.mixed = `${this.#prefix}:index:mixed`
    this.filters = `${this.#prefix}:index:filters`
    this.places = `${this.#prefix}:index:places`
    this.filtersKept = `${this.#prefix}:index:kept`
    this.definitions = `${this.#prefix}:definition_versions`
    const { ids, mixed, outbox, outboxCounter, spawns, spawnCounter, timers, filters, places, filtersKept } = this
    this.shared = [ids, mixed, outbox, outboxCounter, spawns, spawnCounter, timers, filters, places, filtersKept]
  }

  execution(id: string): string {
    return `${this.#prefix}:exe:${id}`
  }

  processed(id: string): string {
    return `${this.#prefix}:processed:${id}`
  }

  trace(id: string): string {
    return `${this.#prefix}:trace:${id}`
  }

  traceCounter(id: string): string {
    return `${this.#prefix}:trace:seq:${id}`
  }

  /** A set of the paths of the timers that we have armed, to find them among those of all executions. */
  timerPaths(id: string): string {
    return `${this.#prefix}:index:timers:${id}`
  }

  /** The result of one call, kept for some minutes. */
  result(token: string): string {
    return `${this.#prefix}:result:${token}`
  }
}

/** The member of a timer: id and path, which have no NUL. */
export const timerMember = (id: string, path: string): string => `${id}\0${path}`

/** A pattern of Redis that matches what begins with exactly this text. */
export const beginsWith = (text: string): string => `${text.replace(/[\\*?[\]]/g, '\\$&')}*`
