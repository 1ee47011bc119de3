import { UpdateItemCommand } from '@aws-sdk/client-dynamodb'
import { type CheckedQueuePage, Sequence } from '@harel/store-base'
import type { Connection } from './client.js'
import { type Item, N, number, S } from './values.js'

/** A queue of up to so many entries, and of no more bytes than a scan reads at once, is short: it is read as a whole. */
const SHORT = 300
/** So many are asked for at once, where some may have left. */
const PART = 100
const LOOK_AT_ALL_EVERY = 100

const bySeq = (a: Item, b: Item): number => number(a.seq) - number(b.seq)

/**
 * A queue in a table of numbered items, in the layout of Python harel. The table has no order, so the numbers of a long
 * queue are remembered here; what has left is found missing, what was added is known by the counter. A writer takes its
 * number some time before it writes the entry, so one that was found missing may come late: as soon as few are left,
 * and now and then, the table is looked at again.
 */
export class Queue {
  readonly #connection: Connection
  readonly #table: string
  readonly #counter: { readonly TableName: string; readonly Key: Item }
  readonly #sequence = new Sequence((count) => this.#reserve(count))
  /** Of a long queue: ascending, all that can be there up to `#last`. */
  #numbers: number[] = []
  #last = 0
  #sweeps = 0

  constructor(connection: Connection, table: string, counter: { TableName: string; id: 'outbox' | 'spawn' }) {
    this.#connection = connection
    this.#table = table
    this.#counter = { TableName: counter.TableName, Key: { id: S(counter.id) } }
  }

  /** The first of so many numbers that follow each other. Those who ask at the same time share a request. */
  async take(count: number): Promise<number> {
    return count === 0 ? 0 : this.#sequence.take(count)
  }

  async #reserve(count: number): Promise<number> {
    const command = new UpdateItemCommand({
      ...this.#counter,
      UpdateExpression: 'ADD n :count',
      ExpressionAttributeValues: { ':count': N(count) },
      ReturnValues: 'UPDATED_NEW',
    })
    return number((await this.#connection.ask((client) => client.send(command))).Attributes?.n)
  }

  /** Entries by ascending number; fewer than `limit` only at the end of the queue. */
  async page({ after, limit }: CheckedQueuePage): Promise<Item[]> {
    if (limit === Number.POSITIVE_INFINITY || (await this.#isOutOfDate(after))) {
      const everything = await this.#lookAtAll(limit)
      if (everything !== undefined) {
        return everything
          .filter(({ seq }) => number(seq) > after)
          .sort(bySeq)
          .slice(0, limit)
      }
    }
    const found: Item[] = []
    for (let position = after; found.length < limit; ) {
      const start = this.#numbers.findIndex((seq) => seq > position)
      if (start === -1) break
      const part = this.#numbers.slice(start, start + (position === after ? limit : PART))
      found.push(...(await this.#read(part)))
      position = part.at(-1) ?? position
    }
    return found.slice(0, limit)
  }

  /** Adds the numbers that were given since; whether that is not enough. */
  async #isOutOfDate(after: number): Promise<boolean> {
    if (this.#numbers.length <= PART) return true
    if (after < (this.#numbers[0] ?? 0) && ++this.#sweeps % LOOK_AT_ALL_EVERY === 0) return true
    const last = await this.#lastNumber()
    if (last - this.#last > this.#numbers.length) return true
    for (let seq = this.#last + 1; seq <= last; seq++) this.#numbers.push(seq)
    this.#last = Math.max(this.#last, last)
    return false
  }

  /** All entries of a queue that is short, or of which all are wanted; of another one, the numbers are remembered. */
  async #lookAtAll(limit: number): Promise<Item[] | undefined> {
    const all = limit === Number.POSITIVE_INFINITY
    const last = all ? 0 : await this.#lastNumber()
    const entries: Item[] = []
    for await (const { items, isLast } of this.#connection.scan({
      TableName: this.#table,
      ...(!all && { Limit: SHORT }),
    })) {
      entries.push(...items)
      if (isLast) return entries
      if (!all) break
    }
    const { seq = N(0) } = entries.at(-1) ?? {}
    for await (const { items } of this.#connection.scan(
      { TableName: this.#table, ProjectionExpression: 'seq' },
      { seq },
    )) {
      entries.push(...items)
    }
    this.#numbers = entries.map((entry) => number(entry.seq)).sort((a, b) => a - b)
    this.#last = Math.max(last, this.#numbers.at(-1) ?? 0)
    return undefined
  }

  async #lastNumber(): Promise<number> {
    const { TableName, Key } = this.#counter
    return number((await this.#connection.get(TableName, Key))?.n ?? N(0))
  }

  async #read(numbers: readonly number[]): Promise<Item[]> {
    const keys = numbers.map((seq) => ({ seq: N(seq) }))
    const found = await this.#connection.getAll(this.#table, keys)
    const there = new Set(found.map(({ seq }) => number(seq)))
    this.#forget(numbers.filter((seq) => !there.has(seq)))
    return found.sort(bySeq)
  }

  async remove(seqs: readonly number[]): Promise<void> {
    const distinct = [...new Set(seqs)]
    await this.#connection.deleteAll(
      this.#table,
      distinct.map((seq) => ({ seq: N(seq) })),
    )
    this.#forget(distinct)
  }

  #forget(gone: readonly number[]): void {
    if (gone.length === 0 || this.#numbers.length === 0) return
    const left = new Set(gone)
    this.#numbers = this.#numbers.filter((seq) => !left.has(seq))
  }
}
