import { describe, expect, test } from 'vitest'
import { canonicalDatetime } from '../src/datetime.js'
import { decodeEvent, decodeExecution, decodeObject } from '../src/decode.js'
import { encodeEvent, encodeExecution, encodeJson } from '../src/encode.js'
import { InvalidPrefix } from '../src/errors.js'
import { Names } from '../src/names.js'
import { pythonFloat } from '../src/python-float.js'
import {
  epochSeconds,
  isFinished,
  newEvent,
  newExecution,
  newId,
  STATUSES,
  stamp,
  timeoutEventId,
  toDate,
} from '../src/records.js'
import { vectors } from './vectors.js'

describe('new records', () => {
  test('have a random id of their own', () => {
    const ids = [newId(), newId(), newExecution({ definitionId: 'd' }).id, newEvent({ kind: 'k' }).id]
    for (const id of ids) expect(id).toMatch(/^[0-9a-f]{32}$/)
    expect(new Set(ids).size).toBe(ids.length)
  })

  test('are what Python makes of the same fields', () => {
    const python = vectors<{ json: string }[]>('execution.json')[0]?.json ?? ''
    expect(newExecution({ id: 'x', definitionId: 'd' })).toEqual(decodeExecution(python))
    expect(newEvent({ id: 'e', kind: 'K' })).toEqual(
      decodeEvent(vectors<{ json: string }[]>('event.json')[0]?.json ?? ''),
    )
  })

  test('share nothing with each other', () => {
    const [one, other] = [newExecution({ definitionId: 'd' }), newExecution({ definitionId: 'd' })]
    for (const field of ['history', 'context', 'deferred', 'children', 'invokeSeq'] as const) {
      expect(one[field]).not.toBe(other[field])
    }
    expect(newEvent({ kind: 'k' }).data).not.toBe(newEvent({ kind: 'k' }).data)
  })

  test('take the fields that they are given', () => {
    expect(newExecution({ definitionId: 'd', id: 'mine', priority: 3 })).toMatchObject({ id: 'mine', priority: 3 })
    expect(newEvent({ kind: 'k', id: 'mine', data: { a: 1 } })).toMatchObject({ id: 'mine', data: { a: 1 } })
  })
})

describe('the stamp of a writer', () => {
  test('sets the time of creation once, that of the update always', () => {
    const execution = newExecution({ definitionId: 'd' })
    stamp(execution, 10.5)
    stamp(execution, 12)
    expect(execution).toMatchObject({ createdAt: 10.5, updatedAt: 12, finishedAt: null })
  })

  test('keeps the time of the end for as long as the execution is finished', () => {
    const execution = newExecution({ definitionId: 'd', status: 'DONE' })
    stamp(execution, 10)
    stamp(execution, 12)
    expect(execution.finishedAt).toBe(10)
    execution.status = 'FAILED'
    stamp(execution, 13)
    expect(execution.finishedAt).toBe(null)
  })

  test('counts the epoch itself as a time', () => {
    const execution = newExecution({ definitionId: 'd', status: 'DONE' })
    stamp(execution, 0)
    stamp(execution, 5)
    expect(execution).toMatchObject({ createdAt: 0, finishedAt: 0 })
  })

  test('takes DONE and CANCELLED for finished, and nothing else', () => {
    expect(STATUSES.filter(isFinished)).toEqual(['DONE', 'CANCELLED'])
  })
})

test('times go to dates and back', () => {
  expect(epochSeconds(new Date(1_700_000_000_250))).toBe(1_700_000_000.25)
  expect(toDate(1_700_000_000.25).getTime()).toBe(1_700_000_000_250)
  expect(toDate(-0.5).getTime()).toBe(-500)
})

/** The double that a hexadecimal text of Python's stands for. */
function fromHex(text: string): number {
  const [, sign, whole, fraction = '', exponent] = /^(-?)0x([01])\.([0-9a-f]+)p([+-]\d+)$/.exec(text) ?? []
  const mantissa = Number(whole) + Number.parseInt(fraction, 16) / 16 ** fraction.length
  return (sign === '-' ? -1 : 1) * mantissa * 2 ** Number(exponent)
}

describe('floats that Python wrote', () => {
  interface FloatCase {
    repr: string
    hex: string
    pydantic: string
    pydantic_float_field: string
    json_dumps: string
    timeout_event_id: string
  }
  const cases = vectors<FloatCase[]>('floats.json')

  test.each(cases)('are read as the very double, in every spelling: $repr', (each) => {
    const value = fromHex(each.hex)
    expect(decodeEvent(`{"kind":"k","data":{"v":${each.pydantic}}}`).data.v).toBe(value)
    expect(decodeObject(`{"v":${each.json_dumps}}`, 'spawn 1').v).toBe(value)
    const execution = decodeExecution(`{"definition_id":"d","created_at":${each.pydantic_float_field}}`)
    expect(execution.createdAt).toBe(value)
  })

  test.each(cases)('are written so that they are read as the same double, but for -0: $repr', ({ hex }) => {
    const value = fromHex(hex) + 0
    expect(JSON.parse(encodeJson({ v: value }, 'context')).v).toBe(value)
    expect(JSON.parse(encodeEvent(newEvent({ kind: 'k', data: { v: value } }))).data.v).toBe(value)
    const execution = newExecution({ definitionId: 'd', createdAt: value })
    expect(JSON.parse(encodeExecution(execution, 1, 't')).created_at).toBe(value)
  })

  test.each(cases)(
    'are spelt in the id of a timeout as Python spells them: $repr',
    ({ hex, repr, timeout_event_id }) => {
      expect(pythonFloat(fromHex(hex))).toBe(repr)
      expect(timeoutEventId('E', 'P', fromHex(hex))).toBe(timeout_event_id)
    },
  )

  test('that are not finite have their names', () => {
    expect([Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY].map(pythonFloat)).toEqual([
      'nan',
      'inf',
      '-inf',
    ])
  })
})

describe('the event of a timeout', () => {
  interface TimeoutCase {
    execution_id: string
    path: string
    fire_at: number
    event_json: string
  }
  test.each(vectors<TimeoutCase[]>('timeout_event.json'))(
    'has the same id from both languages: $event_json',
    (each) => {
      const event = decodeEvent(each.event_json)
      expect(timeoutEventId(each.execution_id, each.path, each.fire_at)).toBe(event.id)
      expect(event.data).toEqual({ path: each.path, fire_at: each.fire_at })
    },
  )
})

describe('times of events', () => {
  test.each([
    ['2024-01-02T03:04:05', '2024-01-02T03:04:05'],
    ['2024-01-02t03:04:05z', '2024-01-02T03:04:05Z'],
    ['2024-01-02 03:04', '2024-01-02T03:04:00'],
    ['2024-01-02_03:04:05', '2024-01-02T03:04:05'],
    ['2024-01-02', '2024-01-02T00:00:00'],
    ['2024-02-29', '2024-02-29T00:00:00'],
    ['2000-02-29', '2000-02-29T00:00:00'],
    ['0001-01-01', '0001-01-01T00:00:00'],
    ['2024-01-02T03:04:05,5', '2024-01-02T03:04:05.500000'],
    ['2024-01-02T03:04:05.1234567890123', '2024-01-02T03:04:05.123456'],
    ['2024-01-02T03:04:05+0200', '2024-01-02T03:04:05+02:00'],
    ['2024-01-02T03:04:05-00:00', '2024-01-02T03:04:05Z'],
    ['2024-01-02T03:04:05+23:59', '2024-01-02T03:04:05+23:59'],
    [new Date(1_700_000_000_250).toISOString(), '2023-11-14T22:13:20.250000Z'],
    ['1700000000.5', '2023-11-14T22:13:20.500000Z'],
    [0, '1970-01-01T00:00:00Z'],
    [-0.5, '1969-12-31T23:59:59.500000Z'],
    [0.9999999, '1970-01-01T00:00:01Z'],
    [1_700_000_000.999999, '2023-11-14T22:13:20.999999Z'],
    [20_000_000_000, '2603-10-11T11:33:20Z'],
    [20_000_000_001, '1970-08-20T11:33:20.001000Z'],
    [253_402_300_799_999, '9999-12-31T23:59:59.999000Z'],
  ])('are kept in one form: %j', (given, canonical) => {
    expect(canonicalDatetime(given)).toBe(canonical)
  })

  test.each([
    '2023-02-29',
    '1900-02-29',
    '2024-04-31',
    '2024-13-01',
    '2024-00-10',
    '2024-01-00',
    '0000-01-01',
    '10000-01-01',
    '2024-1-2',
    '2024-01-02T24:00:00',
    '2024-01-02T23:60:00',
    '2024-01-02T23:59:60',
    '2024-01-02T03',
    '2024-01-02T03:04:05.',
    '2024-01-02T03:04:05+02',
    '2024-01-02T03:04:05+24:00',
    '2024-01-02T03:04:05+23:60',
    '2024-01-02T03:04:05 Z',
    '2024-01-02T03:04:05\n',
    ' 2024-01-02',
    'not a date',
    '',
    'NaN',
    253_402_300_800_000,
    -62_135_596_800_001,
    1e300,
    Number.NaN,
    true,
    null,
    {},
  ])('are refused where Python refuses them: %j', (given) => {
    expect(canonicalDatetime(given)).toBe(undefined)
  })
})

describe('names', () => {
  const golden = vectors<{
    harel: Record<string, string>
    prefixes: { prefix: string; ok?: string }[]
  }>('names.json')
  // Functions of PostgreSQL, which have names of their own here.
  const { commit_cas: _c, claim: _l, ack: _a, ...shared } = golden.harel
  const camelCase = (key: string) => key.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())

  test.each(Object.entries(shared))('are those of Python: %s', (key, name) => {
    expect(Names()[camelCase(key) as keyof Names]).toBe(name)
  })

  test.each(golden.prefixes)('are made of the prefixes that Python allows: $prefix', ({ prefix, ok }) => {
    if (ok === undefined) expect(() => Names(prefix)).toThrow(InvalidPrefix)
    else expect(Names(prefix).executions).toBe(ok)
  })

  test('never are two of one prefix (weakness 46)', () => {
    const { prefix: _, ...names } = Names()
    expect(new Set(Object.values(names)).size).toBe(Object.keys(names).length)
    expect(Object.values(names)).not.toContain('harel_definitions')
  })
})
