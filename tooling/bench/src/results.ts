import type { Role } from './contender.ts'
import type { Profile } from './profile.ts'

/** How an operation compares with another one of the same rounds. */
export interface Comparison {
  /** Says what `value` is, for example "× the time by hand". */
  readonly unit: string
  readonly value: number
  /** What `value` should be: `max` at most, or `min` at least. */
  readonly target: { readonly max: number } | { readonly min: number }
  readonly ok: boolean
}

/** What was measured of one variant of a workload. */
export interface Result {
  readonly backend: string
  readonly workload: string
  readonly concurrency: number
  readonly variant: string
  readonly role: Role
  readonly opsPerSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  /** Times as long as with the bare driver by hand, the fastest where there are several; null where there is none. */
  readonly ratioToDriver: number | null
  /** Times as long as with the fastest peer; null where there is none. */
  readonly ratioToBestPeer: number | null
  /** Processor time of an operation in this process, of all threads; null where somebody else does the work. */
  readonly cpuMs: number | null
  /** Round trips of an operation, counted at the socket; null where there is none. */
  readonly roundTrips: number | null
  readonly comparisons: readonly Comparison[]
  /** Of a profiled operation alone, whose times are those of a profiled one. */
  readonly profile?: Profile
}

export const compare = (value: number, unit: string, target: Comparison['target']): Comparison => ({
  unit,
  value,
  target,
  ok: 'max' in target ? value <= target.max : value >= target.min,
})

/** What is known of a variant alone. */
export const resultOf = (
  {
    backend,
    workload,
    concurrency,
    variant,
    role,
  }: Pick<Result, 'backend' | 'workload' | 'concurrency' | 'variant' | 'role'>,
  { opsPerSecond, p50Ms, p99Ms, cpuMs }: Pick<Result, 'opsPerSecond' | 'p50Ms' | 'p99Ms' | 'cpuMs'>,
): Result => ({
  ...{ backend, workload, concurrency, variant, role, opsPerSecond, p50Ms, p99Ms, cpuMs },
  ...{ ratioToDriver: null, ratioToBestPeer: null, roundTrips: null, comparisons: [] },
})

export const missed = (results: readonly Result[]): number =>
  results.flatMap(({ comparisons }) => comparisons).filter(({ ok }) => !ok).length

/** The results for programs. */
export const toJson = (results: readonly Result[]): string => {
  const entries = results.map(
    ({ backend, workload, concurrency, variant, opsPerSecond, p50Ms, p99Ms, ratioToDriver, ratioToBestPeer }) => ({
      ...{ backend, workload, concurrency, variant, opsPerSecond, p50Ms, p99Ms, ratioToDriver, ratioToBestPeer },
    }),
  )
  return `${JSON.stringify(entries, null, 2)}\n`
}
