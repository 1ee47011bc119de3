import type { Outcome } from '@harel/store-testing/faults'

/** What the rounds of one scenario on one backend add up to. */
export interface Figures {
  backend: string
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

export const none = (backend: string, scenario: string): Figures => ({
  backend,
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
] as const

/** A table of them, in Markdown. */
export function table(all: readonly Figures[]): string {
  const rows = all.map((figures) => [
    figures.backend,
    figures.scenario,
    ...COLUMNS.map((column) => Math.round(figures[column]).toLocaleString('en')),
  ])
  const lines = [['backend', 'scenario', ...COLUMNS], ['---', '---', ...COLUMNS.map(() => '--:')], ...rows]
  return lines.map((cells) => `| ${cells.join(' | ')} |`).join('\n')
}
