/** What a commit costs this thread, of the store beside the same by hand: whose code runs, and what it allocates. */
import { percentile, takeTurnOf, warmUp } from './measure.ts'
import { allocated, type Shares, sharesOf, timed } from './profiler.ts'
import { type Result, resultOf } from './results.ts'
import type { Measure, Settings } from './settings.ts'
import { isHeavy, openCounting, type Site, stockOn, variantsOf } from './site.ts'
import { type Traffic, traffic } from './sockets.ts'
import { BYTES } from './subjects.ts'
import { operationOf, type Variant } from './variants.ts'
import { WORKLOADS } from './workloads.ts'

const LEVELS = [1, 256]
const TURN_MS = 250

/** Of one operation. */
export interface Profile {
  /** Microseconds of this thread. */
  readonly times: Shares
  /** Bytes on the heap. */
  readonly bytes: Shares
  /** Through the sockets; null where there are none. */
  readonly traffic: Traffic | null
}

/** One turn under each of the profilers. */
async function takeTurns(variant: Variant, atOnce: number) {
  const turn = () => takeTurnOf(operationOf(variant, atOnce), TURN_MS)
  const before = traffic()
  const time = await timed(turn)
  const after = traffic()
  const space = await allocated(turn)
  const { elapsed, latencies } = time.result
  return {
    ...{ elapsed, latencies, times: time.shares, bytes: space.shares, allocations: space.result.latencies.length },
    traffic: { sent: after.sent - before.sent, received: after.received - before.received },
  }
}

type Turns = Awaited<ReturnType<typeof takeTurns>>

const total = (values: readonly number[]): number => values.reduce((all, value) => all + value, 0)

function profileOfTurns(turns: readonly Turns[]): Profile {
  const ops = total(turns.map(({ latencies }) => latencies.length))
  const [sent, received] = [
    total(turns.map((turn) => turn.traffic.sent)),
    total(turns.map((turn) => turn.traffic.received)),
  ]
  return {
    times: sharesOf(
      turns.map(({ times }) => times),
      ops,
    ),
    bytes: sharesOf(
      turns.map(({ bytes }) => bytes),
      total(turns.map(({ allocations }) => allocations)),
    ),
    traffic: sent === 0 ? null : { sent: sent / ops, received: received / ops },
  }
}

async function profileAt(
  site: Site,
  { dir, seconds }: Settings,
  onProgress: (part: number) => void,
): Promise<Result[]> {
  const { backend, database, protocol } = site
  const workload = WORKLOADS.commit
  const openHere = (url: string) => site.open(url, false)
  await using place = await database(dir)
  await using opened = await openHere(place.url)
  const stock = await stockOn(site, opened.store, BYTES)
  await using counting = protocol === undefined ? undefined : await openCounting(protocol, place.url, openHere)
  const results: Result[] = []
  for (const [index, atOnce] of LEVELS.entries()) {
    const variants = Object.entries(variantsOf(opened.contenders, workload, stock, atOnce))
    const taken = variants.map(([name, variant]) => ({ name, variant, turns: [] as Turns[] }))
    const rounds = isHeavy(site, atOnce) ? 1 : Math.max(1, Math.round((seconds * 1000) / TURN_MS))
    for (const { variant } of taken) {
      if (rounds === 1) continue
      await warmUp(operationOf(variant, atOnce), seconds, TURN_MS)
      // In the first turn V8 also prepares what it profiles with.
      await takeTurns(variant, atOnce)
    }
    for (let round = 0; round < rounds; round++) {
      for (const { variant, turns } of taken) turns.push(await takeTurns(variant, atOnce))
      taken.reverse()
      onProgress((index + (round + 1) / rounds) / LEVELS.length)
    }
    const trips = isHeavy(site, atOnce) ? undefined : await counting?.roundTrips(workload, stock, atOnce)
    for (const [name, { role }] of variants) {
      const turns = taken.find((each) => each.name === name)?.turns ?? []
      const latencies = turns.flatMap((turn) => turn.latencies)
      const timing = {
        opsPerSecond: (1000 * latencies.length) / total(turns.map(({ elapsed }) => elapsed)),
        ...{ p50Ms: percentile(latencies, 0.5), p99Ms: percentile(latencies, 0.99), cpuMs: null },
      }
      const task = { backend, workload: 'commit, profiled', concurrency: atOnce, variant: name, role }
      results.push({
        ...resultOf(task, timing),
        roundTrips: trips?.[name] ?? null,
        profile: profileOfTurns(turns),
      })
    }
  }
  return results
}

export const profileOf = (site: Site): Measure => ({
  name: `${site.backend}-profile`,
  workload: 'profile',
  run: (settings, onProgress) => profileAt(site, settings, onProgress),
})
