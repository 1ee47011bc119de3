import { describe, expect, test } from 'vitest'
import { decodeEvent, decodeExecution, decodeObject } from '../src/decode.js'
import { prepareCommit } from '../src/prepare.js'
import type { CommitChanges } from '../src/protocol.js'
import { type Execution, newEvent, newExecution } from '../src/records.js'

const event = newEvent({ id: 'e', kind: 'k' })

/** The object, and how often each of its members has been read. */
function counted<T extends object>(object: T): { object: T; reads: Record<string, number> } {
  const reads: Record<string, number> = {}
  const get = (target: T, key: string | symbol) => {
    reads[String(key)] = (reads[String(key)] ?? 0) + 1
    return Reflect.get(target, key)
  }
  return { object: new Proxy(object, { get }), reads }
}

describe('a commit', () => {
  test('reads each member of an execution and of an event once, so that columns are what the text beside them says', () => {
    const execution = counted(newExecution({ definitionId: 'd' }))
    const emitted = counted(event)
    const changes = counted<CommitChanges>({ emits: [{ targetId: null, event: emitted.object }] })
    prepareCommit(execution.object, changes.object)
    for (const { object, reads } of [execution, emitted, changes]) {
      expect(reads).toEqual(Object.fromEntries(Object.keys(object).map((key) => [key, 1])))
    }
  })

  test.each<[string, Execution, CommitChanges | undefined, string]>([
    ['no execution', null as never, undefined, 'execution'],
    ['no changes', newExecution({ definitionId: 'd' }), null as never, 'changes'],
    ['a misspelt change', newExecution({ definitionId: 'd' }), { emit: [] } as never, 'changes'],
    ['a version that is none', newExecution({ definitionId: 'd', version: -1 }), undefined, 'execution.version'],
    ['a frozen execution', Object.freeze(newExecution({ definitionId: 'd' })), undefined, 'execution'],
    [
      'a sealed version',
      Object.defineProperty(newExecution({ definitionId: 'd' }), 'version', { writable: false }),
      undefined,
      'execution',
    ],
    [
      'a version that is only got',
      Object.create({
        get version() {
          return 0
        },
      }),
      undefined,
      'execution',
    ],
    ['a hole among the emits', newExecution({ definitionId: 'd' }), { emits: Array(1) }, 'changes.emits[0]'],
    ['a hole among the spawns', newExecution({ definitionId: 'd' }), { spawns: Array(1) }, 'changes.spawns[0]'],
    ['emits that are none', newExecution({ definitionId: 'd' }), { emits: 'all' as never }, 'changes.emits'],
    [
      'an undefined target',
      newExecution({ definitionId: 'd' }),
      { emits: [{ event } as never] },
      'changes.emits[0].targetId',
    ],
    [
      'an event that is none',
      newExecution({ definitionId: 'd' }),
      { emits: [{ targetId: null } as never] },
      'changes.emits[0].event',
    ],
    ['an empty event id', newExecution({ definitionId: 'd' }), { processedEventId: '' }, 'changes.processedEventId'],
    [
      'a null event id',
      newExecution({ definitionId: 'd' }),
      { processedEventId: null as never },
      'changes.processedEventId',
    ],
    [
      'a child without an id',
      newExecution({ definitionId: 'd' }),
      { spawns: [{ childId: '', rootPath: '', context: {} }] },
      'changes.spawns[0].childId',
    ],
    [
      'a context that is none',
      newExecution({ definitionId: 'd' }),
      { spawns: [{ childId: 'c', rootPath: '', context: [] as never }] },
      'changes.spawns[0].context',
    ],
    ['a step that is none', newExecution({ definitionId: 'd' }), { trace: [] as never }, 'changes.trace'],
  ])('is refused with the place of the mistake: %s', (_case, execution, changes, argument) => {
    const refused = expect.objectContaining({ code: 'INVALID_ARGUMENT', argument })
    expect(() => prepareCommit(execution, changes)).toThrow(refused)
  })

  test('is taken for any execution whose version can be set, a class instance too', () => {
    class Order {
      #version = 0
      constructor() {
        Object.assign(this, newExecution({ definitionId: 'd', id: 'x' }))
        Object.defineProperty(this, 'version', {
          get: () => this.#version,
          set: (version) => {
            this.#version = version
          },
        })
      }
    }
    const order = new Order() as unknown as Execution
    expect(prepareCommit(order)).toMatchObject({ id: 'x', expected: 0, version: 1 })
    expect(order.version).toBe(0)
  })

  test('is plain data, apart from the objects that it was made of', () => {
    const execution = newExecution({
      definitionId: 'd',
      id: 'x',
      version: 4,
      status: 'DONE',
      outcome: 'ok',
      activePath: 'A',
      parentId: 'p',
      finishedAt: 5,
    })
    const changes: CommitChanges = {
      emits: [{ targetId: null, event }],
      processedEventId: 'e0',
      timers: [{ action: 'cancel', path: 't' }],
      spawns: [{ childId: 'c', rootPath: '', context: { a: 1 } }],
      trace: { step: 1 },
      step: { cause: 'event', fromStatus: 'RUNNING', toStatus: 'DONE' },
    }
    expect(prepareCommit(execution, { trace: { index: 7, step: 1 } }).trace).toBe('{"step":1}')
    const { token, data, emits, spawns, trace, ...rest } = prepareCommit(execution, changes)
    expect(rest).toEqual({
      id: 'x',
      expected: 4,
      version: 5,
      definitionId: 'd',
      status: 'DONE',
      outcome: 'ok',
      activePath: 'A',
      parentId: 'p',
      finishedAt: 5,
      processedEventId: 'e0',
      timers: [{ action: 'cancel', path: 't' }],
    })
    expect(decodeExecution(data, 'x')).toEqual({ ...execution, version: 5 })
    expect(JSON.parse(data).commit_token).toBe(token)
    expect(emits).toEqual([{ targetId: null, eventId: 'e', event: expect.any(String) }])
    expect(decodeEvent(emits[0]?.event ?? '')).toEqual(event)
    expect(spawns).toEqual([{ childId: 'c', rootPath: '', context: expect.any(String) }])
    expect(decodeObject(spawns[0]?.context ?? '', 'spawn')).toEqual({ a: 1 })
    expect(decodeObject(trace ?? '', 'step')).toEqual({ step: 1 })
    const commit = prepareCommit(execution, changes)
    expect(structuredClone(commit)).toEqual(commit)
  })

  test('has a token of its own, also when it is the same commit again (weakness 8)', () => {
    const execution = newExecution({ definitionId: 'd' })
    expect(prepareCommit(execution).token).not.toBe(prepareCommit(execution).token)
  })
})
