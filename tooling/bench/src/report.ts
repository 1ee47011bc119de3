import type { Timing } from './measure.ts'

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
  readonly variant: string
  readonly concurrency: number
  readonly opsPerSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  /** Processor time of an operation, of all threads. */
  readonly cpuMs: number
  readonly comparisons: readonly Comparison[]
}

export const compare = (value: number, unit: string, target: Comparison['target']): Comparison => ({
  unit,
  value,
  target,
  ok: 'max' in target ? value <= target.max : value >= target.min,
})

/** The results of one workload: a variant is named by its key. */
export const resultsOf = <Name extends string>(
  backend: string,
  workload: string,
  timings: Readonly<Record<Name, Timing>>,
  {
    concurrency = {},
    comparisons = {},
  }: { concurrency?: Partial<Record<Name, number>>; comparisons?: Partial<Record<Name, Comparison[]>> } = {},
): Result[] =>
  (Object.keys(timings) as Name[]).map((variant) => {
    const { opsPerSecond, p50Ms, p99Ms, cpuMs } = timings[variant]
    return {
      backend,
      workload,
      variant,
      concurrency: concurrency[variant] ?? 1,
      opsPerSecond,
      p50Ms,
      p99Ms,
      cpuMs,
      comparisons: comparisons[variant] ?? [],
    }
  })

const HEAD = ['measure', 'variant', 'at once', 'ops/s', 'p50 ms', 'p99 ms', 'cpu ms', 'compared', 'target', '']
const RIGHT = new Set([2, 3, 4, 5, 6])

const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 })
const fraction = new Intl.NumberFormat('en', { minimumFractionDigits: 2, maximumFractionDigits: 2 })
const milliseconds = new Intl.NumberFormat('en', { minimumFractionDigits: 3, maximumFractionDigits: 3 })

const judged = ({ unit, value, target, ok }: Comparison): string[] => [
  `${fraction.format(value)} ${unit}`,
  'max' in target ? `≤ ${target.max}` : `≥ ${target.min}`,
  ok ? 'ok' : 'OVER',
]

const lines = (result: Result): string[][] => {
  const [first = [], ...more] = result.comparisons.map(judged)
  const times = [result.p50Ms, result.p99Ms, result.cpuMs].map(milliseconds.format)
  const name = `${result.backend} ${result.workload}`
  const cells = [name, result.variant, String(result.concurrency), whole.format(result.opsPerSecond), ...times]
  return [[...cells, ...first], ...more.map((comparison) => [...cells.map(() => ''), ...comparison])]
}

/** The results as a table for people. */
export function table(results: readonly Result[]): string {
  const rows = [HEAD, ...results.flatMap(lines)]
  const widths = HEAD.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
  return rows
    .map((row) =>
      HEAD.map((_, column) => row[column] ?? '')
        .map((cell, column) =>
          RIGHT.has(column) ? cell.padStart(widths[column] ?? 0) : cell.padEnd(widths[column] ?? 0),
        )
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

export const missed = (results: readonly Result[]): number =>
  results.flatMap(({ comparisons }) => comparisons).filter(({ ok }) => !ok).length
