/** What it takes to relay and to list everything, in a process that does nothing else. */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { PAGE } from './contender.ts'
import type { Fill } from './fill.ts'
import type { Taken } from './memory-process.ts'
import { compare, type Result } from './results.ts'
import type { Measure } from './settings.ts'
import type { Site } from './site.ts'

const PROGRAM = join(import.meta.dirname, 'memory-process.ts')

/**
 * With so little to grow into that what is measured is what is held: by default Node collects nothing of its old generation
 * before that has hundreds of MiB, if the machine has memory enough.
 */
const NODE = ['--expose-gc', '--max-semi-space-size=2', '--max-old-space-size=64']

async function takenBy(backend: string, url: string, what: 'relay' | 'list', rows: number): Promise<Taken> {
  const { stdout } = await promisify(execFile)(process.execPath, [...NODE, PROGRAM, backend, url, what, String(rows)])
  const taken = JSON.parse(stdout) as Taken
  if (taken.rows < rows) throw new Error(`only ${taken.rows} of ${rows} rows were there to ${what}`)
  return taken
}

/** One operation is a page. @param variant the store's name */
const resultOf = (backend: string, variant: string, workload: string, taken: Taken): Result => ({
  ...{ backend, workload, concurrency: 1, variant, role: 'store' },
  ...{ opsPerSecond: taken.rows / PAGE / taken.seconds, p50Ms: taken.p50Ms, p99Ms: taken.p99Ms },
  ...{ ratioToDriver: null, ratioToBestPeer: null, cpuMs: null, roundTrips: null },
  comparisons: [
    compare(taken.heapMiB, 'MiB more of heap', { max: 16 }),
    compare(taken.rssMiB, 'MiB more of the process', { max: 256 }),
  ],
})

/** @param most rows, where more would take too long */
export const memoryOf = (site: Site, variant: string, fill: Fill, most = Number.POSITIVE_INFINITY): Measure => ({
  name: `${site.backend}-memory`,
  workload: 'memory',
  async run({ dir, rows: wanted }, onProgress) {
    const rows = Math.min(wanted, most)
    await using place = await site.database(dir)
    await fill(place.url, rows)
    onProgress(0.5)
    const listed = await takenBy(site.backend, place.url, 'list', rows)
    onProgress(0.7)
    const relayed = await takenBy(site.backend, place.url, 'relay', rows)
    return [
      resultOf(site.backend, variant, `list all of ${rows}`, listed),
      resultOf(site.backend, variant, `relay all of ${rows}`, relayed),
    ]
  },
})
