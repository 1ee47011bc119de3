import { describe, expect, test } from 'vitest'
import { decodeExecution, decodeJson } from '../src/decode.js'
import { encodeExecution, encodeJson } from '../src/encode.js'
import { CorruptRecord, NotSerializable } from '../src/errors.js'
import { newExecution } from '../src/records.js'
import { vectors } from './vectors.js'

describe('nesting', () => {
  interface NestingCase {
    context_nesting: number
    read: { ok?: string }
  }
  const cases = vectors<NestingCase[]>('nesting.json')
  const nested = (levels: number): { [key: string]: never } =>
    JSON.parse(`${'{"a":'.repeat(levels - 1)}{}${'}'.repeat(levels - 1)}`)

  test.each(cases)('is read where Python reads it: $context_nesting levels', ({ context_nesting, read }) => {
    const text = `{"id":"x","definition_id":"d","context":${JSON.stringify(nested(context_nesting))}}`
    if (read.ok !== undefined) expect(decodeExecution(text, 'x').id).toBe(read.ok)
    else expect(() => decodeExecution(text, 'x')).toThrow(CorruptRecord)
  })

  test.each(cases)(
    'is written only where it can be read back: $context_nesting levels',
    ({ context_nesting, read }) => {
      const execution = newExecution({ definitionId: 'd', id: 'x', context: nested(context_nesting) })
      if (read.ok !== undefined)
        expect(decodeExecution(encodeExecution(execution, 1, 't'), 'x')).toEqual({ ...execution, version: 1 })
      else expect(() => encodeExecution(execution, 1, 't')).toThrow(NotSerializable)
    },
  )

  test('of a spawn fits into the execution that will be made of it (weakness 58)', () => {
    expect(encodeJson(nested(199), 'context')).toHaveLength(199 * 6 - 4)
    expect(() => encodeJson(nested(200), 'context')).toThrow(NotSerializable)
  })

  test('counts the containers around the data of a deferred event', () => {
    const deferred = (levels: number) => [
      { id: 'e', kind: 'k', createdTime: null, receivedTime: null, data: nested(levels) },
    ]
    const execution = newExecution({ definitionId: 'd', id: 'x', deferred: deferred(197) })
    expect(decodeExecution(encodeExecution(execution, 1, 't'), 'x').deferred).toEqual(execution.deferred)
    execution.deferred = deferred(198)
    expect(() => encodeExecution(execution, 1, 't')).toThrow(NotSerializable)
  })

  test('that would overflow the stack is no more than a corrupt record', () => {
    const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`
    expect(() => decodeExecution(`{"definition_id":"d","context":{"a":${deep}}}`, 'x')).toThrow(CorruptRecord)
    expect(Array.isArray(decodeJson(deep, 'trace step 1'))).toBe(true)
    const warnings: string[] = []
    decodeJson(deep.replace('[]', '[1e400]'), 'trace step 1', { onWarning: (message) => warnings.push(message) })
    expect(warnings).toHaveLength(1)
  })
})
