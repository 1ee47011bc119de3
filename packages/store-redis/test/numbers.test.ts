import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { Numbers } from '../src/numbers.js'

const ascending = (numbers: Iterable<number>) => [...numbers].sort((a, b) => a - b)
const number = fc.integer({ min: 0, max: 40 })

test('numbers are what a set of them is, whatever was added, removed and asked for', () => {
  const step = fc.oneof(
    fc.record({ add: fc.tuple(fc.integer({ min: 1, max: 5 }), fc.integer({ min: 0, max: 6 })) }),
    fc.record({ remove: fc.uniqueArray(number) }),
  )
  fc.assert(
    fc.property(
      fc.array(number),
      fc.array(step),
      number,
      fc.integer({ min: 0, max: 50 }),
      (some, steps, after, limit) => {
        const numbers = new Numbers(some)
        const expected = new Set(some)
        let last = Math.max(0, ...some)
        for (const change of steps) {
          if ('add' in change) {
            const [gap, length] = change.add
            numbers.add(last + gap, last + gap + length - 1)
            for (let each = last + gap; each < last + gap + length; each++) expected.add(each)
            last += gap + length
          } else {
            numbers.delete(ascending(change.remove))
            for (const each of change.remove) expected.delete(each)
          }
        }
        const all = ascending(expected)
        expect(numbers.behind(-1, Number.POSITIVE_INFINITY)).toEqual(all)
        expect(numbers.behind(after, limit)).toEqual(all.filter((each) => each > after).slice(0, limit))
        expect([numbers.size, numbers.first, numbers.last]).toEqual([all.length, all[0] ?? 0, all.at(-1) ?? 0])
      },
    ),
  )
})
