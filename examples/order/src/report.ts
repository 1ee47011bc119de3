/** What the quick start shows. */
import type { JsonValue, TraceStep } from '@harel/store-base'
import type { Finding, Histories } from './check.ts'
import type { Run, Survey } from './supervisor.ts'

const STATES = ['reserving', 'fulfilling', 'shipping', 'delivered', 'refused']

const count = (n: number): string => Math.round(n).toLocaleString('en')
const seconds = (n: number): string => `${n.toFixed(2)} s`

/** One line that is written over where there is a terminal; a line every second elsewhere. */
export class Progress {
  readonly #goal: { commits: number; orders: number; kills: number }
  readonly #began = performance.now()
  #shown = 0

  constructor(goal: { commits: number; orders: number; kills: number }) {
    this.#goal = goal
  }

  show({ commits, ordersDone }: Survey, kills: number): void {
    const now = performance.now()
    const parts = [
      `${count(ordersDone)}/${count(this.#goal.orders)} orders done`,
      `${count(commits)}/${count(this.#goal.commits)} commits`,
      `${kills}/${this.#goal.kills} kills`,
    ]
    const line = `${seconds((now - this.#began) / 1000).padStart(8)}  ${parts.join(' · ')}`
    if (process.stdout.isTTY) process.stdout.write(`\r\x1b[2K${line}`)
    else if (now - this.#shown >= 1000) {
      console.log(line)
      this.#shown = now
    }
  }

  end(): void {
    if (process.stdout.isTTY) process.stdout.write('\r\x1b[2K')
  }
}

export function printStates({ began, ended, kills, survey }: Run): void {
  const moments = kills.map(({ at, survey }, n) => [`kill ${n + 1}`, at, survey] as const)
  const table = [
    ['', 'after', ...STATES, 'outbox'],
    ...[...moments, ['the end', ended, survey] as const].map(([name, at, { orders, undelivered }]) => [
      name,
      seconds(at - began),
      ...STATES.map((state) => count(orders.get(state) ?? 0)),
      count(undelivered),
    ]),
  ]
  console.log('\nWhere the orders were, and how many events were on their way (outbox)\n')
  printTable(table)
}

export function printTimeline(histories: Histories, { kills, workers }: Run): void {
  const workersOf = (trace: readonly TraceStep[]) => new Set(trace.map(({ worker }) => worker)).size
  const orders = [...histories.values()].filter(({ execution }) => execution.definitionId === 'order')
  const [chosen] = orders.toSorted((a, b) => workersOf(b.trace) - workersOf(a.trace) || b.trace.length - a.trace.length)
  if (chosen === undefined) return
  const { execution, trace } = chosen
  const [first = 0, last = 0] = [trace.at(0), trace.at(-1)].map((step) => Number(step?.timestamp))
  const nameOf = (pid: unknown) => `worker ${workers.indexOf(Number(pid)) + 1}`
  const lines = [
    ...trace.map((step) => ({
      at: Number(step.timestamp),
      cells: [nameOf(step.worker), eventName(String(step.event_kind)), shortPaths(step.active)],
    })),
    ...kills
      .map(({ at }, n) => ({ at, cells: [`worker ${n + 1}`, 'SIGKILL', ''] }))
      .filter(({ at }) => at > first && at < last),
  ].sort((a, b) => a.at - b.at)
  console.log(`\nThe life of ${execution.id}, from its trace\n`)
  printTable([
    ['after', 'process', 'event', 'active states'],
    ...lines.map(({ at, cells }) => [seconds(at - first), ...cells]),
  ])
}

/** The last two names of each path. */
const shortPaths = (paths: JsonValue | undefined): string =>
  (paths as string[]).map((path) => path.split('.').slice(-2).join('.')).join(' + ')

/** XState's own events, shortened. */
const eventName = (kind: string): string =>
  kind
    .replace('xstate.init', 'start')
    .replace(/^xstate\.after\.(\w+)\..*/, 'after $1')
    .replace(/^xstate\.done\.actor\.(\w+)/, '$1 done')

export function printRate(histories: Histories, { began, ended, survey }: Run): void {
  const perSecond = new Map<number, number>()
  for (const { trace } of histories.values()) {
    for (const { timestamp } of trace) {
      const second = Math.floor(Number(timestamp) - began)
      perSecond.set(second, (perSecond.get(second) ?? 0) + 1)
    }
  }
  const best = Math.max(...perSecond.values())
  const rate = survey.commits / (ended - began)
  console.log(
    `\n${count(survey.commits)} commits in ${seconds(ended - began)}: ${count(rate)} a second, ${count(best)} in the best second`,
  )
}

/** @returns whether all claims hold */
export function printFindings(findings: readonly Finding[]): boolean {
  console.log('\nChecked\n')
  for (const { claim, objections } of findings) {
    console.log(objections.length === 0 ? `  ok    ${claim}` : `  WRONG ${claim}`)
    for (const objection of objections.slice(0, 5)) console.log(`          ${objection}`)
    if (objections.length > 5) console.log(`          and ${objections.length - 5} more`)
  }
  return findings.every(({ objections }) => objections.length === 0)
}

/** Numbers to the right, texts to the left. */
function printTable(rows: readonly (readonly string[])[]): void {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
  const isNumeric = (column: number) => rows.slice(1).every((row) => /^[\d.,]+( s)?$/.test(row[column] ?? ''))
  for (const row of rows) {
    const cells = row.map((cell, column) => {
      const width = widths[column] ?? 0
      return isNumeric(column) ? cell.padStart(width) : cell.padEnd(width)
    })
    console.log(`  ${cells.join('  ')}`.trimEnd())
  }
}
