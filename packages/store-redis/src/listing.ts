import {
  type CheckedListQuery,
  type ExecutionSummary,
  listingPage,
  matches,
  prefixEnd,
  type SummaryRow,
  type SummaryRows,
  summaryOfPayload,
} from '@harel/store-base'
import type { Connection } from './client.js'
import { beginsWith, type Keys } from './keys.js'
import { inParts } from './queue.js'
import { summaryOfPart } from './rows.js'
import { INDEX_IDS } from './scripts.js'

/** What `reindex` has found. */
export interface Reindexed {
  /** How many executions there are. */
  readonly stored: number
  /** How many of them were not in the index. */
  readonly added: number
  /** How many ids were in the index without an execution. */
  readonly removed: number
}

/** Ids that are looked at together. */
const PART = 500
/** The first bytes of a payload, in which its scalar fields are, unless they are unusually long. */
const SCALAR_BYTES = 1024
/** Payloads that are read as a whole together. */
const PAYLOADS = 50

/**
 * The executions by id. The index of ids is kept by our commits; those of other writers are looked for when it is used for
 * the first time in the life of a database, and by `rebuild`.
 */
export class Listing {
  readonly #connection: Connection
  readonly #keys: Keys
  #isComplete = false

  constructor(connection: Connection, keys: Keys) {
    this.#connection = connection
    this.#keys = keys
  }

  async page(query: CheckedListQuery): Promise<SummaryRows> {
    const found: SummaryRow[] = []
    const isFiltered = query.statuses !== undefined || query.definitionId !== undefined || query.rootsOnly
    const from = query.position === null ? '-' : `(${query.position}`
    for await (const ids of this.#ids(from, '+', isFiltered ? PART : query.limit + 1)) {
      for (const row of await this.#summaries(ids)) if (isWanted(row, query)) found.push(row)
      if (found.length > query.limit) break
    }
    return listingPage(found, query.limit)
  }

  async idsWithPrefix(prefix: string): Promise<string[]> {
    const found: string[] = []
    const end = prefixEnd(prefix)
    const from = prefix === '' ? '-' : `[${prefix}`
    for await (const ids of this.#ids(from, end === undefined ? '+' : `(${end}`, PART)) {
      const stored = await this.#connection.readAll((pipeline) => {
        for (const id of ids) pipeline.exists(this.#keys.execution(id))
      })
      found.push(...ids.filter((_, index) => Number(stored[index]) === 1))
    }
    return found
  }

  /** Ids of the index, some of which may have no execution any more. */
  async *#ids(from: string, to: string, size: number): AsyncGenerator<string[], void, undefined> {
    const { ids, idsComplete } = this.#keys
    this.#isComplete ||= Number(await this.#connection.read((client) => client.exists(idsComplete))) === 1
    if (!this.#isComplete) await this.rebuild()
    let start = from
    for (;;) {
      const part = await this.#connection.read((client) => client.zrangebylex(ids, start, to, 'LIMIT', 0, size))
      if (part.length > 0) yield part
      if (part.length < size) return
      start = `(${part.at(-1)}`
    }
  }

  async #summaries(ids: readonly string[]): Promise<SummaryRow[]> {
    const parts = await this.#connection.readAll((pipeline) => {
      for (const id of ids) pipeline.getrange(this.#keys.execution(id), 0, SCALAR_BYTES - 1)
    })
    const rows = new Map<string, SummaryRow | undefined>()
    for (const [index, id] of ids.entries()) {
      const part = parts[index]
      if (typeof part === 'string' && part !== '') rows.set(id, summaryOfPart(id, part))
    }
    const others = [...rows].filter(([, row]) => row === undefined).map(([id]) => id)
    for (const some of inParts(others, PAYLOADS)) {
      const payloads = await this.#connection.readAll((pipeline) => {
        for (const id of some) pipeline.get(this.#keys.execution(id))
      })
      for (const [index, id] of some.entries()) {
        const payload = payloads[index]
        if (typeof payload === 'string') rows.set(id, summaryOfPayload(id, payload))
      }
    }
    return [...rows.values()].filter((row) => row !== undefined)
  }

  /** Compares the index with the executions that are there, and sets it right. */
  async rebuild(): Promise<Reindexed> {
    const { ids, idsComplete } = this.#keys
    let [added, removed] = [0, 0]
    const setRight = async (part: readonly string[]) => {
      const keys = [ids, ...part.map((id) => this.#keys.execution(id))]
      const answer = await this.#connection.evaluate(INDEX_IDS, keys, part)
      const [more = 0, fewer = 0] = (answer as unknown[]).map(Number)
      added += more
      removed += fewer
    }
    for await (const part of this.#stored()) await setRight(part)
    await this.#connection.read((client) => client.set(idsComplete, '1'))
    this.#isComplete = true
    for await (const part of this.#ids('-', '+', PART)) await setRight(part)
    return { stored: Number(await this.#connection.read((client) => client.zcard(ids))), added, removed }
  }

  /** The ids of the executions there are; some may come twice. */
  async *#stored(): AsyncGenerator<string[], void, undefined> {
    const beginning = this.#connection.keyPrefix + this.#keys.execution('')
    const pattern = beginsWith(beginning)
    for (const node of this.#connection.nodes()) {
      let cursor = '0'
      do {
        const [next, found] = await this.#connection.read(() => node.scan(cursor, 'MATCH', pattern, 'COUNT', 1000))
        if (found.length > 0) yield found.map((key) => key.slice(beginning.length))
        cursor = String(next)
      } while (cursor !== '0')
    }
  }
}

/** An unreadable one passes every filter, so that it is reported. */
function isWanted(row: SummaryRow, query: CheckedListQuery): boolean {
  return row.status === null || matches(row as ExecutionSummary, query)
}
