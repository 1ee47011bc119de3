import type { CheckedQueuePage } from '@harel/store-base'
import { type Client, reading } from './client.js'

/** Up to so many entries, reading all their numbers costs no more than looking for them. */
const SMALL = 5000
const WINDOW = 500
/** Another writer may take a number, be overtaken, and write its entry late: now and then, all are looked at. */
const LOOK_AT_ALL_EVERY = 100
/** Fields in one HMGET or HDEL. */
const PART = 1000

/**
 * A queue in a hash of numbered entries, in the layout of Python harel. It has no order of its own: pages of a large one
 * are found by asking for numbers in turn, from the smallest that can still be there.
 */
export class Queue {
  readonly #client: Client
  readonly #hash: string
  readonly #counter: string
  #lowest = 1
  #sweeps = 0

  constructor(client: Client, hash: string, counter: string) {
    this.#client = client
    this.#hash = hash
    this.#counter = counter
  }

  /** Entries by ascending number. */
  async page({ after, limit }: CheckedQueuePage): Promise<{ seq: number; value: string }[]> {
    const size = await reading(this.#client.hlen(this.#hash))
    if (size === 0) return []
    const fromStart = after < this.#lowest
    if (fromStart) this.#sweeps += 1
    if (size <= SMALL || limit > SMALL || this.#sweeps % LOOK_AT_ALL_EVERY === 0) {
      const seqs = (await reading(this.#client.hkeys(this.#hash))).map(Number).sort((a, b) => a - b)
      this.#lowest = seqs[0] ?? 1
      return this.#read(seqs.filter((seq) => seq > after).slice(0, limit))
    }
    return this.#search(Math.max(after + 1, this.#lowest), limit, fromStart)
  }

  async #search(from: number, limit: number, fromStart: boolean): Promise<{ seq: number; value: string }[]> {
    const last = Number((await reading(this.#client.get(this.#counter))) ?? 0)
    const found: { seq: number; value: string }[] = []
    for (let start = from; start <= last && found.length < limit; start += WINDOW) {
      const window = Array.from({ length: Math.min(WINDOW, last - start + 1) }, (_, index) => start + index)
      found.push(...(await this.#read(window)))
    }
    if (fromStart) this.#lowest = found[0]?.seq ?? from
    return found.slice(0, limit)
  }

  async #read(seqs: readonly number[]): Promise<{ seq: number; value: string }[]> {
    const found: { seq: number; value: string }[] = []
    for (const part of inParts(seqs)) {
      const values = await reading(this.#client.hmget(this.#hash, ...part.map(String)))
      for (const [index, value] of values.entries()) {
        if (typeof value === 'string') found.push({ seq: part[index] as number, value })
      }
    }
    return found
  }

  async remove(seqs: readonly number[]): Promise<void> {
    for (const part of inParts(seqs)) await reading(this.#client.hdel(this.#hash, ...part.map(String)))
  }

  /** The numbers of the entries that match, whoever wrote them: all are read. */
  async find(matches: (value: string) => boolean): Promise<number[]> {
    const found = new Set<number>()
    let cursor = '0'
    do {
      const [next, fields] = await reading(this.#client.hscan(this.#hash, cursor, 'COUNT', PART))
      for (let index = 0; index < fields.length; index += 2) {
        if (matches(fields[index + 1] ?? '')) found.add(Number(fields[index]))
      }
      cursor = next
    } while (cursor !== '0')
    return [...found]
  }
}

function* inParts(seqs: readonly number[]): Generator<number[], void, undefined> {
  for (let start = 0; start < seqs.length; start += PART) yield seqs.slice(start, start + PART)
}
