import {
  type CheckedListQuery,
  compareBytes,
  type ExecutionSummary,
  listingPage,
  matches,
  prefixEnd,
  type SummaryRow,
  type SummaryRows,
  summaryOfPayload,
} from '@harel/store-base'
import type { Connection } from './client.js'
import { placeOf, placesOf } from './filters.js'
import { beginsWith, type Keys } from './keys.js'
import { HEAD_BYTES } from './lua.js'
import { inParts } from './queue.js'
import { summaryOfPart, versionOf } from './rows.js'
import { COMPLETE, FILTERED_IDS, HEADS, INDEX } from './scripts.js'

/** What `reindex` has found. */
export interface Reindexed {
  /** How many executions there are. */
  readonly stored: number
  /** How many of them were not in the index. */
  readonly added: number
  /** How many ids were in the index without an execution. */
  readonly removed: number
  /** With `filterIndex`: how many did not stand under their definition, status and root, but do now. */
  readonly moved: number
}

type Changes = { -readonly [Key in keyof Omit<Reindexed, 'stored'>]: number }

/** Ids that are looked at together. */
const PART = 500
/** The first bytes of a payload, in which its scalar fields are, unless they are unusually long. */
const SCALAR_BYTES = 1024
/** Payloads that are read as a whole together. */
const PAYLOADS = 50

/**
 * The executions by id. The index of ids is kept by our commits; those of other writers are looked for when it is used for
 * the first time in the life of a database, and by `rebuild`. The index by filters is kept from its first use on.
 */
export class Listing {
  readonly #connection: Connection
  readonly #keys: Keys
  readonly #filterIndex: boolean
  #isComplete = false

  constructor(connection: Connection, keys: Keys, filterIndex: boolean) {
    this.#connection = connection
    this.#keys = keys
    this.#filterIndex = filterIndex
  }

  async page(query: CheckedListQuery): Promise<SummaryRows> {
    const found: SummaryRow[] = []
    for await (const ids of this.#candidates(query)) {
      for (const row of await this.#summaries(ids)) if (isWanted(row, query)) found.push(row)
      if (found.length > query.limit) break
    }
    return listingPage(found, query.limit)
  }

  /** Among which are all that pass the filters, in their order. */
  #candidates(query: CheckedListQuery): AsyncGenerator<string[], void, undefined> {
    const isFiltered = query.statuses !== undefined || query.definitionId !== undefined || query.rootsOnly
    if (isFiltered && this.#filterIndex) return this.#filteredIds(query)
    const from = query.position === null ? '-' : `(${query.position}`
    return this.#ids(from, '+', isFiltered ? PART : query.limit + 1)
  }

  /** By the index by filters: the ranges of a page are read at one instant, so that none is missed that moves. */
  async *#filteredIds(query: CheckedListQuery): AsyncGenerator<string[], void, undefined> {
    const { filters, filtersKept } = this.#keys
    const places = placesOf(query)
    const size = query.limit + 1
    for (let { position } = query; ; ) {
      const ranges = places.flatMap((place) => [
        position === null ? `[${place}` : `(${place}${position}`,
        `(${prefixEnd(place)}`,
      ])
      const answer = await this.#connection.evaluate(FILTERED_IDS, [filters, filtersKept], [size, ...ranges])
      if (answer === null) {
        await this.rebuild()
        continue
      }
      const ids = (answer as string[][])
        .flatMap((members, index) => members.map((member) => member.slice(places[index]?.length)))
        .sort(compareBytes)
        .slice(0, size)
      yield ids
      if (ids.length < size) return
      position = ids.at(-1) ?? null
    }
  }

  async idsWithPrefix(prefix: string): Promise<string[]> {
    const found: string[] = []
    const end = prefixEnd(prefix)
    const from = prefix === '' ? '-' : `[${prefix}`
    for await (const ids of this.#ids(from, end === undefined ? '+' : `(${end}`, PART)) {
      const heads = await this.#heads(ids, 1)
      found.push(...ids.filter((_, index) => heads[index] !== ''))
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

  /** The first bytes of the payloads, empty where there is no execution. */
  async #heads(ids: readonly string[], bytes: number): Promise<string[]> {
    if (ids.length === 0) return []
    const keys = ids.map((id) => this.#keys.execution(id))
    return (await this.#connection.evaluate(HEADS, keys, [bytes])) as string[]
  }

  async #summaries(ids: readonly string[]): Promise<SummaryRow[]> {
    const parts = await this.#heads(ids, SCALAR_BYTES)
    const rows = new Map<string, SummaryRow | undefined>()
    for (const [index, id] of ids.entries()) {
      const part = parts[index]
      if (part) rows.set(id, summaryOfPart(id, part))
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

  /** Compares the indexes with the executions that are there, and sets them right. */
  async rebuild(): Promise<Reindexed> {
    const { ids, idsComplete, filtersKept } = this.#keys
    // From here on commits see to the executions that they write.
    if (this.#filterIndex) await this.#connection.read((client) => client.set(filtersKept, 'building', 'NX'))
    const isPlaced = Number(await this.#connection.read((client) => client.exists(filtersKept))) === 1
    const total: Changes = { added: 0, removed: 0, moved: 0 }
    for await (const part of this.#stored()) await this.#setRight(part, isPlaced, total)
    await this.#connection.read((client) => client.set(idsComplete, '1'))
    this.#isComplete = true
    for await (const part of this.#ids('-', '+', PART)) await this.#setRight(part, false, total)
    // Not where everything was deleted meanwhile: commits have fed nothing since.
    if (isPlaced) await this.#connection.read((client) => client.set(filtersKept, COMPLETE, 'XX'))
    return { stored: Number(await this.#connection.read((client) => client.zcard(ids))), ...total }
  }

  /** Lets ids stand in the indexes, by filters only if they are `placed`, or nowhere. */
  async #setRight(part: readonly string[], placed: boolean, total: Changes): Promise<void> {
    const { ids, filters, places } = this.#keys
    const seen = placed ? await this.#places(part) : new Map<string, never>()
    const keys = [ids, filters, places, ...part.map((id) => this.#keys.execution(id))]
    const args = part.flatMap((id) => [id, ...(seen.get(id) ?? ['', ''])])
    const answer = await this.#connection.evaluate(INDEX, keys, args)
    const [added = 0, removed = 0, moved = 0] = (answer as unknown[]).map(Number)
    total.added += added
    total.removed += removed
    total.moved += moved
  }

  /** The beginnings of the payloads of executions, empty where they are another writer's, and where such payloads stand. */
  async #places(ids: readonly string[]): Promise<Map<string, [head: string, place: string]>> {
    // The heads first: where one is still there when all is written, so is the rest.
    const heads = await this.#heads(ids, HEAD_BYTES)
    const headOf = new Map(ids.map((id, index) => [id, heads[index] ?? '']))
    const rows = await this.#summaries(ids)
    return new Map(
      rows.map((row) => {
        const head = headOf.get(row.id) ?? ''
        return [row.id, [versionOf(head) === undefined ? '' : head, placeOf(row)]]
      }),
    )
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
