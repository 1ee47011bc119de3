import { describe, expect, test } from 'vitest'
import { Sequence } from '../src/sequence.js'

/** A counter that takes a turn, and remembers what it was asked for. */
function counter(failures: Error[] = []) {
  const asked: number[] = []
  let last = 0
  let underWay = false
  const sequence = new Sequence(async (count) => {
    if (underWay) throw new Error('two requests at once')
    underWay = true
    asked.push(count)
    await new Promise(setImmediate)
    underWay = false
    const failure = failures.shift()
    if (failure !== undefined) throw failure
    last += count
    return last
  })
  const othersTake = (count: number) => {
    last += count
  }
  return { sequence, asked, othersTake }
}

describe('numbers of a sequence', () => {
  test('are taken in one request by all who ask in one turn', async () => {
    const { sequence, asked } = counter()
    expect(await Promise.all([sequence.take(2), sequence.take(1), sequence.take(3)])).toEqual([1, 3, 4])
    expect(asked).toEqual([6])
  })

  test('are taken in the next request by all who ask during one', async () => {
    const { sequence, asked } = counter()
    const first = sequence.take(1)
    await Promise.resolve()
    await Promise.resolve()
    const later = [sequence.take(2), sequence.take(2)]
    expect(await first).toBe(1)
    expect(await Promise.all(later)).toEqual([2, 4])
    expect(asked).toEqual([1, 4])
  })

  test('go on behind those that others took', async () => {
    const { sequence, othersTake } = counter()
    expect(await sequence.take(1)).toBe(1)
    othersTake(10)
    expect(await sequence.take(2)).toBe(12)
  })

  test('fail together with their request, and with no other', async () => {
    const failure = new Error('ECONNRESET')
    const { sequence } = counter([failure])
    const calls = await Promise.allSettled([sequence.take(1), sequence.take(1)])
    expect(calls).toEqual([
      { status: 'rejected', reason: failure },
      { status: 'rejected', reason: failure },
    ])
    expect(await sequence.take(1)).toBe(1)
  })
})
