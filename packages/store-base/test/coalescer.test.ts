import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Coalescer, type CoalescerOptions } from '../src/coalescer.js'

interface Item {
  key: string
  n: number
  size?: number
  bad?: boolean
}

/** A database that takes one turn for a batch, and remembers what it was given. */
function database(options: Partial<CoalescerOptions<Item, string>> = {}) {
  const batches: Item[][] = []
  let underWay = 0
  let most = 0
  const keysUnderWay = new Set<string>()
  const coalescer = new Coalescer<Item, string>({
    keyOf: ({ key }) => key,
    sizeOf: ({ size = 1 }) => size,
    mayReplay: () => true,
    async run(batch) {
      batches.push([...batch])
      underWay += 1
      most = Math.max(most, underWay)
      for (const { key } of batch) {
        if (keysUnderWay.has(key)) throw new Error(`two of ${key} at once`)
        keysUnderWay.add(key)
      }
      await new Promise(setImmediate)
      for (const { key } of batch) keysUnderWay.delete(key)
      underWay -= 1
      if (batch.some(({ bad }) => bad)) throw new Error(`bad: ${batch.map(({ n }) => n)}`)
      return batch.map(({ n }) => `done ${n}`)
    },
    ...options,
  })
  return { coalescer, batches, numbers: () => batches.map((batch) => batch.map(({ n }) => n)), most: () => most }
}

const item = (n: number, key = `k${String(n).padStart(6, '0')}`, rest: Partial<Item> = {}): Item => ({
  key,
  n,
  ...rest,
})

describe('items that arrive', () => {
  test('at an idle database are run in the same turn, all together', async () => {
    const { coalescer, numbers } = database()
    const results = [1, 2, 3].map((n) => coalescer.submit(item(n)))
    await Promise.resolve()
    expect(numbers()).toEqual([[1, 2, 3]])
    expect(await Promise.all(results)).toEqual(['done 1', 'done 2', 'done 3'])
  })

  test('while a batch is under way make up the next one', async () => {
    const { coalescer, numbers } = database()
    const first = coalescer.submit(item(1))
    await Promise.resolve()
    const later = [2, 3].map((n) => coalescer.submit(item(n)))
    expect(numbers()).toEqual([[1]])
    expect(await first).toBe('done 1')
    // Callers need a few steps from the result to their next item.
    for (let step = 0; step < 10; step++) await Promise.resolve()
    const afterReply = coalescer.submit(item(4))
    await Promise.all([...later, afterReply])
    expect(numbers()).toEqual([[1], [2, 3, 4]])
  })

  test.each([
    [0, 0],
    [0, 1],
    [1, 1],
    [20, 20],
  ])(
    'of callers who have waited for one batch are run together again, the first after %i steps, %i apart',
    async (first, apart) => {
      const { coalescer, batches } = database()
      const caller = async (n: number) => {
        for (let round = 0; round < 4; round++) {
          await coalescer.submit(item(n))
          // It takes each a different time to prepare its next item.
          for (let step = 0; step < first + apart * n; step++) await Promise.resolve()
        }
      }
      await Promise.all(Array.from({ length: 10 }, (_, n) => caller(n)))
      expect(batches.map(({ length }) => length)).toEqual([10, 10, 10, 10])
    },
  )

  test('again at an idle database are run at once again', async () => {
    const { coalescer, numbers } = database()
    await coalescer.submit(item(1))
    await coalescer.drain()
    await new Promise(setImmediate)
    coalescer.submit(item(2))
    await Promise.resolve()
    expect(numbers()).toEqual([[1], [2]])
  })

  test('are sorted by key within a batch, and each gets its own result', async () => {
    const { coalescer, batches } = database()
    const results = await Promise.all(['c', 'a', 'b'].map((key, n) => coalescer.submit({ key, n })))
    expect(batches[0]?.map(({ key }) => key)).toEqual(['a', 'b', 'c'])
    expect(results).toEqual(['done 0', 'done 1', 'done 2'])
  })

  test('with one key never share a batch, and keep their order', async () => {
    const { coalescer, numbers } = database()
    await Promise.all([item(1, 'a'), item(2, 'a'), item(3, 'b'), item(4, 'a')].map((each) => coalescer.submit(each)))
    expect(numbers()).toEqual([[1, 3], [2], [4]])
  })

  test('are at most maxItems in a batch', async () => {
    const { coalescer, numbers } = database({ maxItems: 2 })
    await Promise.all([1, 2, 3, 4, 5].map((n) => coalescer.submit(item(n))))
    expect(numbers()).toEqual([[1, 2], [3, 4], [5]])
  })

  test('have at most maxSize together, unless one alone has more', async () => {
    const { coalescer, numbers } = database({ maxSize: 10 })
    const sizes = [6, 4, 1, 50, 5, 5]
    await Promise.all(sizes.map((size, n) => coalescer.submit(item(n, undefined, { size }))))
    expect(numbers()).toEqual([[0, 1], [2, 4], [3], [5]])
  })

  test('do not overtake one of their key that was too large for the batch', async () => {
    const { coalescer, numbers } = database({ maxSize: 10 })
    const items = [item(1, 'a', { size: 6 }), item(2, 'b', { size: 6 }), item(3, 'b', { size: 1 })]
    await Promise.all(items.map((each) => coalescer.submit(each)))
    expect(numbers()).toEqual([[1], [2], [3]])
  })

  test('may be more than can be handed on as arguments', async () => {
    const { coalescer, batches } = database({ maxItems: 100_000 })
    const keys = Array.from({ length: 250_000 }, (_, n) => String(1_000_000 + n))
    const results = keys.map((key, n) => coalescer.submit({ key, n }))
    await Promise.all(results)
    expect(batches.map(({ length }) => length)).toEqual([100_000, 100_000, 50_000])
  }, 120_000)

  test('fail at the door when they have no key', async () => {
    const { coalescer } = database({
      keyOf: () => {
        throw new Error('no key')
      },
    })
    await expect(coalescer.submit(item(1))).rejects.toThrow('no key')
    await coalescer.drain()
  })
})

describe('a batch that fails', () => {
  const outcomes = (results: Promise<string>[]) =>
    Promise.allSettled(results).then((settled) =>
      settled.map((each) => (each.status === 'fulfilled' ? each.value : each.reason.message)),
    )

  test('is run in halves until the one bad item fails alone', async () => {
    const { coalescer, numbers } = database()
    const results = [1, 2, 3, 4, 5].map((n) => coalescer.submit(item(n, undefined, { bad: n === 4 })))
    expect(await outcomes(results)).toEqual(['done 1', 'done 2', 'done 3', 'bad: 4', 'done 5'])
    expect(numbers()).toEqual([[1, 2, 3, 4, 5], [1, 2], [3, 4, 5], [3], [4, 5], [4], [5]])
  })

  test('fails as a whole when it may have been written', async () => {
    const seen: unknown[] = []
    const mayReplay = (error: unknown) => {
      seen.push(error)
      return false
    }
    const { coalescer, numbers } = database({ mayReplay })
    const results = [1, 2].map((n) => coalescer.submit(item(n, undefined, { bad: n === 2 })))
    expect(await outcomes(results)).toEqual(['bad: 1,2', 'bad: 1,2'])
    expect(numbers()).toEqual([[1, 2]])
    expect(seen).toEqual([new Error('bad: 1,2')])
  })

  test('is not run again when it is a single item', async () => {
    const { coalescer, numbers } = database()
    expect(await outcomes([coalescer.submit(item(1, undefined, { bad: true }))])).toEqual(['bad: 1'])
    expect(numbers()).toEqual([[1]])
  })

  test('does not stop the next ones, also when run throws at once', async () => {
    let first = true
    const { coalescer } = database({
      run(batch) {
        if (first) {
          first = false
          throw new Error('at once')
        }
        return Promise.resolve(batch.map(({ n }) => `done ${n}`))
      },
    })
    expect(await outcomes([coalescer.submit(item(1))])).toEqual(['at once'])
    expect(await coalescer.submit(item(2))).toBe('done 2')
  })

  test('keeps its keys to itself until the last half is over', async () => {
    const { coalescer, numbers } = database({ inFlight: 2 })
    const results = [coalescer.submit(item(1, 'a', { bad: true })), coalescer.submit(item(2, 'b'))]
    await Promise.resolve()
    results.push(coalescer.submit(item(3, 'a')), coalescer.submit(item(4, 'c')))
    expect(await outcomes(results)).toEqual(['bad: 1', 'done 2', 'done 3', 'done 4'])
    expect(numbers().at(-1)).toEqual([3])
  })
})

describe('several batches in flight', () => {
  test('run at once, with one key in one of them', async () => {
    const { coalescer, numbers, most } = database({ inFlight: 2, maxItems: 1 })
    await Promise.all([item(1, 'a'), item(2, 'a'), item(3, 'b'), item(4, 'c')].map((each) => coalescer.submit(each)))
    expect(most()).toBe(2)
    expect(numbers().slice(0, 2)).toEqual([[1], [3]])
    expect(numbers().flat().indexOf(1)).toBeLessThan(numbers().flat().indexOf(2))
  })

  test('leave half of 256 who came together for the other one, again and again', async () => {
    const { coalescer, batches, most } = database({ inFlight: 2 })
    const caller = async (n: number) => {
      for (let round = 0; round < 3; round++) await coalescer.submit(item(n))
    }
    await Promise.all(Array.from({ length: 256 }, (_, n) => caller(n)))
    expect(batches.map(({ length }) => length)).toEqual([128, 128, 128, 128, 128, 128])
    expect(most()).toBe(2)
  })

  test('are one where nothing else is said', async () => {
    const { coalescer, most } = database({ maxItems: 1 })
    await Promise.all([1, 2, 3].map((n) => coalescer.submit(item(n))))
    expect(most()).toBe(1)
  })
})

describe('drain', () => {
  test('waits for what is waiting and under way', async () => {
    const { coalescer } = database({ maxItems: 1 })
    let settled = 0
    for (const n of [1, 2, 3]) void coalescer.submit(item(n)).then(() => (settled += 1))
    await Promise.all([coalescer.drain(), coalescer.drain()])
    expect(settled).toBe(3)
  })

  test('waits for what fails, too', async () => {
    const { coalescer } = database()
    let failed = false
    void coalescer.submit(item(1, undefined, { bad: true })).catch(() => {
      failed = true
    })
    await coalescer.drain()
    expect(failed).toBe(true)
  })

  test('is over at once when there is nothing', async () => {
    const { coalescer } = database()
    await coalescer.drain()
    await coalescer.submit(item(1))
    await coalescer.drain()
    await coalescer.drain()
  })
})

test('whatever arrives when: nothing is lost, repeated or overtaken by its own key', async () => {
  const arrival = fc.record({
    key: fc.constantFrom('a', 'b', 'c', 'd'),
    size: fc.integer({ min: 1, max: 8 }),
    bad: fc.boolean(),
    pause: fc.constantFrom(0, 0, 0, 1, 2),
  })
  const limits = fc.record({
    inFlight: fc.integer({ min: 1, max: 3 }),
    maxItems: fc.integer({ min: 1, max: 4 }),
    maxSize: fc.integer({ min: 1, max: 20 }),
  })
  await fc.assert(
    fc.asyncProperty(fc.array(arrival, { maxLength: 40 }), limits, async (arrivals, options) => {
      const { coalescer, batches } = database(options)
      const settled: Item[] = []
      for (const [n, { pause, ...rest }] of arrivals.entries()) {
        const each = { n, ...rest }
        void coalescer.submit(each).then(
          (result) => settled.push({ ...each, bad: result !== `done ${n}` }),
          () => settled.push({ ...each, bad: true }),
        )
        for (let turn = 0; turn < pause; turn++) await new Promise(setImmediate)
      }
      await coalescer.drain()
      expect(settled.toSorted((a, b) => a.n - b.n)).toEqual(
        arrivals.map(({ pause: _, ...rest }, n) => ({ n, ...rest })),
      )
      for (const batch of batches) {
        expect(new Set(batch.map(({ key }) => key)).size).toBe(batch.length)
        expect(batch.length).toBeLessThanOrEqual(options.maxItems)
        expect(batch.length === 1 || batch.reduce((sum, { size = 0 }) => sum + size, 0) <= options.maxSize).toBe(true)
      }
      for (const key of ['a', 'b', 'c', 'd']) {
        const order = settled.filter((each) => each.key === key).map(({ n }) => n)
        expect(order).toEqual(order.toSorted((a, b) => a - b))
      }
    }),
    { numRuns: 60 },
  )
})
