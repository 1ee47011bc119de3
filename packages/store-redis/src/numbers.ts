interface Range {
  readonly from: number
  readonly to: number
}

/**
 * A set of whole numbers, kept as ranges: those of a queue are given one after another and leave in about that order, so
 * a million of them are a few ranges.
 */
export class Numbers {
  /** Ascending, with a gap between each two. */
  readonly #ranges: Range[] = []
  #size = 0

  /** @param numbers in any order */
  constructor(numbers: readonly number[] = []) {
    const ascending = Float64Array.from(numbers).sort()
    let from = 0
    for (const [index, number] of ascending.entries()) {
      const next = ascending[index + 1]
      if (next === number || next === number + 1) continue
      this.add(ascending[from] ?? number, number)
      from = index + 1
    }
  }

  get size(): number {
    return this.#size
  }

  /** The lowest one, or 0. */
  get first(): number {
    return this.#ranges[0]?.from ?? 0
  }

  /** The highest one, or 0. */
  get last(): number {
    return this.#ranges.at(-1)?.to ?? 0
  }

  /** Adds a range that begins behind the last number. */
  add(from: number, to: number): void {
    if (to < from) return
    const last = this.#ranges.at(-1)
    if (last?.to === from - 1) this.#ranges[this.#ranges.length - 1] = { from: last.from, to }
    else this.#ranges.push({ from, to })
    this.#size += to - from + 1
  }

  /** @param numbers ascending */
  delete(numbers: readonly number[]): void {
    let from = 0
    for (const [index, number] of numbers.entries()) {
      if (numbers[index + 1] === number + 1) continue
      this.#deleteRange(numbers[from] ?? number, number)
      from = index + 1
    }
  }

  #deleteRange(from: number, to: number): void {
    const start = this.#indexOf(from)
    const left: Range[] = []
    let end = start
    for (let range = this.#ranges[end]; range !== undefined && range.from <= to; range = this.#ranges[++end]) {
      if (range.from < from) left.push({ from: range.from, to: from - 1 })
      if (range.to > to) left.push({ from: to + 1, to: range.to })
      this.#size -= Math.min(range.to, to) - Math.max(range.from, from) + 1
    }
    if (end > start) this.#ranges.splice(start, end - start, ...left)
  }

  /** Ascending, at most `limit` of those that are greater than `number`. */
  behind(number: number, limit: number): number[] {
    const found: number[] = []
    for (let index = this.#indexOf(number + 1); found.length < limit; index++) {
      const range = this.#ranges[index]
      if (range === undefined) break
      for (let next = Math.max(range.from, number + 1); next <= range.to && found.length < limit; next++) {
        found.push(next)
      }
    }
    return found
  }

  /** The index of the first range that ends at this number or behind it. */
  #indexOf(number: number): number {
    let from = 0
    let to = this.#ranges.length
    while (from < to) {
      const middle = (from + to) >> 1
      if ((this.#ranges[middle]?.to ?? 0) < number) from = middle + 1
      else to = middle
    }
    return from
  }
}
