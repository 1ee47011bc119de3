/** What a runner does that starts among many executions, a few of which have something to do. */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { DurableRunner } from '@harel/xstate'
import { openStore } from './open-store.ts'
import type { Restarted } from './restart-process.ts'
import { compare, type Result } from './results.ts'
import { sleeper } from './runner-machines.ts'
import type { Measure } from './settings.ts'
import type { Site } from './site.ts'

const PROGRAM = join(import.meta.dirname, 'restart-process.ts')
const AT_ONCE = 256

/** Executions that wait for years, and a tenth as many whose time has come. */
async function fill(backend: string, url: string, active: number): Promise<void> {
  await using store = await openStore(backend, url)
  // It fires nothing, because it does not run.
  await using runner = new DurableRunner(store, { machines: [sleeper] })
  let next = 0
  const caller = async () => {
    for (let n = next++; n < active * 1.1; n = next++) {
      await runner.create('sleeper', { id: `sleeper-${n}`, input: { milliseconds: n < active ? 1e12 : 1 } })
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, caller))
}

async function restart(backend: string, url: string): Promise<Restarted> {
  const { stdout } = await promisify(execFile)(process.execPath, ['--expose-gc', PROGRAM, backend, url])
  return JSON.parse(stdout) as Restarted
}

/** One operation is a timer. */
function resultOf(kind: string, active: number, { seconds, calls, heapMiB }: Restarted): Result {
  const due = active / 10
  return {
    ...{ backend: `runner ${kind}`, workload: `restart among ${active}, ${due} due`, concurrency: 1 },
    ...{ variant: 'DurableRunner', role: 'store', opsPerSecond: due / seconds, p50Ms: 0, p99Ms: 0 },
    ...{ ratioToDriver: null, ratioToBestPeer: null, cpuMs: null, roundTrips: null },
    comparisons: [
      compare(calls / due, 'calls of the store for each timer', { max: 3 }),
      compare(heapMiB, 'MiB more of heap', { max: 64 }),
    ],
  }
}

export const restartOn = (site: Site): Measure => ({
  name: `${site.backend}-restart`,
  workload: 'runner',
  async run({ dir, rows }, onProgress) {
    const results: Result[] = []
    // Two sizes show whether it is the executions that cost, or the timers.
    for (const [index, active] of [rows / 100, rows / 10].entries()) {
      await using place = await site.database(dir)
      await fill(site.backend, place.url, active)
      onProgress((index + 0.5) / 2)
      results.push(resultOf(site.backend, active, await restart(site.backend, place.url)))
    }
    return results
  },
})
