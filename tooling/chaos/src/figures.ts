import type { Outcome } from '@harel/store-testing/faults'

/** What the rounds of one scenario add up to. */
export interface Figures {
  scenario: string
  rounds: number
  seconds: number
  /** Commits that were found in the database. */
  commits: number
  acknowledged: number
  refused: number
  unknown: number
  faults: number
  lost: number
  doubled: number
  breaches: number
}

/** What one backend was put through. */
export interface Run {
  backend: string
  /** The server and its version, or a file. */
  database: string
  machine: string
  /** As 2026-12-31. */
  date: string
  minutes: number
  /** Of the first round. */
  seed: number
  scale: number
  figures: Figures[]
}

export const none = (scenario: string): Figures => ({
  scenario,
  rounds: 0,
  seconds: 0,
  commits: 0,
  acknowledged: 0,
  refused: 0,
  unknown: 0,
  faults: 0,
  lost: 0,
  doubled: 0,
  breaches: 0,
})

export function add(figures: Figures, outcome: Outcome, seconds: number): void {
  figures.rounds++
  figures.seconds += seconds
  for (const key of ['commits', 'acknowledged', 'refused', 'unknown', 'faults'] as const) figures[key] += outcome[key]
  for (const key of ['lost', 'doubled', 'breaches'] as const) figures[key] += outcome[key].length
}

type Column = Exclude<keyof Figures, 'scenario'>

const format = (figure: number): string => Math.round(figure).toLocaleString('en')

const COLUMNS = [
  'rounds',
  'seconds',
  'commits',
  'acknowledged',
  'refused',
  'unknown',
  'faults',
  'lost',
  'doubled',
] as const satisfies Column[]

/** A table of them, a row for each scenario, in Markdown. */
export const table = (runs: readonly Run[]): string =>
  markdown(
    ['backend', 'scenario'],
    COLUMNS,
    runs.flatMap(({ backend, figures }) =>
      figures.map((sum) => [backend, sum.scenario, ...COLUMNS.map((column) => format(sum[column]))]),
    ),
  )

const SUMS = ['commits', 'faults', 'lost', 'doubled', 'unknown'] as const satisfies Column[]

/** The same with a row for each backend. */
export const summary = (runs: readonly Run[]): string =>
  markdown(
    ['backend', 'database', 'day'],
    ['minutes', 'seed', ...SUMS],
    runs.map(({ backend, database, date, minutes, seed, figures }) => [
      backend,
      database,
      date,
      String(minutes),
      String(seed),
      ...SUMS.map((column) => format(figures.reduce((sum, each) => sum + each[column], 0))),
    ]),
  )

function markdown(texts: readonly string[], numbers: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [[...texts, ...numbers], [...texts.map(() => '---'), ...numbers.map(() => '--:')], ...rows]
  return lines.map((cells) => `| ${cells.join(' | ')} |`).join('\n')
}
