import type { DueTimer } from '@harel/store-base'
import type { Settings } from './options.js'

/**
 * The keys of a prefix. Those of the first group are Python harel's; the others are ours alone, and Python's writes do
 * not reach them.
 */
export class Keys {
  readonly #prefix: string
  readonly outbox: string
  readonly outboxCounter: string
  readonly spawns: string
  readonly spawnCounter: string
  readonly timers: string

  /** A sorted set of all execution ids, all with score 0 and so in the order of their bytes. */
  readonly ids: string
  /** Execution id → version, whether only we have written it, and its summary. */
  readonly summaries: string
  readonly definitions: string

  constructor({ prefix, hashTag }: Settings) {
    this.#prefix = hashTag ? `{${prefix}}` : prefix
    this.outbox = `${this.#prefix}:outbox`
    this.outboxCounter = `${this.outbox}:seq`
    this.spawns = `${this.#prefix}:spawns`
    this.spawnCounter = `${this.spawns}:seq`
    this.timers = `${this.#prefix}:timers`
    this.ids = `${this.#prefix}:index:ids`
    this.summaries = `${this.#prefix}:index:summaries`
    this.definitions = `${this.#prefix}:definition_versions`
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

  /** A set of the paths of an execution's timers, to find them in the sorted set of all. */
  timerPaths(id: string): string {
    return `${this.#prefix}:index:timers:${id}`
  }
}

/** The member of a timer: id and path, which have no NUL. */
export const timerMember = (id: string, path: string): string => `${id}\0${path}`

/** @param reply members and scores in turn */
export function toTimers(reply: readonly string[]): DueTimer[] {
  const timers: DueTimer[] = []
  for (let index = 0; index < reply.length; index += 2) {
    const [member = '', score] = reply.slice(index, index + 2)
    const end = member.indexOf('\0')
    timers.push({ executionId: member.slice(0, end), path: member.slice(end + 1), fireAt: Number(score) })
  }
  return timers
}
