import { describe, expect, test } from 'vitest'
import {
  checkArray,
  checkInteger,
  checkKey,
  checkKeyOrEmpty,
  checkKeyOrNull,
  checkMembers,
  checkObject,
  checkSeqs,
  checkStatus,
  checkTime,
  checkVersion,
  foldTimers,
  readArgument,
} from '../src/arguments.js'
import { InvalidArgument } from '../src/errors.js'
import { checkQueuePage, checkTimerPage } from '../src/queues.js'

const refused = (argument: string) => expect.objectContaining({ code: 'INVALID_ARGUMENT', argument })

describe('a key', () => {
  test.each([['a'], ['é'], ['日'], ['😀']])('may have 1024 UTF-8 bytes and not one more: %s', (character) => {
    const size = Buffer.byteLength(character)
    const rest = 'x'.repeat(1024 % size)
    const longest = character.repeat(Math.floor(1024 / size)) + rest
    expect(Buffer.byteLength(longest)).toBe(1024)
    expect(checkKey('id', longest)).toBe(longest)
    expect(() => checkKey('id', `${longest}x`)).toThrow(InvalidArgument)
    expect(() => checkKey('id', `x${longest}`)).toThrow(InvalidArgument)
  })

  test.each([
    'a',
    ' ',
    '\n',
    '\x01',
    '\uffff',
    '\ud7ff\ue000',
    '😀',
    '__proto__',
    '%_\\',
    "'; DROP TABLE x; --",
    '\\u0000',
  ])('may hold any other character: %j', (key) => {
    expect(checkKey('id', key)).toBe(key)
  })

  test.each<[string, unknown]>([
    ['empty', ''],
    ['with NUL', 'a\0b'],
    ['only NUL', '\0'],
    ['with a lone high surrogate', 'a\ud800'],
    ['with a lone low surrogate', '\udfffa'],
    ['with its surrogates the wrong way round', '\ude00\ud83d'],
    ['a number', 5],
    ['undefined', undefined],
    ['null', null],
    ['a boxed text', Object('a')],
    ['an array of one text', ['a']],
    ['a megabyte', 'x'.repeat(2 ** 20)],
  ])('is refused when it is %s', (_, value) => {
    expect(() => checkKey('eventId', value)).toThrow(refused('eventId'))
    expect(() => checkKey('eventId', value)).toThrow(/^eventId must be a string of 1 to 1024 UTF-8 bytes.{0,200}$/s)
  })

  test('may be empty or null only where that is said', () => {
    expect(checkKeyOrEmpty('rootPath', '')).toBe('')
    expect(checkKeyOrNull('parentId', null)).toBe(null)
    expect(() => checkKeyOrEmpty('rootPath', null)).toThrow(refused('rootPath'))
    expect(() => checkKeyOrEmpty('rootPath', '\0')).toThrow(refused('rootPath'))
    expect(() => checkKeyOrNull('parentId', '')).toThrow(refused('parentId'))
    expect(() => checkKeyOrNull('parentId', undefined)).toThrow(refused('parentId'))
  })
})

describe('numbers', () => {
  const notIntegers = [1.5, Number.NaN, Number.POSITIVE_INFINITY, '1', 1n, null, undefined, [1], Object(1)]

  test.each(notIntegers)('that are no integers are refused: %s', (value) => {
    expect(() => checkInteger('limit', value, 0, 10)).toThrow(refused('limit'))
    expect(() => checkVersion('version', value)).toThrow(refused('version'))
  })

  test('are taken up to their bounds', () => {
    expect([0, 10].map((value) => checkInteger('n', value, 0, 10))).toEqual([0, 10])
    expect(() => checkInteger('n', -1, 0, 10)).toThrow('n must be an integer from 0 to 10; got -1')
    expect(() => checkInteger('n', 11, 0, 10)).toThrow(InvalidArgument)
  })

  test('are versions as long as there is a next one', () => {
    expect(checkVersion('version', Number.MAX_SAFE_INTEGER - 1)).toBe(Number.MAX_SAFE_INTEGER - 1)
    expect(() => checkVersion('version', Number.MAX_SAFE_INTEGER)).toThrow(InvalidArgument)
    expect(() => checkVersion('version', -1)).toThrow(InvalidArgument)
  })

  test('are times when they are finite', () => {
    expect([0, -1.5, 1e300].map((value) => checkTime('now', value))).toEqual([0, -1.5, 1e300])
    for (const value of [Number.NaN, Number.POSITIVE_INFINITY, '0', new Date(), null, undefined]) {
      expect(() => checkTime('now', value)).toThrow(refused('now'))
    }
  })
})

describe('containers', () => {
  test.each([null, undefined, 'a', 5, [], () => 1])('that are no objects are refused: %s', (value) => {
    expect(() => checkObject('page', value)).toThrow(refused('page'))
  })

  test('with a member that nobody looks at are refused', () => {
    expect(checkMembers('page', { limit: 1 }, ['limit', 'after'])).toEqual({ limit: 1 })
    expect(() => checkMembers('page', { limt: 1 }, ['limit', 'after'])).toThrow(
      'page must be a plain object with no other members than limit, after (has "limt"); got an object',
    )
  })

  test.each([
    new Map([['limit', 1]]),
    new Set(['limit']),
    new Date(),
    new (class Page {
      limit = 1
    })(),
    Object.create({ limit: 1 }),
  ])('with members are plain objects, not %s', (value) => {
    expect(() => checkMembers('page', value, ['limit'])).toThrow(refused('page'))
    expect(() => checkMembers('page', value, ['limit'])).toThrow(/^page must be a plain object; got an object of class/)
  })

  test('with members are copied, those that are not enumerable too, and each member is read once', () => {
    let reads = 0
    const value = Object.defineProperty({}, 'limit', { get: () => ++reads })
    expect(checkMembers('page', value, ['limit'])).toEqual({ limit: 1 })
    expect(reads).toBe(1)
    expect(() => checkMembers('page', Object.defineProperty({}, 'limt', { value: 1 }), ['limit'])).toThrow(
      refused('page'),
    )
    const own = checkMembers('page', JSON.parse('{"__proto__":1}'))
    expect(Object.entries(own)).toEqual([['__proto__', 1]])
  })

  test('that throw when they are read are refused with the place and the cause', () => {
    const cause = new Error('a getter')
    const broken = {
      get prefix() {
        throw cause
      },
    }
    expect(() => checkMembers('options', broken)).toThrow(
      expect.objectContaining({ argument: 'options.prefix', cause }),
    )
    const cyclic: Record<string, unknown> = { list: [{}, broken] }
    cyclic.self = cyclic
    const read = () => readArgument('step', cyclic, () => JSON.stringify(broken))
    expect(read).toThrow(expect.objectContaining({ argument: 'step.list[1].prefix', cause }))
    const once = () => {
      throw cause
    }
    expect(() => readArgument('step', {}, once)).toThrow(expect.objectContaining({ argument: 'step', cause }))
  })

  test('that are arrays are copied, holes included', () => {
    const given = [1, 2]
    const copy = checkArray('emits', given)
    given.push(3)
    expect(copy).toEqual([1, 2])
    expect(Object.keys(checkArray('emits', Array(2)))).toEqual(['0', '1'])
    for (const value of [null, {}, 'ab', new Set([1]), { length: 1 }]) {
      expect(() => checkArray('emits', value)).toThrow(refused('emits'))
    }
  })

  test('of statuses hold nothing else', () => {
    expect(checkStatus('status', 'DONE')).toBe('DONE')
    for (const value of ['done', '', null, 'toString'])
      expect(() => checkStatus('status', value)).toThrow(refused('status'))
  })
})

describe('seqs', () => {
  test('are one or many', () => {
    expect(checkSeqs('seqs', 7)).toEqual([7])
    expect(checkSeqs('seqs', [])).toEqual([])
    expect(checkSeqs('seqs', [1, Number.MAX_SAFE_INTEGER])).toEqual([1, Number.MAX_SAFE_INTEGER])
  })

  test.each<[unknown, string]>([
    ['7', 'seqs'],
    [null, 'seqs'],
    [1.5, 'seqs'],
    [-1, 'seqs'],
    [[1, '2'], 'seqs[1]'],
    [[[1]], 'seqs[0]'],
    [Array(2), 'seqs[0]'],
    [[2 ** 53], 'seqs[0]'],
  ])('are refused when they are no integers: %j', (value, argument) => {
    expect(() => checkSeqs('seqs', value)).toThrow(refused(argument))
  })
})

describe('timers', () => {
  test('of one path are folded so that the last one counts', () => {
    const timers = [
      { action: 'schedule', path: 'a', fireAt: 1 },
      { action: 'cancel', path: 'b' },
      { action: 'cancel', path: 'a' },
      { action: 'schedule', path: 'b', fireAt: 2 },
      { action: 'schedule', path: 'a', fireAt: 3 },
    ]
    expect(foldTimers('timers', timers)).toEqual([
      { action: 'schedule', path: 'a', fireAt: 3 },
      { action: 'schedule', path: 'b', fireAt: 2 },
    ])
  })

  test('are copied', () => {
    const timer = { action: 'schedule', path: 'a', fireAt: 1 }
    const [copy] = foldTimers('timers', [timer])
    timer.fireAt = 2
    expect(copy).toEqual({ action: 'schedule', path: 'a', fireAt: 1 })
  })

  test.each<[unknown, string]>([
    [{}, 'timers'],
    [[null], 'timers[0]'],
    [Array(1), 'timers[0]'],
    [[{ action: 'cancel', path: '' }], 'timers[0].path'],
    [
      [
        { action: 'cancel', path: 'a' },
        { action: 'schedule', path: 'a\0', fireAt: 1 },
      ],
      'timers[1].path',
    ],
    [[{ action: 'schedule', path: 'a' }], 'timers[0].fireAt'],
    [[{ action: 'schedule', path: 'a', fireAt: Number.NaN }], 'timers[0].fireAt'],
    [[{ action: 'arm', path: 'a', fireAt: 1 }], 'timers[0].action'],
  ])('are refused with the place of the mistake: %j', (value, argument) => {
    expect(() => foldTimers('timers', value)).toThrow(refused(argument))
  })
})

describe('pages of queues', () => {
  test('are everything when nothing is said', () => {
    expect(checkQueuePage()).toEqual({ limit: Number.POSITIVE_INFINITY, after: -1 })
    expect(checkTimerPage()).toEqual({ limit: Number.POSITIVE_INFINITY, after: undefined })
    expect(checkQueuePage({ limit: 1000, after: 0 })).toEqual({ limit: 1000, after: 0 })
  })

  test('are copied', () => {
    const after = { executionId: 'x', path: 'p', fireAt: 1 }
    const page = checkTimerPage({ after, limit: 1 })
    after.fireAt = 2
    expect(page).toEqual({ limit: 1, after: { executionId: 'x', path: 'p', fireAt: 1 } })
  })

  test.each<[unknown, string]>([
    [null, 'page'],
    [{ limit: 0 }, 'page.limit'],
    [{ limit: 1001 }, 'page.limit'],
    [{ limit: null }, 'page.limit'],
    [{ after: null }, 'page.after'],
    [{ offset: 1 }, 'page'],
  ])('are refused with the place of the mistake: %j', (page, argument) => {
    expect(() => checkQueuePage(page as never)).toThrow(refused(argument))
    expect(() => checkTimerPage(page as never)).toThrow(refused(argument))
  })

  test('are refused when they start at no place of their queue', () => {
    expect(() => checkQueuePage({ after: -1 })).toThrow(refused('page.after'))
    expect(() => checkQueuePage({ after: 1.5 })).toThrow(refused('page.after'))
    expect(() => checkQueuePage({ onUnreadable: null } as never)).toThrow(refused('page.onUnreadable'))
    const timer = { executionId: 'x', path: 'p', fireAt: 1 }
    expect(() => checkTimerPage({ after: { ...timer, executionId: '' } })).toThrow(refused('page.after.executionId'))
    expect(() => checkTimerPage({ after: { ...timer, path: '' } })).toThrow(refused('page.after.path'))
    expect(() => checkTimerPage({ after: { ...timer, fireAt: Number.NaN } })).toThrow(refused('page.after.fireAt'))
  })
})
