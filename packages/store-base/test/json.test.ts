import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { decodeExecution, decodeJson } from '../src/decode.js'
import { encodeExecution, encodeJson } from '../src/encode.js'
import { NotSerializable } from '../src/errors.js'
import { hasLoneSurrogate, parseJson, validateSerializable } from '../src/json.js'
import { newExecution } from '../src/records.js'

const refusal = (value: unknown, options = {}): { path: string; message: string } | undefined => {
  try {
    validateSerializable(value, 'context', options)
    return undefined
  } catch (error) {
    expect(error).toBeInstanceOf(NotSerializable)
    return error as NotSerializable
  }
}

class Money {
  amount = 1
}

const cyclic: { list: unknown[] } = { list: [] }
cyclic.list.push(cyclic)

const deep = (levels: number): object => (levels === 0 ? {} : { a: deep(levels - 1) })

const oncePrototype = Object.create(Object.assign(Object.create(null), { toJSON: () => 'CANARY' }))

describe('a value that JSON does not carry', () => {
  test.each<[string, unknown, string]>([
    ['NaN', { a: Number.NaN }, 'context.a'],
    ['Infinity', { a: [1, Number.POSITIVE_INFINITY] }, 'context.a[1]'],
    ['-Infinity', { a: { b: Number.NEGATIVE_INFINITY } }, 'context.a.b'],
    ['a bigint', { a: 10n }, 'context.a'],
    ['a function', { a: () => 1 }, 'context.a'],
    ['a method that JSON would call', { toJSON: () => 1 }, 'context.toJSON'],
    ['a symbol', { a: Symbol('s') }, 'context.a'],
    ['a member keyed by a symbol', { a: { [Symbol('s')]: 1 } }, 'context.a'],
    ['undefined in an array', { a: [undefined, 1] }, 'context.a[0]'],
    ['a hole in an array', { a: Array(3) }, 'context.a[0]'],
    ['a Map', { a: new Map([[1, 2]]) }, 'context.a'],
    ['a Set', { a: new Set() }, 'context.a'],
    ['a Date', { a: new Date(0) }, 'context.a'],
    ['an invalid Date', { a: new Date('x') }, 'context.a'],
    ['a RegExp', { a: /x/g }, 'context.a'],
    ['an Error', { a: new Error('e') }, 'context.a'],
    ['a class instance', { a: new Money() }, 'context.a'],
    ['an object that inherits', { a: Object.create({ b: 1 }) }, 'context.a'],
    ['an object that inherits from one without a prototype', { a: oncePrototype }, 'context.a'],
    ['a boxed number', { a: Object(1) }, 'context.a'],
    ['a boxed text', { a: Object('s') }, 'context.a'],
    ['bytes', { a: Buffer.from('x') }, 'context.a'],
    ['a promise', { a: Promise.resolve(1) }, 'context.a'],
    ['a weak map', { a: new WeakMap() }, 'context.a'],
    ['the Date of another realm', { a: runInNewContext('new Date(0)') }, 'context.a'],
    ['the class instance of another realm', { a: runInNewContext('new (class Money {})()') }, 'context.a'],
    ['a value that contains itself', cyclic, 'context.list[0]'],
    ['a value below which one contains itself', { a: [cyclic] }, 'context.a[0].list[0]'],
    ['a value that is nested too deep', deep(300), `context${'.a'.repeat(200).slice(0, 293)}…`],
    ['undefined itself', undefined, 'context'],
    ['a function itself', () => 1, 'context'],
  ])('is refused with the path to it: %s', (_, value, path) => {
    expect(refusal(value)).toMatchObject({ path, message: expect.stringContaining(path) })
  })

  test('is found under any key, which the path quotes where need be', () => {
    const path = refusal({ 'a.b': [{ $x: { 'é"': { [`${'k'.repeat(100)}`]: { '': 1n } } } }] })?.path
    expect(path).toBe(`context["a.b"][0].$x["é\\""].${'k'.repeat(100)}[""]`)
  })

  test('is found behind members that are undefined', () => {
    expect(refusal({ a: undefined, b: undefined, c: 1n, d: undefined })?.path).toBe('context.c')
  })

  test('is found behind a getter that throws, whose error is the cause', () => {
    const failure = new Error('gone')
    const value = {
      fine: 1,
      get broken(): number {
        throw failure
      },
    }
    expect(refusal({ list: [value] })).toMatchObject({ path: 'context.list[0].broken', cause: failure })
  })

  test('is not shown in the message, but for its kind', () => {
    expect(refusal({ a: new Money() })?.message).toContain('an object of class Money')
    expect(refusal({ a: Object(Symbol('CANARY')) })?.message).not.toContain('CANARY')
    expect(refusal({ a: new Error('CANARY') })?.message).not.toContain('CANARY')
  })

  test('is refused in history, results, events, steps and definitions too', () => {
    const bad = { a: Number.NaN }
    const child = { rootPath: '', finished: false, outcome: null, result: bad as never, submachine: false, key: '' }
    const event = { id: 'e', kind: 'k', createdTime: null, receivedTime: null, data: bad }
    const paths = [{ history: bad }, { context: bad }, { children: { c: child } }, { deferred: [event] }].map(
      (fields) => {
        try {
          return encodeExecution(newExecution({ definitionId: 'd', ...fields }), 1, 't')
        } catch (error) {
          return (error as NotSerializable).path
        }
      },
    )
    expect(paths).toEqual([
      'execution.history.a',
      'execution.context.a',
      'execution.children["c"].result.a',
      'execution.deferred[0].data.a',
    ])
    expect(() => encodeJson(bad, 'record.definition')).toThrow('record.definition.a is NaN')
  })
})

describe('a value that JSON carries', () => {
  test.each<[string, unknown, unknown]>([
    ['an object without a prototype', Object.assign(Object.create(null), { a: 1 }), { a: 1 }],
    ['an object of another realm', runInNewContext('({ a: [1, { b: null }] })'), { a: [1, { b: null }] }],
    ['a frozen object', Object.freeze({ a: Object.freeze([]) }), { a: [] }],
    [
      'a getter',
      {
        get a() {
          return 1
        },
      },
      { a: 1 },
    ],
    ['a member that is undefined', { a: undefined, b: { c: undefined } }, { b: {} }],
    ['-0', { a: -0 }, { a: 0 }],
    ['one object twice', { a: [cyclic.list.length, cyclic.list.length] }, { a: [1, 1] }],
    ['U+0000', { 'a\0b': 'what\0ever' }, { 'a\0b': 'what\0ever' }],
    ['a proxy', new Proxy({ a: 1 }, {}), { a: 1 }],
  ])('is written: %s', (_, value, read) => {
    expect(refusal(value)).toBe(undefined)
    expect(decodeJson(encodeJson(value, 'context'), 'x')).toEqual(read)
  })

  test('comes back as it was, keys like __proto__ included', () => {
    const key = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.constantFrom('__proto__', 'constructor', 'toString', 'length'),
    )
    const { value } = fc.letrec((tie) => ({
      value: fc.oneof(
        { maxDepth: 4 },
        fc.string({ unit: 'binary' }),
        fc.double({ noNaN: true, noDefaultInfinity: true }).map((number) => number + 0),
        fc.boolean(),
        fc.constant(null),
        fc.array(tie('value')),
        fc.array(fc.tuple(key, tie('value'))).map(Object.fromEntries),
      ),
    }))
    fc.assert(
      fc.property(value, (given) => {
        expect(JSON.stringify(decodeJson(encodeJson(given, 'context', 'lossy'), 'x'))).toBe(JSON.stringify(given))
      }),
    )
  })

  test('may be as deep as the containers around it allow', () => {
    const nested = (levels: number) => JSON.parse('['.repeat(levels) + ']'.repeat(levels))
    expect(refusal(nested(199))).toBe(undefined)
    expect(refusal(nested(200))?.message).toContain('lies deeper than 200 levels')
    expect(refusal(nested(200), { enclosing: 0 })).toBe(undefined)
    expect(refusal(nested(198), { enclosing: 3 })?.message).toContain('lies deeper')
  })

  test('may hold NaN and Infinity, which become null, where numbers are lossy', () => {
    const value = { a: [Number.NaN, Number.POSITIVE_INFINITY, 1] }
    expect(refusal(value, { numbers: 'lossy' })).toBe(undefined)
    expect(encodeJson(value, 'context', 'lossy')).toBe('{"a":[null,null,1]}')
  })
})

describe('a lone surrogate', () => {
  test.each<[string, unknown, string]>([
    ['high', { a: 'x\ud800' }, 'context.a'],
    ['low', { a: ['\udfffx'] }, 'context.a[0]'],
    ['high before a letter', { a: { b: '\ud83dA' } }, 'context.a.b'],
    ['the wrong way round', { a: '\ude00\ud83d' }, 'context.a'],
    ['two highs before a low', { a: '\ud83d\ud83d\ude00' }, 'context.a'],
    ['behind a backslash', { a: '\\\ud800' }, 'context.a'],
    ['in a key', { a: { 'k\ud800': 1 } }, 'context.a["k\ufffd"]'],
  ])('is refused with the path to it: %s', (_, value, path) => {
    expect(() => encodeJson(value, 'context')).toThrow(expect.objectContaining({ code: 'NOT_SERIALIZABLE', path }))
  })

  test.each(['\\ud800', '\\\\ud800', '\\u0000\\ud83d\\ude00', 'ud800', '😀', '\ud7ff\ue000', '\\"\\ud800'])(
    'is not seen where there is none: %j',
    (text) => {
      expect(decodeJson(encodeJson({ [text]: text }, 'context'), 'x')).toEqual({ [text]: text })
    },
  )

  /** What a text spells, character by character; slow and plain. */
  const holdsLoneSurrogate = (json: string): boolean => {
    const seen: boolean[] = []
    const look = (value: unknown): void => {
      if (typeof value === 'string') seen.push(!value.isWellFormed())
      else if (typeof value === 'object' && value !== null) Object.entries(value).flat().forEach(look)
    }
    look(JSON.parse(json))
    return seen.includes(true)
  }

  const unit = fc.constantFrom('\\', '"', 'u', 'd', '8', '0', 'D', '\ud83d', '\ude00', '\udc00', '\udbff', 'x', '\0')
  const strings = fc.array(unit, { maxLength: 12 }).map((units) => units.join(''))

  test('is seen in whatever JSON.stringify writes', () => {
    fc.assert(
      fc.property(fc.dictionary(strings, strings), (value) => {
        const json = JSON.stringify(value)
        expect(hasLoneSurrogate(json)).toBe(holdsLoneSurrogate(json))
      }),
      { numRuns: 3000 },
    )
  })

  test('is seen in texts that escape more, and with capitals', () => {
    const spelt = (text: string, upper: boolean) =>
      Array.from({ length: text.length }, (_, index) => {
        const digits = text.charCodeAt(index).toString(16).padStart(4, '0')
        return `\\u${upper ? digits.toUpperCase() : digits}`
      }).join('')
    fc.assert(
      fc.property(strings, fc.boolean(), (value, upper) => {
        const json = `["${spelt(value, upper)}"]`
        expect(hasLoneSurrogate(json)).toBe(holdsLoneSurrogate(json))
      }),
    )
  })
})

describe('a number that JavaScript does not hold', () => {
  test.each([
    ['9007199254740993', '9007199254740993'],
    ['{"a":[1,-9007199254740993]}', '-9007199254740993'],
    ['{"a":12345678901234567890123}', '12345678901234567890123'],
    ['{"a":1000000000000000000000}', '1000000000000000000000'],
    ['[1e400]', '1e400'],
    ['[-1E+400]', '-1E+400'],
    [`[1${'0'.repeat(400)}]`, `1${'0'.repeat(59)}`],
    ['NaN', 'NaN'],
    ['[Infinity]', 'Infinity'],
    ['{"a":-Infinity}', '-Infinity'],
    ['{"a":"NaN, Infinity","b":NaN}', 'NaN'],
    ['{"a":"9007199254740995","b":9007199254740993}', '9007199254740993'],
  ])('is named: %s', (text, lossy) => {
    expect(parseJson(text).lossy).toBe(lossy)
  })

  test.each([
    '9007199254740991',
    '-9007199254740991',
    '[9007199254740992]',
    '{"a":1.5e+300,"b":1e16,"c":1e22}',
    '{"a":"NaN","b":"12345678901234567890","c":"Infinity"}',
    '{"NaN":1,"\\"":"-Infinity"}',
    '{"e123":"4e567","f":0.1234567890123456789}',
  ])('is not seen where there is none: %s', (text) => {
    expect(parseJson(text)).toEqual({ value: JSON.parse(text), lossy: undefined, deep: false })
  })

  test('is read as nearly as can be', () => {
    expect(parseJson('{"a":[NaN,-Infinity,1e400],"NaN":"\\u0000NaN","n":9007199254740993}').value).toEqual({
      a: [Number.NaN, Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY],
      NaN: '\0NaN',
      n: 9_007_199_254_740_992,
    })
  })

  test.each([
    'NaNNaN',
    '{"a":-NaN}',
    '{"a":1NaN}',
    '{NaN:1}',
    '{"a":NaN',
    '{"a":- Infinity}',
    '{"a":nan}',
    'N',
    '"NaN',
  ])('is not read where Python finds no JSON: %s', (text) => {
    expect(() => parseJson(text)).toThrow(SyntaxError)
  })

  test('is refused wherever the loaded objects are written again, until it is allowed', () => {
    const loaded = decodeExecution('{"id":"x","definition_id":"d","context":{"n":9007199254740993}}', 'x')
    expect(() => encodeExecution(loaded, 1, 't')).toThrow("open the store with numbers: 'lossy' to write it rounded")
    const spread = { ...loaded }
    expect(() => encodeExecution(spread, 1, 't')).toThrow(NotSerializable)
    const moved = newExecution({ definitionId: 'd', context: loaded.context })
    expect(() => encodeExecution(moved, 1, 't')).toThrow(NotSerializable)
    expect(encodeExecution(loaded, 1, 't', 'lossy')).toContain('"n":9007199254740992')
    expect(() => encodeJson(decodeJson('[9007199254740993]', 'definition'), 'record.definition')).toThrow(
      NotSerializable,
    )
  })

  test('is no concern in a store that was opened for rounded numbers', () => {
    const warnings: string[] = []
    const options = { numbers: 'lossy', onWarning: (message: string) => warnings.push(message) } as const
    const loaded = decodeExecution('{"id":"x","definition_id":"d","context":{"n":9007199254740993}}', 'x', options)
    expect(warnings).toEqual([])
    expect(encodeExecution(loaded, 1, 't')).toContain('"n":9007199254740992')
  })
})

test('an array that would be written as something else than its items is refused', () => {
  const items = Object.assign([1, 2], { toJSON: () => 'three' })
  expect(() => validateSerializable({ items }, 'context')).toThrow('context.items is an array with toJSON')
})
