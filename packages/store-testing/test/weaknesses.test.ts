import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { contracts } from '../src/contracts/index.js'

const ROOT = join(import.meta.dirname, '..', '..', '..')
/** In titles; the tests of the runner begin with the number. */
const NAMED = /weakness (\d+)|^ *test\('(\d+): /gm

/** Who names each weakness in the title of a test: the contracts, and packages. */
function namesOf(): Map<number, string[]> {
  const named = new Map<number, Set<string>>()
  const add = (item: number, by: string) => named.set(item, (named.get(item) ?? new Set()).add(by))
  for (const { weaknesses = [] } of contracts.flatMap(({ checks }) => checks)) {
    for (const item of weaknesses) add(item, 'contracts')
  }
  for (const name of readdirSync(join(ROOT, 'packages'))) {
    const folder = join(ROOT, 'packages', name, 'test')
    for (const file of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
      if (!file.endsWith('.test.ts') || join(folder, file) === import.meta.filename) continue
      // An expectation may hold what looks like a title.
      const lines = readFileSync(join(folder, file), 'utf8').replace(/^.*\bexpect\(.*$/gm, '')
      for (const [, one, other] of lines.matchAll(NAMED)) add(Number(one ?? other), name)
    }
  }
  return new Map([...named].map(([item, by]) => [item, [...by].sort()]))
}

/** The rows of the table: who names the weakness, or nobody and why. */
function rowsOf(page: string): Map<number, { by: string[]; reason: string }> {
  const rows = [...page.matchAll(/^\| (\d+) \| .+ \| (.*) \|$/gm)].map(([, item, last = '']) => {
    const reason = last.startsWith('– ') ? last.slice(2) : ''
    return [Number(item), { by: reason === '' ? last.split(', ').sort() : [], reason }] as const
  })
  return new Map(rows)
}

test('every weakness has a row that says which tests name it, or why none does', () => {
  const named = namesOf()
  const rows = rowsOf(readFileSync(join(ROOT, 'docs', 'weaknesses.md'), 'utf8'))
  expect([...rows.keys()]).toEqual(Array.from({ length: 58 }, (_, n) => n + 1))
  const told = [...rows].map(([item, { by }]) => [item, by])
  expect(told).toEqual([...rows.keys()].map((item) => [item, named.get(item) ?? []]))
  for (const [item, { by, reason }] of rows) expect(by.length > 0 || reason.length > 20, `row ${item}`).toBe(true)
  expect([...named.keys()].filter((item) => !rows.has(item))).toEqual([])
})
