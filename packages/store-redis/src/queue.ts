import type { CheckedQueuePage } from '@harel/store-base'
import type { Connection } from './client.js'
import { FIND_FIELDS } from './scripts.js'

/** An entry of a queue as it is stored. */
export interface QueueEntry {
  readonly seq: number
  readonly value: string
}

/** So many entries are asked for at once; up to so many, it costs next to nothing to ask for the numbers of all. */
const PART = 1000
const LOOK_AT_ALL_EVERY = 100

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
  /** Ascending; all that can be there, up to `#last`. */
  #numbers: number[] = []
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
    for (let number = this.#last + 1; number <= last; number++) this.#numbers.push(number)
    this.#last = Math.max(this.#last, last)

    const found: QueueEntry[] = []
    let wanted = limit
    let position = after
    while (found.length < limit) {
      const start = this.#indexBehind(position)
      const part = this.#numbers.slice(start, start + Math.min(wanted, PART))
      position = part.at(-1) ?? position
      if (part.length > 0) found.push(...(await this.#read(part)))
      else if (lookedAtAll || this.#numbers.length >= size) break
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
    if (size <= PART || unseen > size || this.#numbers.length + unseen < size) return true
    const isBeginning = after < (this.#numbers[0] ?? 0)
    if (isBeginning) this.#sweeps += 1
    return isBeginning && this.#sweeps % LOOK_AT_ALL_EVERY === 0
  }

  async #lookAtAll(size: number, last: number): Promise<void> {
    const numbers =
      size <= PART ? (await this.#connection.read((client) => client.hkeys(this.#hash))).map(Number) : await this.find()
    this.#numbers = numbers.filter(Number.isSafeInteger).sort((a, b) => a - b)
    this.#last = Math.max(last, this.#numbers.at(-1) ?? 0)
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
    this.#forget(gone)
    return found
  }

  async remove(seqs: readonly number[]): Promise<void> {
    for (const part of inParts(seqs, PART)) {
      await this.#connection.read((client) => client.hdel(this.#hash, ...part.map(String)))
    }
    this.#forget(seqs.toSorted((a, b) => a - b))
  }

  /** The numbers of the entries that begin with one of these texts; without texts, all. */
  async find(...beginnings: string[]): Promise<number[]> {
    const found = new Set<number>()
    let cursor = '0'
    do {
      const answer = await this.#connection.evaluate(FIND_FIELDS, [this.#hash], [cursor, PART, ...beginnings])
      const [next = '0', ...fields] = answer as string[]
      for (const field of fields) found.add(Number(field))
      cursor = String(next)
    } while (cursor !== '0')
    return [...found]
  }

  /** @param gone ascending */
  #forget(gone: readonly number[]): void {
    const [first] = gone
    const last = gone.at(-1)
    if (first === undefined || last === undefined) return
    const from = this.#indexBehind(first - 1)
    const to = this.#indexBehind(last)
    if (from === to) return
    const left = new Set(gone)
    const kept = this.#numbers.slice(from, to).filter((number) => !left.has(number))
    this.#numbers = this.#numbers.slice(0, from).concat(kept, this.#numbers.slice(to))
  }

  /** The index of the first known number behind this one. */
  #indexBehind(number: number): number {
    let from = 0
    let to = this.#numbers.length
    while (from < to) {
      const middle = (from + to) >> 1
      if ((this.#numbers[middle] ?? 0) > number) to = middle
      else from = middle + 1
    }
    return from
  }
}

export function* inParts<T>(items: readonly T[], size: number): Generator<T[], void, undefined> {
  for (let start = 0; start < items.length; start += size) yield items.slice(start, start + size)
}
