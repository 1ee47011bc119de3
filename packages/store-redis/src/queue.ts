import type { CheckedQueuePage } from '@harel/store-base'
import type { Connection } from './client.js'
import { Numbers } from './numbers.js'
import { FIND_FIELDS } from './scripts.js'

/** An entry of a queue as it is stored. */
export interface QueueEntry {
  readonly seq: number
  readonly value: string
}

/** So many entries are asked for at once; up to so many, it costs next to nothing to ask for the numbers of all. */
const PART = 1000
/** A look at all numbers takes a question for each part, so that it adds a tenth of a question to each sweep. */
const sweepsBetweenLooks = (size: number): number => Math.max(100, size / 100)

/**
 * A queue in a hash of numbered entries, in the layout of Python harel. It has no order, so the numbers of a long one are
 * remembered here; what has left is found missing, what was added is known by the counter. Another writer takes its
 * number some time before it writes the entry, so one that was found missing may come late: when there are more
 * entries than known numbers, and now and then, all numbers are looked at again.
 */
export class Queue {
  readonly #connection: Connection
  readonly #hash: string
  readonly #counter: string
  /** All that can be there, up to `#last`. */
  #numbers = new Numbers()
  #last = 0
  #sweeps = 0

  constructor(connection: Connection, hash: string, counter: string) {
    this.#connection = connection
    this.#hash = hash
    this.#counter = counter
  }

  /** Entries by ascending number; fewer than `limit` only at the end of the queue. */
  async page({ after, limit }: CheckedQueuePage): Promise<QueueEntry[]> {
    const { size, last } = await this.extent()
    let lookedAtAll = limit === Number.POSITIVE_INFINITY || this.#isOutOfDate(size, last, after)
    if (lookedAtAll) await this.#lookAtAll(size, last)
    this.#numbers.add(this.#last + 1, last)
    this.#last = Math.max(this.#last, last)

    const found: QueueEntry[] = []
    let wanted = limit
    let position = after
    while (found.length < limit) {
      const part = this.#numbers.behind(position, Math.min(wanted, PART))
      position = part.at(-1) ?? position
      if (part.length > 0) found.push(...(await this.#read(part)))
      else if (lookedAtAll || this.#numbers.size >= size) break
      else {
        lookedAtAll = true
        await this.#lookAtAll(size, last)
      }
      // Where some have left, more have.
      wanted = PART
    }
    return found.slice(0, limit)
  }

  /** How many entries there are, and the last number that was given. */
  async extent(): Promise<{ size: number; last: number }> {
    const answers = await this.#connection.readAll((pipeline) => pipeline.hlen(this.#hash).get(this.#counter))
    const [size = 0, last = 0] = answers.map(Number)
    return { size, last }
  }

  #isOutOfDate(size: number, last: number, after: number): boolean {
    const unseen = Math.max(0, last - this.#last)
    if (size <= PART || unseen > size || this.#numbers.size + unseen < size) return true
    if (after >= this.#numbers.first) return false
    this.#sweeps += 1
    return this.#sweeps >= sweepsBetweenLooks(size)
  }

  async #lookAtAll(size: number, last: number): Promise<void> {
    const numbers: number[] = []
    if (size <= PART) numbers.push(...(await this.#connection.read((client) => client.hkeys(this.#hash))).map(Number))
    else for await (const part of this.#walk()) numbers.push(...part)
    this.#numbers = new Numbers(numbers.filter(Number.isSafeInteger))
    this.#last = Math.max(last, this.#numbers.last)
    this.#sweeps = 0
  }

  async #read(numbers: readonly number[]): Promise<QueueEntry[]> {
    const values = await this.#connection.read((client) => client.hmget(this.#hash, ...numbers.map(String)))
    const found: QueueEntry[] = []
    const gone: number[] = []
    for (const [index, seq] of numbers.entries()) {
      const value = values[index]
      if (typeof value === 'string') found.push({ seq, value })
      else gone.push(seq)
    }
    this.#numbers.delete(gone)
    return found
  }

  async remove(seqs: readonly number[]): Promise<void> {
    for (const part of inParts(seqs, PART)) {
      await this.#connection.read((client) => client.hdel(this.#hash, ...part.map(String)))
    }
    this.#numbers.delete(seqs.toSorted((a, b) => a - b))
  }

  /** The numbers of the entries that begin with one of these texts. */
  async find(...beginnings: string[]): Promise<number[]> {
    const found = new Set<number>()
    for await (const part of this.#walk(...beginnings)) for (const number of part) found.add(number)
    return [...found]
  }

  /** The numbers in parts, in no order; some may come twice. */
  async *#walk(...beginnings: string[]): AsyncGenerator<number[]> {
    let cursor = '0'
    do {
      const answer = await this.#connection.evaluate(FIND_FIELDS, [this.#hash], [cursor, PART, ...beginnings])
      const [next = '0', ...fields] = answer as string[]
      yield fields.map(Number)
      cursor = String(next)
    } while (cursor !== '0')
  }
}

export function* inParts<T>(items: readonly T[], size: number): Generator<T[], void, undefined> {
  for (let start = 0; start < items.length; start += size) yield items.slice(start, start + size)
}
