import type { TransactWriteItem } from '@aws-sdk/client-dynamodb'
import { newId, type PreparedCommit, type TraceRow } from '@harel/store-base'
import type { Connection } from './client.js'
import type { Settings } from './options.js'
import type { Tables } from './tables.js'
import { type Item, N, number, S, text } from './values.js'

/** Where a trace ends and where it begins: the index of its next step, and that of the oldest one that may be stored. */
export interface TracePlace {
  readonly next: number
  readonly oldest: number
}

/** Of how many executions the place is remembered. */
const REMEMBERED = 10_000

/** So many old steps may be deleted with a new one that is alone in its transaction; each may be as large as an item can be. */
const ROOM = 9

/** The steps of executions. A step is written only if its index is free, so a place may be out of date. */
export class Trace {
  readonly #connection: Connection
  readonly #table: string
  readonly #max: number
  /** The place after a version of an execution. */
  readonly #places = new Map<string, TracePlace & { readonly version: number }>()

  constructor(connection: Connection, tables: Tables, { traceMax }: Settings) {
    this.#connection = connection
    this.#table = tables.trace
    this.#max = traceMax
  }

  /** The newest steps, oldest first. */
  async read(id: string): Promise<TraceRow[]> {
    const rows: TraceRow[] = []
    const wanted = this.#max === 0 ? Number.POSITIVE_INFINITY : this.#max
    for await (const { items } of this.#query(id, false, wanted)) {
      rows.push(...items.map((item) => ({ index: number(item.idx), entry: text(item.entry) })))
      if (rows.length >= wanted) break
    }
    return rows.slice(0, wanted).reverse()
  }

  /** Where the step of a commit belongs: as remembered, if nobody else has written the execution since. */
  async placeFor({ id, expected }: PreparedCommit): Promise<TracePlace> {
    const known = this.#places.get(id)
    return known?.version === expected ? known : this.look(id)
  }

  async look(id: string): Promise<TracePlace> {
    const [newest] = await this.#first(id, false)
    const next = newest === undefined ? 0 : number(newest.idx) + 1
    if (this.#max === 0 || next < this.#max) return { next, oldest: 0 }
    const [oldest] = await this.#first(id, true)
    return { next, oldest: oldest === undefined ? next : number(oldest.idx) }
  }

  /** A step, the end of the oldest ones that are too many, as far as there is room, and the place behind it. */
  writes(id: string, entry: string, { next, oldest }: TracePlace, room: number) {
    const tooOld = this.#max === 0 ? 0 : Math.max(0, Math.min(next - this.#max + 1 - oldest, room))
    const TableName = this.#table
    const writes: TransactWriteItem[] = [
      {
        Put: {
          TableName,
          Item: { execution_id: S(id), idx: N(next), entry: S(entry) },
          ConditionExpression: 'attribute_not_exists(execution_id)',
        },
      },
    ]
    for (let n = 0; n < tooOld; n++) {
      writes.push({ Delete: { TableName, Key: { execution_id: S(id), idx: N(oldest + n) } } })
    }
    return { writes, place: { next: next + 1, oldest: oldest + tooOld } }
  }

  async append(id: string, entry: string): Promise<void> {
    this.#places.delete(id)
    for (;;) {
      const { writes } = this.writes(id, entry, await this.look(id), ROOM)
      if ((await this.#connection.transact(writes, newId())) === undefined) return
    }
  }

  /** @param place after the commit, if it had a step */
  remember({ id, expected, version }: PreparedCommit, place: TracePlace | undefined): void {
    const known = this.#places.get(id)
    const after = place ?? (known?.version === expected ? known : undefined)
    this.#places.delete(id)
    if (after === undefined) return
    if (this.#places.size >= REMEMBERED) this.#places.clear()
    this.#places.set(id, { next: after.next, oldest: after.oldest, version })
  }

  forget(id: string): void {
    this.#places.delete(id)
  }

  async #first(id: string, forward: boolean): Promise<Item[]> {
    for await (const { items } of this.#query(id, forward, 1)) return items
    return []
  }

  #query(id: string, forward: boolean, wanted: number) {
    return this.#connection.query({
      TableName: this.#table,
      KeyConditionExpression: 'execution_id = :id',
      ExpressionAttributeValues: { ':id': S(id) },
      ScanIndexForward: forward,
      ...(Number.isFinite(wanted) && { Limit: wanted }),
    })
  }
}
