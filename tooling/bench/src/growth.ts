/** What an operation costs while a database grows, beside the same statements by hand on the same data. */
import { compare, type Result } from './results.ts'
import type { Measure, Settings } from './settings.ts'
import { type Site, variantsOf } from './site.ts'
import { stockOf } from './stock.ts'
import type { Subject } from './subjects.ts'
import { measureVariants } from './variants.ts'
import { WORKLOADS, type WorkloadName } from './workloads.ts'

const SIZES = [1_000, 10_000, 100_000, 1_000_000]
const GROUPED = 256
/** Each at so many at once. */
const GROWING: readonly (readonly [name: WorkloadName, atOnce: number])[] = [
  ['commit', 1],
  ['commit', GROUPED],
  ['page', 1],
  ['relay', 1],
  ['timers', 1],
  ['list-deep', 1],
]

/** Fills a new database with so many executions, pending events and due timers, and returns some of the executions. */
export type Fill = (url: string, rows: number) => Promise<readonly Subject[]>

const workloadOf = (name: string, rows: number): string => `${name}, ${rows} stored`

export const isGrowth = ({ workload }: Result): boolean => /^\S+, \d+ stored$/.test(workload)

/** What was done, and in how large a database. */
export function placeOf({ workload }: Result): { operation: string; rows: number } {
  const [operation = '', rows] = workload.split(', ')
  return { operation, rows: Number.parseInt(rows ?? '', 10) }
}

async function measureAt(
  { database, open, backend }: Site,
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
  for (const [index, [name, concurrency]] of GROWING.entries()) {
    const task = { backend, workload: workloadOf(name, rows), concurrency, seconds, goals: [] }
    const progress = (part: number) => onProgress(0.5 + (index + part) / GROWING.length / 2)
    const variants = variantsOf(opened.contenders, WORKLOADS[name], stock, concurrency)
    results.push(...(await measureVariants(variants, task, progress)))
  }
  return results
}

/** Judges how a ratio to the driver grows: what the driver itself loses, a store may lose too. */
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
    const growth = compare(ratioToDriver / start.ratioToDriver, '× the growth by hand', { max: 1.2 })
    return { ...result, comparisons: [growth] }
  })
}

export const growthOf = (site: Site, fill: Fill): Measure => ({
  name: `${site.backend}-growth`,
  workload: 'growth',
  async run(settings, onProgress) {
    const sizes = SIZES.filter((size) => size <= settings.rows)
    const results: Result[] = []
    for (const [index, rows] of sizes.entries()) {
      const progress = (part: number) => onProgress((index + part) / sizes.length)
      results.push(...(await measureAt(site, fill, rows, settings, progress)))
    }
    return judge(results)
  },
})
