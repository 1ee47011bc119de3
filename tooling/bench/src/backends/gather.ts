/**
 * Puts together what is asked for while an earlier request is under way.
 *
 * @param all answers each of the items, in their order
 */
export function gather<Item, Answer>(
  all: (items: readonly Item[]) => Promise<readonly Answer[]>,
): (item: Item) => Promise<Answer> {
  let waiting: { item: Item; resolve: (answer: Answer) => void; reject: (error: unknown) => void }[] = []
  let underWay = false
  const send = async () => {
    if (underWay || waiting.length === 0) return
    const sent = waiting
    waiting = []
    underWay = true
    try {
      const answers = await all(sent.map(({ item }) => item))
      for (const [index, { resolve }] of sent.entries()) resolve(answers[index] as Answer)
    } catch (error) {
      for (const { reject } of sent) reject(error)
    }
    underWay = false
    setImmediate(send)
  }
  return (item) =>
    new Promise((resolve, reject) => {
      waiting.push({ item, resolve, reject })
      if (waiting.length === 1) queueMicrotask(send)
    })
}

/** Takes so many numbers that follow each other from a counter. @param add to the counter, which is then the last number */
export const sequence = (add: (count: number) => Promise<number>): ((count: number) => Promise<number>) =>
  gather(async (counts) => {
    const total = counts.reduce((sum, count) => sum + count, 0)
    let next = (await add(total)) - total + 1
    return counts.map((count) => {
      next += count
      return next - count
    })
  })
