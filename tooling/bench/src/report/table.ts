import type { Shares } from '../profiler.ts'
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

function aligned(head: readonly string[], rows: readonly (readonly string[])[], isRight: (column: number) => boolean) {
  const all = [head, ...rows]
  const widths = head.map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0)))
  const padded = (row: readonly string[]) =>
    widths.map((width, column) => (isRight(column) ? row[column]?.padStart(width) : row[column]?.padEnd(width)) ?? '')
  return all.map((row) => padded(row).join('  ').trimEnd()).join('\n')
}

/** The results as a table for people; another one of those that were profiled. */
export function table(results: readonly Result[]): string {
  const main = aligned(HEAD, results.flatMap(lines), (column) => RIGHT.has(column))
  const profiled = results.flatMap((result) => profileRow(result, result.backend))
  return profiled.length === 0 ? main : `${main}\n\n${aligned(PROFILE, profiled, (column) => column > 1)}`
}

/** The text columns come first. */
function markdown(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const rule = head.map((_, column) => (column < 2 ? '---' : '---:'))
  return [head, rule, ...rows].map((row) => `| ${row.join(' | ')} |`).join('\n')
}

/** The same in Markdown, of one backend. */
export const markdownTable = (results: readonly Result[]): string =>
  markdown(
    ['workload', ...HEAD.slice(1, 10)],
    results.map((result) => [result.workload, ...cellsOf(result)]),
  )

const PROFILE = [
  ...['commit', 'variant', 'at once', 'code µs', 'driver µs', 'Node µs', 'collector µs', 'all µs'],
  ...['code kB', 'all kB', 'trips', 'sent B', 'received B'],
]

const oneDigit = new Intl.NumberFormat('en', { minimumFractionDigits: 1, maximumFractionDigits: 1 })

/** What leads to an operation is no part of it. */
const costOf = ({ code, driver, node, collector }: Shares): number => code + driver + node + collector

function profileRow({ variant, concurrency, roundTrips, profile }: Result, of: string): string[][] {
  if (profile === undefined) return []
  const { times, bytes, traffic } = profile
  const microseconds = [times.code, times.driver, times.node, times.collector, costOf(times)]
  const kilobytes = [bytes.code / 1000, costOf(bytes) / 1000]
  const row = [of, variant, String(concurrency), ...[...microseconds, ...kilobytes].map(oneDigit.format)]
  const [sent, received] = [traffic?.sent ?? null, traffic?.received ?? null]
  return [[...row, orNothing(roundTrips, fraction), orNothing(sent, whole), orNothing(received, whole)]]
}

/** What was profiled of one backend. */
export const profileTable = (results: readonly Result[]): string =>
  markdown(
    PROFILE,
    results.flatMap((result) => profileRow(result, result.backend)),
  )

/** What was compared with a target, in Markdown. */
export function judgedTable(results: readonly Result[]): string {
  const head = '| measure | variant | at once | measured | target | |\n| --- | --- | ---: | --- | --- | --- |'
  const rows = results.flatMap(({ backend, workload, variant, concurrency, comparisons }) =>
    comparisons.map((comparison) => [`${backend} ${workload}`, variant, concurrency, ...judged(comparison)]),
  )
  return [head, ...rows.map((row) => `| ${row.join(' | ')} |`)].join('\n')
}
