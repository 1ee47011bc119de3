/** Variants of one workload, measured in turns. */
import type { Role } from './contender.ts'
import { measureInTurns, type Operation, type Timing, type Turned, timesLonger } from './measure.ts'
import { type Comparison, compare, type Result, resultOf } from './results.ts'

export interface Variant extends Turned {
  readonly role: Role
  /** Does it once. */
  readonly run: () => unknown
  readonly isSync?: boolean | undefined
  readonly isElsewhere?: boolean | undefined
}

/** How a variant should do beside another one, at so many at once. */
export interface Goal {
  readonly at: number
  readonly variant: string
  readonly beside: string
  /** `max`: of times; `min`: of speeds. */
  readonly target: Comparison['target']
}

export interface Task {
  readonly backend: string
  readonly workload: string
  readonly concurrency: number
  readonly seconds: number
  readonly goals: readonly Goal[]
}

export const operationOf = ({ run, isSync, prepare, times }: Variant, concurrency: number): Operation =>
  isSync ? { run, prepare, times } : { run: async () => await run(), concurrency, prepare, times }

/**
 * With many at once a turn lasts longer, in milliseconds, for at its beginning all of them come at the same time, and at
 * its end ever fewer are under way.
 */
const turnOf = (concurrency: number): number => (concurrency > 16 ? 200 : 100)

/** Measures them in turns, each against the fastest of the drivers and of the peers. */
export async function measureVariants(
  variants: Readonly<Record<string, Variant>>,
  { seconds, ...task }: Task,
  onProgress: (part: number) => void,
): Promise<Result[]> {
  const entries = Object.entries(variants)
  const { concurrency } = task
  const operations = Object.fromEntries(entries.map(([name, variant]) => [name, operationOf(variant, concurrency)]))
  const timings = await measureInTurns(operations, { seconds, turnMs: turnOf(concurrency), onProgress })
  const fastest = (wanted: Role): Timing | undefined =>
    entries
      .flatMap(([name, { role }]) => (role === wanted ? (timings[name] ?? []) : []))
      .toSorted((a, b) => b.opsPerSecond - a.opsPerSecond)[0]
  const [driver, peer] = [fastest('driver'), fastest('peer')]
  return entries.flatMap(([variant, { role, isElsewhere }]) => {
    const timing = timings[variant]
    if (timing === undefined) return []
    const ratioTo = (other: Timing | undefined) =>
      role === 'store' && other !== undefined ? timesLonger(timing, other) : null
    const result = resultOf({ ...task, variant, role }, timing)
    return {
      ...result,
      ratioToDriver: ratioTo(driver),
      ratioToBestPeer: ratioTo(peer),
      cpuMs: isElsewhere ? null : result.cpuMs,
      comparisons: comparisonsOf(variant, timings, task),
    }
  })
}

function comparisonsOf(
  name: string,
  timings: Readonly<Record<string, Timing>>,
  { goals, concurrency }: Omit<Task, 'seconds'>,
): Comparison[] {
  return goals.flatMap(({ at, variant, beside, target }) => {
    const [own, other] = [timings[variant], timings[beside]]
    if (at !== concurrency || variant !== name || own === undefined || other === undefined) return []
    return 'max' in target
      ? compare(timesLonger(own, other), `× the time of ${beside}`, target)
      : compare(timesLonger(other, own), `× the speed of ${beside}`, target)
  })
}
