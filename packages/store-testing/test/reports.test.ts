import { globSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { expect, test } from 'vitest'

const root = join(import.meta.dirname, '../../..')
const read = (path: string): string => readFileSync(join(root, path), 'utf8')

const PAGE = 'docs/reports.md'

/** What names reports as examples, not because it tries them. */
const EXAMPLES = ['src/contract.ts', 'test/describe-store.test.ts', 'test/reports.test.ts'].map(
  (path) => `packages/store-testing/${path}`,
)

/** Which files name a report. */
const tried = new Map<string, string[]>()
for (const path of globSync(['packages/*/{src,test}/**/*.ts', 'tooling/*/test/**/*.ts'], { cwd: root }).sort()) {
  if (EXAMPLES.includes(path)) continue
  for (const [id] of read(path).matchAll(/\bB\d{2,3}\b/g)) {
    tried.set(id, [...new Set([...(tried.get(id) ?? []), path])])
  }
}

/** The page's rows: a report, and the files that it says try it. */
const rows = [...read(PAGE).matchAll(/^\| (B\d+) \|(.*)$/gm)].map(([, id = '', row = '']) => ({
  id,
  files: [...row.matchAll(/\]\((\.\.\/[^)]+)\)/g)].map(([, target = '']) =>
    relative(root, join(root, dirname(PAGE), target)),
  ),
}))

test('every report stands once in the page, and every one that a test names stands there', () => {
  const ids = rows.map(({ id }) => id)
  expect(ids).toHaveLength(87)
  expect(new Set(ids).size).toBe(ids.length)
  expect([...tried.keys()].filter((id) => !ids.includes(id))).toEqual([])
})

test.each(rows)('$id is tried by the tests that the page shows, and by no others', ({ id, files }) => {
  expect(files.sort()).toEqual(tried.get(id))
})
