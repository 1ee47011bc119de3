import { describe, expect, test } from 'vitest'
import { decodeEvent, decodeExecution, decodeJson, decodeObject } from '../src/decode.js'
import { encodeEvent, encodeExecution, encodeJson } from '../src/encode.js'
import { CorruptRecord, InvalidArgument, NotSerializable } from '../src/errors.js'
import { type Execution, type HarelEvent, newExecution } from '../src/records.js'
import { fromWire, type ParseCase, textOf, vectors, vectorText } from './vectors.js'

const lossy = { numbers: 'lossy' } as const

const encoded = (execution: Execution): string =>
  encodeExecution(execution, execution.version, '7b2c3f0e-0000-4000-8000-000000000000', 'lossy')

/** The id that was drawn for a record without one, which no two readers agree about. */
const withoutDrawnIds = (text: string): string => text.replace(/"id":"[0-9a-f]{32}"/g, '"id":"drawn"')

describe('executions that Python wrote', () => {
  const cases = vectors<{ name: string; json: string }[]>('execution.json')

  test.each(cases)('are read with every value as it was: $name', ({ json }) => {
    expect(textOf(decodeExecution(json, 'x', lossy))).toBe(textOf(fromWire(JSON.parse(json))))
  })

  test.each(cases)('come through our own text unchanged: $name', ({ json }) => {
    const execution = decodeExecution(json, 'x', lossy)
    expect(textOf(decodeExecution(encoded(execution), 'x', lossy))).toBe(textOf(execution))
  })

  test('keep a member called __proto__ as data', () => {
    const rich = cases.find(({ name }) => name === 'rich context')?.json ?? ''
    const { context } = decodeExecution(rich)
    expect(Object.hasOwn(context, '__proto__')).toBe(true)
    expect(Object.getPrototypeOf(context)).toBe(Object.prototype)
    expect(encodeJson(context, 'context')).toContain('"__proto__":{"polluted":false}')
  })

  test('warn of big integers, and are refused in a commit unless numbers are lossy', () => {
    const json = cases.find(({ name }) => name === 'big ints')?.json ?? ''
    const warnings: string[] = []
    const execution = decodeExecution(json, 'x', { onWarning: (message) => warnings.push(message) })
    expect(warnings).toEqual([expect.stringContaining('execution "x" holds the number 9007199254740993')])
    expect(() => encodeExecution(execution, 1, 't')).toThrow(NotSerializable)
    expect(() => encodeExecution({ ...execution }, 1, 't')).toThrow(NotSerializable)
    expect(JSON.parse(encodeExecution(execution, 1, 't', 'lossy')).context.i64).toBe(2 ** 63)
  })
})

describe('execution texts of all kinds', () => {
  const cases = vectors<ParseCase[]>('execution_parse.json')
  const accepted = cases.filter((each) => each.ok !== undefined)

  test.each(accepted)('what Python accepts is read as Python reads it: $input', ({ input, ok = '' }) => {
    const execution = decodeExecution(input, undefined, lossy)
    expect(withoutDrawnIds(textOf(execution))).toBe(withoutDrawnIds(textOf(fromWire(JSON.parse(ok)))))
  })

  test.each(accepted)('what Python accepts comes through our own text, or is refused: $input', ({ input }) => {
    const execution = decodeExecution(input, undefined, lossy)
    if (execution.processedEvents < 0) expect(() => encoded(execution)).toThrow(InvalidArgument)
    else expect(textOf(decodeExecution(encoded(execution), undefined, lossy))).toBe(textOf(execution))
  })

  test.each(cases.filter((each) => each.error !== undefined))('what Python refuses is corrupt: $input', ({ input }) => {
    expect(() => decodeExecution(input, undefined, lossy)).toThrow(CorruptRecord)
  })

  test.each([
    ['priority beyond 4', '{"definition_id":"d","priority":5}', 'priority must be from 0 to 4'],
    ['a text that is not JSON', '{"definition_id"', 'its text is not JSON'],
    ['a text that is no object', '[1]', 'its text is not a JSON object'],
    ['a bare NaN as a key', '{"definition_id":"d","context":{NaN:1}}', 'its text is not JSON'],
    ['a negative NaN', '{"definition_id":"d","context":{"a":-NaN}}', 'its text is not JSON'],
    ['an integer with an exponent', '{"definition_id":"d","version":"3e0"}', 'version must be an integer'],
    ['a missing member', '{"id":"x"}', 'definition_id must be a string; it is missing'],
    ['a child that is no object', '{"definition_id":"d","children":{"a b":[]}}', 'children["a b"] must be an object'],
    ['a count that is none', '{"definition_id":"d","invoke_seq":{"p":null}}', 'invoke_seq["p"] must be an integer'],
    [
      'a date of the deferred',
      '{"definition_id":"d","deferred":[{"kind":"k","created_time":"2024-02-30"}]}',
      'deferred[0].created_time must be a date',
    ],
  ])('the reason tells what is wrong: %s', (_, text, reason) => {
    expect(() => decodeExecution(text, 'x')).toThrow(CorruptRecord)
    expect(() => decodeExecution(text, 'x')).toThrow(reason)
  })

  test('the reason holds no content of the payload', () => {
    const text = '{"definition_id":"d","error":5,"root_path":{"pin":"CANARY-42"},"context":"CANARY-42"}'
    expect(() => decodeExecution(text, 'x')).toThrow(/^(?!.*CANARY)/s)
  })

  test('a payload under another id than its own is corrupt', () => {
    const text = '{"id":"y","definition_id":"d"}'
    expect(() => decodeExecution(text, 'x')).toThrow('its payload has another id')
    expect(decodeExecution(text).id).toBe('y')
  })

  test('a payload without an id has the one that it is stored under', () => {
    expect(decodeExecution('{"definition_id":"d"}', 'x').id).toBe('x')
  })
})

describe('our own texts', () => {
  test('start with the version, the token and the id, for readers who need no more', () => {
    const text = encodeExecution(newExecution({ definitionId: 'd', id: 'x', version: 3 }), 4, 'token')
    expect(text.startsWith('{"version":4,"commit_token":"token","id":"x","definition_id":"d",')).toBe(true)
  })

  test('write every field that Python knows, null where there is nothing', () => {
    const ours = JSON.parse(encodeExecution(newExecution({ definitionId: 'd', id: 'x' }), 1, 'token'))
    const python = JSON.parse(vectors<{ json: string }[]>('execution.json')[0]?.json ?? '')
    expect(ours).toEqual({ ...python, version: 1, commit_token: 'token' })
  })

  const event = { id: 'e', kind: 'k', createdTime: null, receivedTime: null, data: {} }
  const child = { rootPath: '', finished: false, outcome: null, result: {}, submachine: false, key: '' }
  test.each([
    ['id', { id: '' }, 'execution.id'],
    ['definitionId', { definitionId: 'a\0b' }, 'execution.definitionId'],
    ['rootPath', { rootPath: 'a\ud800' }, 'execution.rootPath'],
    ['status', { status: 'running' }, 'execution.status'],
    ['outcome', { outcome: 5 }, 'execution.outcome'],
    ['error', { error: undefined }, 'execution.error'],
    ['processedEvents', { processedEvents: -1 }, 'execution.processedEvents'],
    ['priority', { priority: 5 }, 'execution.priority'],
    ['parentId', { parentId: '' }, 'execution.parentId'],
    ['createdAt', { createdAt: Number.NaN }, 'execution.createdAt'],
    ['expiresAt', { expiresAt: new Date() }, 'execution.expiresAt'],
    ['context', { context: [] }, 'execution.context'],
    ['history', { history: null }, 'execution.history'],
    ['deferred', { deferred: {} }, 'execution.deferred'],
    ['a hole in deferred', { deferred: Array(1) }, 'execution.deferred[0]'],
    ['the id of a deferred event', { deferred: [{ ...event, id: 5 }] }, 'execution.deferred[0].id'],
    ['the kind of a deferred event', { deferred: [{ ...event, kind: null }] }, 'execution.deferred[0].kind'],
    [
      'the time of a deferred event',
      { deferred: [{ ...event, createdTime: 'now' }] },
      'execution.deferred[0].createdTime',
    ],
    ['the data of a deferred event', { deferred: [{ ...event, data: [] }] }, 'execution.deferred[0].data'],
    ['children', { children: [] }, 'execution.children'],
    ['the id of a child', { children: { '': child } }, 'execution.children[""]'],
    ['a flag of a child', { children: { c: { ...child, finished: 1 } } }, 'execution.children["c"].finished'],
    ['the key of a child', { children: { c: { ...child, key: null } } }, 'execution.children["c"].key'],
    ['invokeSeq', { invokeSeq: { p: 1.5 } }, 'execution.invokeSeq["p"]'],
  ])('are not made of a field of the wrong type: %s', (_, fields, argument) => {
    const execution = { ...newExecution({ definitionId: 'd', id: 'x' }), ...fields } as Execution
    const refused = expect.objectContaining({ code: 'INVALID_ARGUMENT', argument })
    expect(() => encodeExecution(execution, 1, 't')).toThrow(refused)
  })

  test('show no more of a long key than its beginning when they are refused', () => {
    const execution = newExecution({ definitionId: 'd', children: { ['k'.repeat(100_000)]: child } })
    expect(() => encodeExecution(execution, 1, 't')).toThrow(/^.{0,500}$/s)
  })
})

describe('events that Python wrote', () => {
  const cases = vectors<{ name: string; json: string }[]>('event.json')

  test.each(cases)('are read with every value as it was: $name', ({ json }) => {
    expect(textOf(decodeEvent(json))).toBe(textOf(fromWire(JSON.parse(json))))
  })

  test.each(cases)('come through our own text unchanged, byte by byte but for 1.0: $name', ({ json }) => {
    const text = encodeEvent(decodeEvent(json))
    expect(text).toBe(json.replace('1.0', '1').replace('-0.0', '0'))
  })
})

describe('event texts of all kinds', () => {
  const cases = vectors<ParseCase[]>('event_parse.json')
  const accepted = cases.filter((each) => each.ok !== undefined)

  test.each(accepted)('what Python accepts is read as Python reads it: $input', ({ input, ok = '' }) => {
    const event = decodeEvent(input, 'event', lossy)
    expect(withoutDrawnIds(textOf(event))).toBe(withoutDrawnIds(textOf(fromWire(JSON.parse(ok)))))
    expect(textOf(decodeEvent(encodeEvent(event, 'event', 'lossy'), 'event', lossy))).toBe(textOf(event))
  })

  test.each(cases.filter((each) => each.error !== undefined))('what Python refuses is corrupt: $input', ({ input }) => {
    expect(() => decodeEvent(input)).toThrow(CorruptRecord)
  })

  test('an event that was read with a rounded number is not written again, nor is one that shares its data', () => {
    const event = decodeEvent('{"id":"e","kind":"k","data":{"n":9007199254740993}}')
    expect(() => encodeEvent(event)).toThrow(NotSerializable)
    expect(() => encodeEvent({ ...event, id: 'e2' } as HarelEvent)).toThrow(NotSerializable)
    expect(JSON.parse(encodeEvent(event, 'event', 'lossy')).data).toEqual({ n: 2 ** 53 })
  })

  test('an event that was deferred with a rounded number is not written again', () => {
    const execution = decodeExecution(
      '{"definition_id":"d","deferred":[{"kind":"k","data":{"n":9007199254740993}}]}',
      'x',
    )
    const copy = newExecution({ definitionId: 'd', deferred: [...execution.deferred] })
    expect(() => encodeExecution(copy, 1, 't')).toThrow(
      'execution.deferred[0] was loaded with the number 9007199254740993',
    )
  })
})

describe('contexts of spawns that Python wrote', () => {
  const texts = vectors<{ case: number | string; ok?: string }[]>('spawn_context.json').flatMap((each) =>
    each.ok === undefined ? [] : [each.ok],
  )
  const special = { nan: '{"nan": NaN, "inf": Infinity}', surrogate: '{"s": "\\ud800"}' }
  const standard = texts.filter((text) => text !== special.nan && text !== special.surrogate)

  test('hold the cases that are looked at one by one', () => {
    expect(texts).toContain(special.nan)
    expect(texts).toContain(special.surrogate)
  })

  test.each(standard)('are read and written again without loss: %s', (text) => {
    const context = decodeObject(text, 'spawn 1')
    expect(textOf(context)).toBe(textOf(JSON.parse(text)))
    expect(textOf(decodeObject(encodeJson(context, 'context'), 'spawn 1'))).toBe(textOf(context))
  })

  test('are read with NaN and Infinity, with a warning, and not written again', () => {
    const warnings: string[] = []
    const context = decodeObject(special.nan, 'spawn 1', { onWarning: (message) => warnings.push(message) })
    expect(context).toEqual({ nan: Number.NaN, inf: Number.POSITIVE_INFINITY })
    expect(warnings).toEqual(['spawn 1 holds the number NaN, which JavaScript does not hold exactly'])
    expect(() => encodeJson(context, 'context')).toThrow(NotSerializable)
  })

  test('are read with a lone surrogate, and not written again', () => {
    const context = decodeObject(special.surrogate, 'spawn 1')
    expect(context).toEqual({ s: '\ud800' })
    expect(() => encodeJson(context, 'context')).toThrow('context.s has a lone surrogate')
  })

  test('must be objects', () => {
    expect(() => decodeObject('[1]', 'spawn 1')).toThrow(CorruptRecord)
    expect(decodeJson('[1]', 'definition "d" "1"')).toEqual([1])
  })
})

describe('the archive that Python wrote', () => {
  const runs = vectorText('archive.jsonl')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  const executions = runs.flatMap(({ executions }) => executions)
  const steps = runs.flatMap(({ traces }) => Object.values(traces).flat())

  test.each(executions)('holds executions that are read and written again without loss: $id', (wire) => {
    const execution = decodeExecution(JSON.stringify(wire), wire.id)
    expect(textOf(execution)).toBe(textOf(fromWire(wire)))
    expect(textOf(decodeExecution(encoded(execution), wire.id))).toBe(textOf(execution))
  })

  test.each(steps)('holds trace steps that are read and written again without loss: $event_kind $to_path', (step) => {
    expect(textOf(decodeObject(encodeJson(step, 'step'), 'trace step'))).toBe(textOf(step))
  })
})

describe('strings', () => {
  interface StringCase {
    codepoints: number[]
    pydantic: string
    json_dumps: string
  }
  test.each(vectors<StringCase[]>('strings.json'))(
    'are read from both of the forms that Python writes: $json_dumps',
    (each) => {
      const text = String.fromCodePoint(...each.codepoints)
      expect(decodeEvent(`{"kind":"k","data":{"s":${each.pydantic}}}`).data).toEqual({ s: text })
      expect(decodeObject(`{"s":${each.json_dumps}}`, 'spawn 1')).toEqual({ s: text })
      expect(decodeObject(encodeJson({ s: text }, 'context'), 'spawn 1')).toEqual({ s: text })
    },
  )
})

describe('values of Redis', () => {
  const values = vectors<{ outbox: string[]; spawns: string; trace: string }>('redis_values.json')

  test.each(values.outbox)('hold events that are read: %s', (text) => {
    expect(decodeEvent(JSON.parse(text).e)).toEqual({
      id: 'e1',
      kind: 'Go',
      createdTime: null,
      receivedTime: null,
      data: { ü: 1, q: 'a"b' },
    })
  })

  test('hold contexts of spawns and trace steps that are read', () => {
    expect(decodeObject(values.spawns, 'spawn 1').x).toEqual({ é: 1, n: null })
    expect(decodeObject(values.trace, 'trace step 3')).toEqual({
      event_kind: 'Go',
      event_data: {},
      from_path: null,
      to_path: 'É',
      actions: ['a.b'],
      context_out: { f: 1 },
      timestamp: 1_700_000_000,
      index: 3,
    })
  })
})
