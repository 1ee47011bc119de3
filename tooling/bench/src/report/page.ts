/** Figures in a page that is otherwise written by hand: they stand between comments that name them. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import type { Role } from '../contender.ts'
import { isGrowth, placeOf } from '../growth.ts'
import type { Result } from '../results.ts'
import { barChart, type Curve, curveChart } from './chart.ts'
import { judgedTable, markdownTable } from './table.ts'

const KINDS: Readonly<Record<Role, number>> = { store: 0, driver: 2, peer: 1 }

const byBackend = (results: readonly Result[]): Map<string, Result[]> =>
  Map.groupBy(results, ({ backend }) => backend) as Map<string, Result[]>

/** Commits per second of all that commit, one by one and many at once. */
function commitChart(backend: string, results: readonly Result[]): string {
  const commits = results.filter(({ workload }) => workload === 'commit')
  const groups = [...Map.groupBy(commits, ({ concurrency }) => concurrency)].map(([concurrency, group]) => ({
    name: concurrency === 1 ? 'one by one' : `${concurrency} at once`,
    bars: group.map(({ variant, role, opsPerSecond }) => ({ label: variant, value: opsPerSecond, kind: KINDS[role] })),
  }))
  return groups.length === 0
    ? ''
    : barChart(`${backend}: commits per second (blue: store, green: driver by hand, orange: peers)`, groups)
}

/** Milliseconds of each operation of the store and of the fastest by hand, at each size. */
function growthChart(backend: string, results: readonly Result[]): string {
  const curves: Curve[] = []
  const operations = Map.groupBy(results, (result) => `${placeOf(result).operation}, ${result.concurrency} at once`)
  for (const [kind, [operation, group]] of [...operations].entries()) {
    for (const role of ['store', 'driver'] as const) {
      const [variant] = group
        .filter((result) => result.role === role)
        .toSorted((a, b) => b.opsPerSecond - a.opsPerSecond)
      const points = group
        .filter((result) => result.variant === variant?.variant)
        .map((result): [number, number] => [placeOf(result).rows, 1000 / result.opsPerSecond])
      const name = operation.replace(', 1 at once', '')
      curves.push({ name: role === 'store' ? name : `${name}, by hand`, points, kind, isDashed: role === 'driver' })
    }
  }
  return curveChart(`${backend}: what an operation costs while the database grows`, 'ms', curves)
}

/** @returns the blocks by their names, and the charts by the names of their files */
function figuresOf(description: readonly string[], results: readonly Result[], folder: string) {
  const blocks = new Map<string, string>([['machine', ['```', ...description, '```'].join('\n')]])
  const charts = new Map<string, string>()
  const chart = (name: string, about: string, content: string) => {
    charts.set(`${name}.svg`, content)
    return `![${about}](${folder}/${name}.svg)`
  }
  for (const [backend, all] of byBackend(results.filter((result) => !isGrowth(result)))) {
    const drawn = commitChart(backend, all)
    const parts = drawn === '' ? [] : [chart(`commits-${backend}`, `Commits per second on ${backend}`, drawn)]
    blocks.set(backend, [...parts, markdownTable(all)].join('\n\n'))
  }
  for (const [backend, all] of byBackend(results.filter(isGrowth))) {
    const drawn = chart(`growth-${backend}`, `Growth on ${backend}`, growthChart(backend, all))
    blocks.set(`growth-${backend}`, [drawn, markdownTable(all)].join('\n\n'))
  }
  const judged = results.filter((result) => result.comparisons.length > 0)
  blocks.set('targets', judgedTable(judged))
  return { blocks, charts }
}

/**
 * Replaces the figures of a page, those of which there are results. @param page without its ending: charts come into a
 * folder of this name
 */
export function writeReport(page: string, description: readonly string[], results: readonly Result[]): void {
  const { blocks, charts } = figuresOf(description, results, basename(page))
  mkdirSync(page, { recursive: true })
  for (const [name, content] of charts) writeFileSync(join(page, name), content)
  const file = `${page}.md`
  let text = readFileSync(file, 'utf8')
  for (const [name, block] of blocks) {
    const [before = '', rest] = text.split(`<!-- ${name} -->`)
    const [, behind] = rest?.split(`<!-- /${name} -->`) ?? []
    if (behind === undefined) continue
    text = `${before}<!-- ${name} -->\n\n${block}\n\n<!-- /${name} -->${behind}`
  }
  writeFileSync(file, text)
}
