import fc from 'fast-check'
import { expect, test } from 'vitest'
import { fromSummaryColumn, toSummaryColumn } from '../src/sql/summary-text.js'

test('any text comes back from its column, which holds no U+0000', () => {
  const text = fc.string({
    unit: fc.oneof(fc.constantFrom('\0', '\u0001', '"', '\\'), fc.string({ unit: 'binary', maxLength: 1 })),
  })
  fc.assert(
    fc.property(text, (given) => {
      const column = toSummaryColumn(given)
      expect(column).not.toContain('\0')
      expect(fromSummaryColumn(column)).toBe(given)
    }),
  )
})

test('a text that looks like a marked one comes back as it is', () => {
  for (const text of ['\u0001"a"', '\u00011', '\u0001null']) expect(fromSummaryColumn(toSummaryColumn(text))).toBe(text)
})

test('a text without U+0000 stands in its column as it is', () => {
  for (const text of ['', 'ok', 'ü😀', '"a"', '\u0002', 'a\u0001']) expect(toSummaryColumn(text)).toBe(text)
  expect(toSummaryColumn(null)).toBeNull()
  expect(fromSummaryColumn(null)).toBeNull()
})

test('what another writer has put in a column is taken as it is', () => {
  for (const text of ['\u0001', '\u0001not JSON', '\u0001"half', '\u00011', '\u0001true', '\u0001null'])
    expect(fromSummaryColumn(text)).toBe(text)
})
