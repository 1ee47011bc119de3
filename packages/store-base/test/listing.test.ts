import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { decodeKey, decodeOffset, encodeKey, encodeOffset } from '../src/cursor.js'
import { InvalidArgument, InvalidCursor } from '../src/errors.js'
import { checkListQuery, compareBytes, likePrefix, listingPage, matches, prefixEnd, toPage } from '../src/listing.js'
import type { ListQuery } from '../src/protocol.js'
import { type ExecutionSummary, STATUSES } from '../src/records.js'
import { toSummaries } from '../src/rows.js'
import { vectors } from './vectors.js'

const text = fc.string({ unit: 'binary' })
const bytes = (value: string): Buffer => Buffer.from(value)

describe('offset cursors', () => {
  const golden = vectors<{ encode: Record<string, string>; decode: { cursor: string | null; ok: number }[] }>(
    'cursors.json',
  )
  const canonical = (cursor: string, offset: number) =>
    golden.encode[offset] === cursor && Number.isSafeInteger(offset) && offset >= 0

  test.each(Object.entries(golden.encode))('of %s are spelt as Python spells them', (offset, cursor) => {
    expect(encodeOffset(Number(offset))).toBe(cursor)
  })

  test.each(golden.decode)('are taken only as they were made, not as leniently as by Python: $cursor', (each) => {
    const { cursor, ok } = each
    if (cursor === null || cursor === '') expect(checkListQuery({ cursor }, 'offset').position).toBe(null)
    else if (canonical(cursor, ok)) expect(decodeOffset(cursor)).toBe(ok)
    else expect(() => decodeOffset(cursor)).toThrow(InvalidCursor)
  })

  test('lead back to every offset', () => {
    fc.assert(
      fc.property(fc.nat(Number.MAX_SAFE_INTEGER), fc.constantFrom('', '1x2y'), (offset, fingerprint) => {
        expect(decodeOffset(encodeOffset(offset, fingerprint), fingerprint)).toBe(offset)
      }),
    )
  })
})

describe('key cursors', () => {
  const key = text.filter((value) => value !== '' && !value.includes('\0'))

  test('lead back to every key', () => {
    fc.assert(fc.property(key, (value) => decodeKey(encodeKey(value, 'f'), 'f') === value))
    const longest = '😀'.repeat(256)
    expect(decodeKey(encodeKey(longest, 'zzzzzzz'), 'zzzzzzz')).toBe(longest)
  })

  test('are refused wherever a character was changed', () => {
    fc.assert(
      fc.property(key, fc.nat(), fc.string({ minLength: 1, maxLength: 1 }), (value, place, character) => {
        const cursor = encodeKey(value, 'f')
        const index = place % cursor.length
        const changed = `${cursor.slice(0, index)}${character}${cursor.slice(index + 1)}`
        if (changed !== cursor) expect(() => decodeKey(changed, 'f')).toThrow(InvalidCursor)
      }),
    )
  })

  test.each([
    ['empty', ''],
    ['of a megabyte', 'A'.repeat(2 ** 20)],
    ['not base64', '%00'],
    ['base64 of something else', 'e30='],
    ['base64 of bytes that are no UTF-8', Buffer.from([0x6b, 0x2e, 0x66, 0x2e, 0xff]).toString('base64')],
    ['without its padding', encodeKey('abc', 'f').replaceAll('=', '')],
    ['with a line break', `${encodeKey('a', 'f')}\n`],
    ['of the other alphabet', encodeKey('???>>>', 'f').replaceAll('_', '/').replaceAll('-', '+')],
    ['of a key that is none', encodeKey('a\0b', 'f')],
    ['of no key', encodeKey('', 'f')],
    ['of an offset', encodeOffset(7, 'f')],
    ['of other filters', encodeKey('a', 'g')],
    ['no string', 7 as unknown as string],
  ])('are refused when they are %s', (_, cursor) => {
    expect(() => decodeKey(cursor, 'f')).toThrow(InvalidCursor)
  })

  test('are refused by a listing with offsets', () => {
    expect(() => decodeOffset(encodeKey('a'))).toThrow(InvalidCursor)
  })

  test('are refused without showing what was given (B91)', () => {
    expect(() => decodeKey('CANARY-42')).toThrow(/^(?!.*CANARY)/s)
  })
})

describe('a listing query', () => {
  test('has a hundred items in a page when it says nothing', () => {
    expect(checkListQuery({}, 'key')).toMatchObject({
      limit: 100,
      position: null,
      statuses: undefined,
      definitionId: undefined,
      rootsOnly: false,
    })
  })

  test('means the same however its statuses are ordered or repeated', () => {
    const one = checkListQuery({ status: ['FAILED', 'DONE', 'FAILED'] }, 'key')
    expect(one.statuses).toEqual(STATUSES.filter((status) => status === 'DONE' || status === 'FAILED'))
    expect(checkListQuery({ status: ['DONE', 'FAILED'] }, 'key').fingerprint).toBe(one.fingerprint)
    expect(checkListQuery({ status: 'DONE' }, 'key').statuses).toEqual(['DONE'])
  })

  test('with an empty list of statuses matches nothing', () => {
    expect(checkListQuery({ status: [] }, 'key').statuses).toEqual([])
  })

  test.each<[string, unknown]>([
    ['no object', null],
    ['a misspelt filter', { statuses: 'DONE' }],
    ['a status that is none', { status: 'nonsense' }],
    ['a status in lower case', { status: ['done'] }],
    ['a hole among the statuses', { status: Array(1) }],
    ['a null status', { status: null }],
    ['a filter that got lost: status', { status: undefined }],
    ['a filter that got lost: definitionId', { definitionId: undefined }],
    ['a filter that got lost: rootsOnly', { rootsOnly: undefined }],
    ['a null flag', { rootsOnly: null }],
    ['a flag that is a number', { rootsOnly: 1 }],
    ['an empty definition id', { definitionId: '' }],
    ['an operator instead of a value', { definitionId: { $ne: null } }],
    ['no items', { limit: 0 }],
    ['a negative limit', { limit: -1 }],
    ['half an item', { limit: 1.5 }],
    ['more than a thousand items', { limit: 1001 }],
    ['a limit that is a text', { limit: '10' }],
    ['a limit that is no number', { limit: Number.NaN }],
    ['a null limit', { limit: null }],
  ])('is refused with %s', (_, query) => {
    expect(() => checkListQuery(query as ListQuery, 'key')).toThrow(InvalidArgument)
  })

  test('is refused with a cursor that is no text', () => {
    expect(() => checkListQuery({ cursor: 7 } as unknown as ListQuery, 'key')).toThrow(InvalidCursor)
  })

  const kinds = ['key', 'offset'] as const
  test.each(kinds)('goes on where the page before ended, under any limit: %s', (paging) => {
    const query: ListQuery = { status: 'DONE', definitionId: 'd' }
    const page = toPage([], paging === 'key' ? 'é' : '12', checkListQuery(query, paging), paging)
    const next = checkListQuery({ ...query, cursor: page.nextCursor, limit: 5 }, paging)
    expect(next.position).toBe(paging === 'key' ? 'é' : '12')
    expect(toPage([], null, next, paging).nextCursor).toBe(null)
  })

  test.each(kinds)('is refused with the cursor of other filters: %s', (paging) => {
    const queries: ListQuery[] = [
      {},
      { rootsOnly: true },
      { definitionId: 'd' },
      { definitionId: 'e' },
      { status: 'DONE' },
      { status: [] },
      { status: ['DONE', 'FAILED'] },
    ]
    for (const made of queries) {
      const cursor = toPage([], '7', checkListQuery(made, paging), paging).nextCursor
      for (const used of queries) {
        if (used === made) expect(checkListQuery({ ...used, cursor }, paging).position).toBe('7')
        else expect(() => checkListQuery({ ...used, cursor }, paging)).toThrow('was made under other filters')
      }
    }
  })
})

describe('matches', () => {
  const summary: ExecutionSummary = {
    id: 'x',
    definitionId: 'd',
    status: 'DONE',
    outcome: null,
    activePath: null,
    version: 1,
    parentId: 'p',
    finishedAt: null,
  }
  const any = { statuses: undefined, definitionId: undefined, rootsOnly: false }

  test('lets pass what all filters let pass', () => {
    expect(matches(summary, any)).toBe(true)
    expect(matches(summary, { ...any, statuses: ['FAILED', 'DONE'], definitionId: 'd' })).toBe(true)
    expect(matches({ ...summary, parentId: null }, { ...any, rootsOnly: true })).toBe(true)
  })

  test('holds back what one filter holds back', () => {
    expect(matches(summary, { ...any, statuses: ['FAILED'] })).toBe(false)
    expect(matches(summary, { ...any, statuses: [] })).toBe(false)
    expect(matches(summary, { ...any, definitionId: 'D' })).toBe(false)
    expect(matches(summary, { ...any, rootsOnly: true })).toBe(false)
  })
})

describe('pages', () => {
  test('use the row too many only to tell that there is more', () => {
    const rows = ['a', 'b', 'c'].map((id) => ({ id }))
    expect(listingPage(rows, 2)).toEqual({ rows: rows.slice(0, 2), next: 'b' })
    expect(listingPage(rows, 3)).toEqual({ rows, next: null })
    expect(listingPage([], 3)).toEqual({ rows: [], next: null })
  })

  test('hold the summaries that Python writes', () => {
    const { summary, page } = vectors<Record<string, string>>('summary_page.json')
    const row = {
      id: 'x',
      definitionId: 'd',
      status: 'DONE',
      outcome: 'ok',
      activePath: 'A',
      version: 3,
      parentId: null,
      finishedAt: 1_700_000_000,
    }
    const { items, nextCursor } = toPage(
      toSummaries([row], {}),
      '7',
      { ...checkListQuery({}, 'offset'), fingerprint: '' },
      'offset',
    )
    const wire = JSON.parse(summary ?? '')
    expect(Object.values(items[0] ?? {})).toEqual(Object.values(wire))
    expect({ items: [wire], next_cursor: nextCursor }).toEqual(JSON.parse(page ?? ''))
  })

  test('leave out a row whose status cannot be told, with a warning', () => {
    const row = {
      id: 'x',
      definitionId: 'd',
      outcome: null,
      activePath: null,
      version: 1,
      parentId: null,
      finishedAt: null,
    }
    const warnings: string[] = []
    const onWarning = (message: string) => warnings.push(message)
    expect(
      toSummaries(
        [
          { ...row, status: null },
          { ...row, id: 'y', status: 'DONE' },
        ],
        { onWarning },
      ),
    ).toHaveLength(1)
    expect(warnings).toEqual(['execution "x" cannot be read: its status cannot be told'])
  })
})

describe('the order by bytes', () => {
  test('is that of the UTF-8 bytes', () => {
    fc.assert(
      fc.property(text, text, (a, b) => {
        expect(Math.sign(compareBytes(a, b))).toBe(Buffer.compare(bytes(a), bytes(b)))
      }),
      {
        examples: [
          ['\uffff', '😀'],
          ['a\ue000', 'a\u{10000}'],
          ['😀', '😁'],
          ['a', 'ab'],
          ['', ''],
        ],
      },
    )
  })

  test('holds for texts that begin alike', () => {
    fc.assert(
      fc.property(text, text, text, (start, a, b) => {
        expect(Math.sign(compareBytes(start + a, start + b))).toBe(Buffer.compare(bytes(a), bytes(b)))
      }),
    )
  })
})

describe('the end of a prefix', () => {
  // Few characters, so that texts often begin alike, and those at the borders of UTF-8 and UTF-16.
  const unit = fc.constantFrom(
    'a',
    'b',
    '\x7f',
    '\x80',
    '\u07ff',
    '\ud7ff',
    '\ue000',
    '\uffff',
    '\u{10000}',
    '\u{10ffff}',
  )
  const near = fc.string({ unit, maxLength: 4 })

  test('has all texts with the prefix before it, and no others from the prefix on', () => {
    fc.assert(
      fc.property(near, near, (prefix, value) => {
        const end = prefixEnd(prefix)
        const inRange =
          Buffer.compare(bytes(prefix), bytes(value)) <= 0 &&
          (end === undefined || Buffer.compare(bytes(value), bytes(end)) < 0)
        expect(inRange).toBe(value.startsWith(prefix))
      }),
      { numRuns: 2000 },
    )
  })

  test('is a text that has a UTF-8 form, or there is none', () => {
    fc.assert(fc.property(near, (prefix) => prefixEnd(prefix)?.isWellFormed() ?? /^\u{10ffff}*$/u.test(prefix)))
  })
})

describe('patterns of LIKE', () => {
  test.each(Object.entries(vectors<Record<string, string>>('like_prefix.json')))(
    'are those of Python: %j',
    (prefix, pattern) => {
      expect(likePrefix(prefix)).toBe(pattern)
    },
  )
})
