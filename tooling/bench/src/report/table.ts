import type { Comparison, Result } from '../results.ts'

const HEAD = [
  ...['measure', 'variant', 'at once', 'ops/s', 'p50 ms', 'p99 ms', '× driver', '× best peer', 'cpu ms', 'trips'],
  ...['compared', 'target', ''],
]
const RIGHT = new Set([2, 3, 4, 5, 6, 7, 8, 9])

const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 })
const fraction = new Intl.NumberFormat('en', { minimumFractionDigits: 2, maximumFractionDigits: 2 })
const milliseconds = new Intl.NumberFormat('en', { minimumFractionDigits: 3, maximumFractionDigits: 3 })

const orNothing = (value: number | null, { format }: Intl.NumberFormat): string => (value === null ? '' : format(value))

const judged = ({ unit, value, target, ok }: Comparison): string[] => [
  `${fraction.format(value)} ${unit}`,
  'max' in target ? `≤ ${target.max}` : `≥ ${target.min}`,
  ok ? 'ok' : 'OVER',
]

/** What stands in the columns of a variant, up to the comparisons. */
const cellsOf = (result: Result): string[] => [
  result.variant,
  String(result.concurrency),
  whole.format(result.opsPerSecond),
  milliseconds.format(result.p50Ms),
  milliseconds.format(result.p99Ms),
  orNothing(result.ratioToDriver, fraction),
  orNothing(result.ratioToBestPeer, fraction),
  orNothing(result.cpuMs, milliseconds),
  orNothing(result.roundTrips, fraction),
]

const lines = (result: Result): string[][] => {
  const [first = [], ...more] = result.comparisons.map(judged)
  const cells = [`${result.backend} ${result.workload}`, ...cellsOf(result)]
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
/** The same in Markdown, of one backend. */
export function markdownTable(results: readonly Result[]): string {
  const head = ['workload', ...HEAD.slice(1, 10)]
  const rule = head.map((_, column) => (column < 2 ? '---' : '---:'))
  const rows = results.map((result) => [result.workload, ...cellsOf(result)])
  return [head, rule, ...rows].map((row) => `| ${row.join(' | ')} |`).join('\n')
}

/** What was compared with a target, in Markdown. */
export function judgedTable(results: readonly Result[]): string {
  const head = '| measure | variant | at once | measured | target | |\n| --- | --- | ---: | --- | --- | --- |'
  const rows = results.flatMap(({ backend, workload, variant, concurrency, comparisons }) =>
    comparisons.map((comparison) => [`${backend} ${workload}`, variant, concurrency, ...judged(comparison)]),
  )
  return [head, ...rows.map((row) => `| ${row.join(' | ')} |`)].join('\n')
}
