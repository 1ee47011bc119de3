/** What an operation costs while a database grows, beside the same statements by hand on the same data. */
import type { Fill } from './fill.ts'
import { compare, type Result } from './results.ts'
import type { Measure, Settings } from './settings.ts'
import { type Site, variantsOf } from './site.ts'
import { stockOf } from './stock.ts'
import { measureVariants } from './variants.ts'
import { WORKLOADS, type Workload, type WorkloadName } from './workloads.ts'

const SIZES = [1_000, 10_000, 100_000, 1_000_000]
const GROUPED = 256
/** Each at so many at once; on a server that stands in for the real one, one by one and in half as many turns. */
const GROWING: readonly (readonly [name: WorkloadName, atOnce: number])[] = [
  ['commit', 1],
  ['commit', GROUPED],
  ['page', 1],
  ['relay', 1],
  ['timers', 1],
  ['list-deep', 1],
]

const workloadOf = (name: string, rows: number): string => `${name}, ${rows} stored`

export const isGrowth = ({ workload }: Result): boolean => /^\S+, \d+ stored$/.test(workload)

/** What was done, and in how large a database. */
export function placeOf({ workload }: Result): { operation: string; rows: number } {
  const [operation = '', rows] = workload.split(', ')
  return { operation, rows: Number.parseInt(rows ?? '', 10) }
}

async function measureAt(
  { database, open, backend, isStandIn = false }: Site,
  fill: Fill,
  rows: number,
  { dir, seconds }: Settings,
  onProgress: (part: number) => void,
): Promise<Result[]> {
  await using place = await database(dir)
  const subjects = await fill(place.url, rows)
  onProgress(0.5)
  await using opened = await open(place.url, false)
  const stock = await stockOf(opened.store, subjects, Math.floor(rows / 100) - 1)
  const results: Result[] = []
  const growing = isStandIn ? GROWING.filter(([, atOnce]) => atOnce === 1) : GROWING
  for (const [index, [name, concurrency]] of growing.entries()) {
    const usual: Workload = WORKLOADS[name]
    const workload = isStandIn && usual.pages !== undefined ? { ...usual, pages: 1 } : usual
    const task = {
      ...{ backend, workload: workloadOf(name, rows), concurrency, goals: [] },
      // What is judged are ratios of ratios.
      seconds: isStandIn ? seconds / 2 : seconds * 2,
    }
    const progress = (part: number) => onProgress(0.5 + (index + part) / growing.length / 2)
    const variants = variantsOf(opened.contenders, workload, stock, concurrency)
    results.push(...(await measureVariants(variants, task, progress)))
  }
  return results
}

/**
 * A store's curve should stay within 1.2 × of the curve by hand; or, where a store takes longer than that from the start,
 * at the distance that it has there: what the driver itself loses, a store may lose too.
 */
function judge(results: readonly Result[]): Result[] {
  const [smallest = 0] = SIZES
  return results.map((result) => {
    const { variant, concurrency, ratioToDriver } = result
    const { operation } = placeOf(result)
    const start = results.find(
      (other) =>
        other.variant === variant &&
        other.concurrency === concurrency &&
        other.workload === workloadOf(operation, smallest),
    )
    if (ratioToDriver === null || start?.ratioToDriver == null || start === result) return result
    const growth = ratioToDriver / start.ratioToDriver
    const target = { max: 1.2 }
    const comparison =
      growth > target.max && ratioToDriver <= target.max
        ? compare(ratioToDriver, '× the time by hand', target)
        : compare(growth, '× the growth by hand', target)
    return { ...result, comparisons: [comparison] }
  })
}

/** @param most rows, where more would take too long */
export const growthOf = (site: Site, fill: Fill, most = Number.POSITIVE_INFINITY): Measure => ({
  name: `${site.backend}-growth`,
  workload: 'growth',
  async run(settings, onProgress) {
    const sizes = SIZES.filter((size) => size <= Math.min(settings.rows, most))
    const results: Result[] = []
    for (const [index, rows] of sizes.entries()) {
      const progress = (part: number) => onProgress((index + part) / sizes.length)
      results.push(...(await measureAt(site, fill, rows, settings, progress)))
    }
    return judge(results)
  },
})
