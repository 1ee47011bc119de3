import { createRequire } from 'node:module'
import { inspect } from 'node:util'
import * as esm from '@harel/store-base'
import { describe, expect, test } from 'vitest'
import * as source from '../src/errors.js'

type Errors = Pick<typeof source, (typeof NAMES)[number] | 'StoreError'>

const NAMES = [
  'StoreConflict',
  'ExecutionAlreadyExists',
  'InvalidArgument',
  'InvalidPrefix',
  'InvalidCursor',
  'NotSerializable',
  'CommitTooLarge',
  'CorruptRecord',
  'SchemaMissing',
  'StoreClosed',
  'StoreUnavailable',
  'OutcomeUnknown',
] as const

const commonJs: Errors = createRequire(import.meta.url)('@harel/store-base')

const oneOfEach = (errors: Errors) => [
  new errors.StoreConflict('x', 1, 2),
  new errors.ExecutionAlreadyExists('x'),
  new errors.InvalidArgument('limit', 0, 'an integer from 1 to 1000'),
  new errors.InvalidPrefix('1a'),
  new errors.InvalidCursor('is damaged'),
  new errors.NotSerializable('context.a', 'is NaN'),
  new errors.CommitTooLarge('writes', 101, 100),
  new errors.CorruptRecord('execution "x"', 'its text is not JSON'),
  new errors.SchemaMissing(['harel_outbox']),
  new errors.StoreClosed(),
  new errors.StoreUnavailable('the database failed'),
  new errors.OutcomeUnknown('the reply was lost'),
]

const copies: [string, Errors][] = [
  ['source', source],
  ['ESM', esm],
  ['CommonJS', commonJs],
]

test('the copies of the package are different ones', () => {
  expect(new Set(copies.map(([, errors]) => errors.StoreError)).size).toBe(3)
})

describe.each(copies)('errors of the %s copy', (_, errors) => {
  test('have codes that never change (B95)', () => {
    expect(oneOfEach(errors).map(({ code }) => code)).toEqual([
      'STORE_CONFLICT',
      'EXECUTION_ALREADY_EXISTS',
      'INVALID_ARGUMENT',
      'INVALID_PREFIX',
      'INVALID_CURSOR',
      'NOT_SERIALIZABLE',
      'COMMIT_TOO_LARGE',
      'CORRUPT_RECORD',
      'SCHEMA_MISSING',
      'STORE_CLOSED',
      'STORE_UNAVAILABLE',
      'OUTCOME_UNKNOWN',
    ])
  })

  test('are named as their classes, and are real errors with a stack', () => {
    expect(oneOfEach(errors).map(({ name }) => name)).toEqual([...NAMES])
    for (const error of oneOfEach(errors)) {
      expect(error).toBeInstanceOf(Error)
      expect(String(error.stack)).toContain(error.message)
      expect(String(error)).toBe(`${error.name}: ${error.message}`)
    }
  })

  test('are worth the same call again only when the database was not there', () => {
    const retryable = oneOfEach(errors).filter((error) => error.retryable)
    expect(retryable.map(({ name }) => name)).toEqual(['StoreUnavailable'])
    expect(new errors.StoreUnavailable('wrong password', undefined, { retryable: false }).retryable).toBe(false)
  })

  test.each(copies)('are recognised by the classes of the %s copy, each by its own alone (B95)', (_other, others) => {
    for (const error of oneOfEach(errors)) {
      expect(error instanceof others.StoreError).toBe(true)
      expect(NAMES.filter((name) => error instanceof others[name])).toEqual([error.name])
    }
  })

  test('are not to be confused with what only looks like them', () => {
    const impostor = Object.assign(new Error('no'), { code: 'STORE_CONFLICT' })
    for (const value of [impostor, { code: 'STORE_CONFLICT' }, null, undefined, 'STORE_CONFLICT', 5]) {
      expect(value instanceof errors.StoreError).toBe(false)
      expect(value instanceof errors.StoreConflict).toBe(false)
    }
  })

  test('carry what a program needs', () => {
    const [conflict, exists, invalid, , , path, size, corrupt, schema] = oneOfEach(errors)
    expect(conflict).toMatchObject({ executionId: 'x', expected: 1, found: 2 })
    expect(new errors.StoreConflict('x', 1, null)).toMatchObject({ found: null })
    expect(exists).toMatchObject({ executionId: 'x' })
    expect(invalid).toMatchObject({ argument: 'limit' })
    expect(path).toMatchObject({ path: 'context.a' })
    expect(size).toMatchObject({ size: 101, limit: 100 })
    expect(corrupt).toMatchObject({ record: 'execution "x"', reason: 'its text is not JSON' })
    expect(schema).toMatchObject({ missing: ['harel_outbox'] })
  })

  test('have the error of the driver as their cause, and no cause where there is none', () => {
    const cause = new Error('ECONNRESET')
    expect(new errors.StoreUnavailable('no answer', cause).cause).toBe(cause)
    expect(new errors.OutcomeUnknown('no answer', cause).cause).toBe(cause)
    expect(new errors.NotSerializable('a', 'has a getter that throws', cause).cause).toBe(cause)
    for (const error of oneOfEach(errors)) expect(error).not.toHaveProperty('cause')
  })

  test('say what was refused, what was given and what is allowed', () => {
    expect(oneOfEach(errors).map(({ message }) => message)).toEqual([
      'execution "x" was held at version 1, but version 2 is stored',
      'execution "x" exists already',
      'limit must be an integer from 1 to 1000; got 0',
      'prefix must be a letter or _, then letters, digits or _, at most 30 characters; got "1a"',
      'cursor is damaged; start again without one',
      'context.a is NaN',
      'the commit has 101 writes, at most 100 are allowed',
      'execution "x" cannot be read: its text is not JSON',
      'the database lacks harel_outbox; create them or open with createSchema: true',
      'the store is closed',
      'the database failed',
      'the reply was lost',
    ])
    expect(new errors.StoreConflict('x', 1, null).message).toContain('but no execution is stored')
  })

  test('show a bad value shortened, and nothing of what is inside an object', () => {
    const messageOf = (given: unknown) =>
      new errors.InvalidArgument('a', given, 'x').message.slice('a must be x; got '.length)
    const { proxy: revoked, revoke } = Proxy.revocable({}, {})
    revoke()
    expect(messageOf({ pin: 'CANARY' })).toBe('an object')
    expect(messageOf(new Map([['CANARY', 1]]))).toBe('an object of class Map')
    expect(messageOf({ constructor: { name: 'CANARY' } })).toBe('an object')
    expect(messageOf(revoked)).toBe('an object that cannot be read')
    expect(messageOf(['CANARY'])).toBe('an array of 1')
    expect(messageOf(() => 'CANARY')).toBe('a function')
    expect(messageOf(10n ** 5000n)).toBe('a bigint')
    expect(messageOf('x'.repeat(5000))).toBe(`"${'x'.repeat(60)}…" (5000 characters)`)
    expect(messageOf('a\u0000\ud800')).toBe('"a\\u0000\\ud800"')
    expect([null, undefined, true, Number.NaN, -0.5].map(messageOf)).toEqual([
      'null',
      'undefined',
      'true',
      'NaN',
      '-0.5',
    ])
    expect(new errors.StoreConflict('x'.repeat(1024), 1, 2).message.length).toBeLessThan(150)
  })

  test.each([
    'postgres://u:S3cr3t!pw@127.0.0.1:1/x',
    'redis://:S3cr3t!pw@127.0.0.1:1',
    `mongodb://u:${'S3cr3t!pw'.repeat(20)}@`,
    'http://u:S3cr3t!pw@127.0.0.1:1',
    'libsql://127.0.0.1:1?authToken=S3cr3t!pw',
    'postgres://127.0.0.1/x?user=u&password=S3cr3t!pw&ssl=1',
  ])('do not show the secret of a URL that was given by mistake: %s', (url) => {
    for (const error of [
      new errors.InvalidPrefix(url),
      new errors.InvalidArgument('prefix', url, 'x'),
      new errors.StoreConflict(url, 1, 2),
    ]) {
      expect(error.message).not.toContain('S3cr3t')
      expect(error.stack).not.toContain('S3cr3t')
    }
    expect(inspect(new errors.InvalidPrefix(url))).not.toContain('S3cr3t')
  })
})
