/** Figures in a page that is otherwise written by hand: they stand between comments that name them. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { isGrowth } from '../growth.ts'
import type { Result } from '../results.ts'
import { byBackend, commitChart, growthChart } from './charts.ts'
import { type Drawing, svg } from './drawing.ts'
import { judgedTable, markdownTable, profileTable } from './table.ts'

/** @returns the blocks by their names, and the charts by the names of their files */
function figuresOf(description: readonly string[], results: readonly Result[], folder: string) {
  const blocks = new Map<string, string>([['machine', ['```', ...description, '```'].join('\n')]])
  const charts = new Map<string, string>()
  const chart = (name: string, about: string, drawing: Drawing) => {
    charts.set(`${name}.svg`, svg([drawing]))
    return `![${about}](${folder}/${name}.svg)`
  }
  for (const [backend, all] of byBackend(results.filter(({ profile }) => profile !== undefined))) {
    blocks.set(`profile-${backend}`, profileTable(all))
  }
  for (const [backend, all] of byBackend(
    results.filter((result) => !isGrowth(result) && result.profile === undefined),
  )) {
    const drawn = commitChart(backend, all)
    const parts = drawn === undefined ? [] : [chart(`commits-${backend}`, `Commits per second on ${backend}`, drawn)]
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
