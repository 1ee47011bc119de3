import assert from 'node:assert/strict'
import type { CommitChanges, DefinitionRecord, Execution, ExecutionStore, ListQuery } from '@harel/store-base'
import type { Check } from './contract.js'
import { emit, everything, execution } from './fixtures.js'

// biome-ignore lint/suspicious/noExplicitAny: what a caller without types may pass
export type Wrong = any

const NOT_KEYS: readonly unknown[] = [
  undefined,
  null,
  '',
  0,
  7,
  true,
  {},
  ['a'],
  1n,
  Symbol('k'),
  'a\0b',
  '\ud800',
  'x'.repeat(1025),
]
const NOT_KEYS_OR_NULL = NOT_KEYS.filter((value) => value !== null)
const NOT_KEYS_OR_EMPTY = NOT_KEYS.filter((value) => value !== '')
const NOT_STRINGS: readonly unknown[] = [undefined, 0, {}, []]
const NOT_TIMES: readonly unknown[] = [
  Number.NaN,
  Number.POSITIVE_INFINITY,
  Number.NEGATIVE_INFINITY,
  '2026-01-01',
  null,
  undefined,
  new Date(0),
  1n,
]
const NOT_COUNTS: readonly unknown[] = [
  -1,
  1.5,
  Number.NaN,
  Number.POSITIVE_INFINITY,
  '1',
  null,
  undefined,
  2 ** 53,
  1n,
]
const NOT_OBJECTS: readonly unknown[] = [undefined, null, 'x', 1, [], () => 1]
const NOT_LIMITS: readonly unknown[] = [0, -1, 1.5, Number.NaN, 1e9, 1001, '10', '1; DROP TABLE x', null, {}]
const NOT_STATUSES: readonly unknown[] = [
  'nonsense',
  'running',
  '',
  null,
  1,
  { $ne: null },
  ['RUNNING', 'nonsense'],
  [['DONE']],
  [null],
]
const NOT_FLAGS: readonly unknown[] = [null, 0, 1, 'true', 'false', {}]
const NOT_ARRAYS: readonly unknown[] = [null, {}, 'x', 1, new Set([1])]

/** Read as an object, a Map is empty: it would mean the default. */
const NOT_PLAIN: readonly unknown[] = [...NOT_OBJECTS.slice(1), new Map([['limit', 1]]), new Set(['DONE']), new Date(0)]

/** An argument, the values that are none, and a call with one of them. Without values: the call is wrong as it is. */
export interface Case {
  argument: string
  values?: readonly unknown[]
  /** What the error must have as its cause. */
  cause?: unknown
  call(store: ExecutionStore, ns: string, value: Wrong): Promise<unknown>
}

const onExecution = (field: string, values: readonly unknown[]): Case => ({
  argument: `execution.${field}`,
  values,
  call: (store, ns, value) => store.commit({ ...execution(ns, 'x'), [field]: value } as Execution, everything(ns, 'x')),
})

const onChanges = (
  argument: string,
  values: readonly unknown[],
  changes: (ns: string, value: Wrong) => Wrong,
): Case => ({
  argument: `changes.${argument}`,
  values,
  call: (store, ns, value) =>
    store.commit(execution(ns, 'x'), { ...everything(ns, 'x'), ...changes(ns, value) } as CommitChanges),
})

const onRecord = (field: string, values: readonly unknown[]): Case => ({
  argument: `record.${field}`,
  values,
  call: (store, ns, value) =>
    store.publishDefinition({ id: `${ns}D`, version: '1', definition: {}, [field]: value } as DefinitionRecord),
})

const onQuery = (field: string, values: readonly unknown[]): Case => ({
  argument: `query.${field}`,
  values,
  call: (store, _ns, value) => store.listExecutions({ [field]: value } as ListQuery),
})

const onPage = (argument: string, values: readonly unknown[], page: (value: Wrong) => Wrong): Case[] =>
  (['pendingOutbox', 'pendingSpawns'] as const).map((method) => ({
    argument,
    values,
    call: (store, _ns, value) => store[method](page(value)),
  }))

const onTimer = (argument: string, values: readonly unknown[], page: (value: Wrong) => Wrong): Case => ({
  argument,
  values,
  call: (store, _ns, value) => store.dueTimers(1, page(value)),
})

export const timer = { executionId: 'e', path: 'P', fireAt: 1 }
export const event = { id: 'ev', kind: 'K', createdTime: null, receivedTime: null, data: {} }
export const child = { rootPath: '', finished: true, outcome: null, result: {}, submachine: false, key: '' }
const NOT_DATETIMES = ['yesterday', '2026-13-01T00:00:00', '2026-01-01T25:00:00', {}, true, undefined]

/** Calls that are wrong in one way, as the guarantee that they are refused. */
export interface WrongCalls extends Omit<Check, 'run'> {
  cases: readonly Case[]
}

export const wrongCalls: readonly WrongCalls[] = [
  {
    title: 'an id, an event id or a path that is none is refused by every method that takes one',
    reports: ['B01', 'B04', 'B07', 'B38'],
    cases: [
      { argument: 'id', values: NOT_KEYS, call: (store, _ns, id) => store.load(id) },
      { argument: 'id', values: NOT_KEYS, call: (store, _ns, id) => store.loadForEvent(id, 'ev') },
      { argument: 'eventId', values: NOT_KEYS, call: (store, _ns, eventId) => store.loadForEvent('e', eventId) },
      { argument: 'id', values: NOT_KEYS, call: (store, _ns, id) => store.isProcessed(id, 'ev') },
      { argument: 'eventId', values: NOT_KEYS, call: (store, _ns, eventId) => store.isProcessed('e', eventId) },
      { argument: 'id', values: NOT_KEYS, call: (store, _ns, id) => store.deleteTimer(id, 'P', 1) },
      { argument: 'path', values: NOT_KEYS, call: (store, _ns, path) => store.deleteTimer('e', path, 1) },
      { argument: 'id', values: NOT_KEYS, call: (store, _ns, id) => store.readTrace(id) },
      { argument: 'id', values: NOT_KEYS, call: (store, _ns, id) => store.appendTrace(id, {}) },
      { argument: 'prefix', values: NOT_KEYS_OR_EMPTY, call: (store, _ns, prefix) => store.idsWithPrefix(prefix) },
      { argument: 'id', values: NOT_KEYS, call: (store, _ns, id) => store.loadDefinition(id, '1') },
      { argument: 'version', values: NOT_KEYS, call: (store, _ns, version) => store.loadDefinition('D', version) },
      { argument: 'id', values: NOT_KEYS, call: (store, _ns, id) => store.purge(id, 1) },
    ],
  },
  {
    title: 'a time or a version that is none is refused',
    reports: ['B81'],
    cases: [
      { argument: 'now', values: NOT_TIMES, call: (store, _ns, now) => store.dueTimers(now) },
      { argument: 'fireAt', values: NOT_TIMES, call: (store, ns, at) => store.deleteTimer(`${ns}e`, 'P', at) },
      { argument: 'expectedVersion', values: NOT_COUNTS, call: (store, ns, version) => store.purge(`${ns}e`, version) },
    ],
  },
  {
    title: 'an execution with a wrong field is refused, and the field is named',
    reports: ['B15', 'B100'],
    cases: [
      { argument: 'execution', values: NOT_OBJECTS, call: (store, _ns, value) => store.commit(value) },
      { argument: 'execution', values: NOT_OBJECTS, call: (store, _ns, value) => store.save(value) },
      onExecution('id', NOT_KEYS),
      onExecution('definitionId', NOT_KEYS),
      onExecution('rootPath', NOT_KEYS_OR_EMPTY),
      onExecution('status', [undefined, null, '', 'running', 'OTHER', 0]),
      ...['definitionFqn', 'outcome', 'error', 'activePath'].map((field) => onExecution(field, NOT_STRINGS)),
      ...['parentId', 'childId'].map((field) => onExecution(field, NOT_KEYS_OR_NULL)),
      ...['history', 'context'].map((field) => onExecution(field, NOT_OBJECTS)),
      onExecution('processedEvents', NOT_COUNTS),
      onExecution('version', [...NOT_COUNTS, Number.MAX_SAFE_INTEGER]),
      onExecution('priority', [-1, 5, 1.5, '0', null]),
      ...['createdAt', 'updatedAt', 'finishedAt', 'expiresAt'].map((field) =>
        onExecution(
          field,
          NOT_TIMES.filter((value) => value !== null),
        ),
      ),
      onExecution('deferred', NOT_ARRAYS),
      onExecution('children', NOT_PLAIN),
      onExecution('invokeSeq', NOT_PLAIN),
    ],
  },
  {
    title: 'a wrong record within an execution is refused, and its place is named',
    cases: [
      ...[null, 'x', undefined].map((value) => ({
        ...onExecution('deferred', [[value]]),
        argument: 'execution.deferred[0]',
      })),
      // A hole would be stored as null, which nobody can read.
      { ...onExecution('deferred', [new Array(1)]), argument: 'execution.deferred[0]' },
      { ...onExecution('deferred', [[event, { ...event, id: '' }]]), argument: 'execution.deferred[1].id' },
      { ...onExecution('deferred', [[{ ...event, kind: null }]]), argument: 'execution.deferred[0].kind' },
      { ...onExecution('deferred', [[{ ...event, data: null }]]), argument: 'execution.deferred[0].data' },
      { ...onExecution('deferred', [[{ ...event, createdTime: 'x' }]]), argument: 'execution.deferred[0].createdTime' },
      { ...onExecution('children', [{ c: null }]), argument: 'execution.children["c"]' },
      { ...onExecution('children', [{ '': child }]), argument: 'execution.children[""]' },
      { ...onExecution('children', [{ c: { ...child, finished: 1 } }]), argument: 'execution.children["c"].finished' },
      {
        ...onExecution('children', [{ c: { ...child, rootPath: null } }]),
        argument: 'execution.children["c"].rootPath',
      },
      { ...onExecution('children', [{ c: { ...child, outcome: 1 } }]), argument: 'execution.children["c"].outcome' },
      { ...onExecution('children', [{ c: { ...child, result: [] } }]), argument: 'execution.children["c"].result' },
      {
        ...onExecution('children', [{ c: { ...child, submachine: '' } }]),
        argument: 'execution.children["c"].submachine',
      },
      { ...onExecution('children', [{ c: { ...child, key: null } }]), argument: 'execution.children["c"].key' },
      { ...onExecution('invokeSeq', [{ p: -1 }, { p: '1' }, { p: null }]), argument: 'execution.invokeSeq["p"]' },
    ],
  },
  {
    title: 'a wrong change is refused, and its place is named',
    reports: ['B81'],
    weaknesses: [54],
    cases: [
      {
        argument: 'changes',
        values: [...NOT_PLAIN, { emit: [] }, { processedEventID: 'x' }, JSON.parse('{"__proto__":{}}')],
        call: (store, ns, changes) => store.commit(execution(ns, 'x'), changes),
      },
      onChanges('processedEventId', NOT_KEYS.slice(1), (_ns, processedEventId) => ({ processedEventId })),
      onChanges('emits', NOT_ARRAYS, (_ns, emits) => ({ emits })),
      onChanges('emits[0]', [...NOT_OBJECTS], (_ns, value) => ({ emits: [value] })),
      onChanges('emits[0]', [new Array(1)], (_ns, emits) => ({ emits })),
      onChanges('emits[1].targetId', NOT_KEYS_OR_NULL, (ns, targetId) => ({
        emits: [emit(ns, 'x', 'fine'), { targetId, event }],
      })),
      onChanges('emits[0].event', NOT_OBJECTS, (_ns, value) => ({ emits: [{ targetId: null, event: value }] })),
      ...(
        [
          ['id', NOT_KEYS],
          ['kind', [null, ...NOT_STRINGS]],
          ['data', NOT_OBJECTS],
          ['createdTime', NOT_DATETIMES],
          ['receivedTime', NOT_DATETIMES],
        ] as const
      ).map(([field, values]) =>
        onChanges(`emits[0].event.${field}`, values, (_ns, value) => ({
          emits: [{ targetId: null, event: { ...event, [field]: value } }],
        })),
      ),
      onChanges('timers', NOT_ARRAYS, (_ns, timers) => ({ timers })),
      onChanges('timers[0]', NOT_OBJECTS, (_ns, op) => ({ timers: [op] })),
      onChanges('timers[0].action', [undefined, 'arm', null], (_ns, action) => ({
        timers: [{ action, path: 'P', fireAt: 1 }],
      })),
      onChanges('timers[0].path', NOT_KEYS, (_ns, path) => ({ timers: [{ action: 'cancel', path }] })),
      onChanges('timers[1].fireAt', NOT_TIMES, (_ns, fireAt) => ({
        timers: [
          { action: 'cancel', path: 'P' },
          { action: 'schedule', path: 'P', fireAt },
        ],
      })),
      onChanges('spawns', NOT_ARRAYS, (_ns, spawns) => ({ spawns })),
      onChanges('spawns[0]', NOT_OBJECTS, (_ns, spawn) => ({ spawns: [spawn] })),
      onChanges('spawns[0].childId', NOT_KEYS, (_ns, childId) => ({
        spawns: [{ childId, rootPath: '', context: {} }],
      })),
      onChanges('spawns[0].rootPath', NOT_KEYS_OR_EMPTY, (_ns, rootPath) => ({
        spawns: [{ childId: 'c', rootPath, context: {} }],
      })),
      onChanges('spawns[0].context', NOT_OBJECTS, (_ns, context) => ({
        spawns: [{ childId: 'c', rootPath: '', context }],
      })),
      onChanges('trace', NOT_OBJECTS.slice(1), (_ns, trace) => ({ trace })),
    ],
  },
  {
    title: 'a step or a definition that is none is refused',
    cases: [
      { argument: 'step', values: NOT_OBJECTS, call: (store, ns, step) => store.appendTrace(`${ns}x`, step) },
      {
        argument: 'record',
        values: [undefined, ...NOT_PLAIN, { id: 'a', version: '1', definition: {}, publishedat: 1 }],
        call: (store, _ns, record) => store.publishDefinition(record),
      },
      onRecord('id', NOT_KEYS),
      onRecord('version', NOT_KEYS),
      onRecord(
        'publishedAt',
        NOT_TIMES.filter((value) => value !== undefined),
      ),
    ],
  },
  {
    title: 'a filter that is misspelt, empty or of the wrong type is refused: it never finds everything',
    reports: ['B13', 'B90', 'B100'],
    cases: [
      {
        argument: 'query',
        values: [
          ...NOT_PLAIN,
          { tenat: 'acme' },
          { Status: 'DONE' },
          { id: { $gt: '' } },
          { "x') = 1 OR ('1": 1 },
          { sort: 'createdAt; DROP TABLE t' },
          JSON.parse('{"__proto__":{"polluted":1}}'),
        ],
        call: (store, _ns, query) => store.listExecutions(query),
      },
      onQuery('status', [undefined, ...NOT_STATUSES]),
      onQuery('definitionId', NOT_KEYS),
      onQuery('rootsOnly', [undefined, ...NOT_FLAGS]),
    ],
  },
  {
    title: 'a limit that is none is refused by everything that has pages',
    reports: ['B90', 'B91'],
    weaknesses: [41],
    cases: [
      onQuery('limit', NOT_LIMITS),
      ...onPage('page.limit', NOT_LIMITS, (limit) => ({ limit })),
      onTimer('page.limit', NOT_LIMITS, (limit) => ({ limit })),
    ],
  },
  {
    title: 'a place to go on from that is none is refused, and so is a page with other members',
    cases: [
      ...onPage('page.after', [-1, 1.5, Number.NaN, '1', null, {}], (after) => ({ after })),
      ...onPage('page.onUnreadable', [null, true, 'x', {}], (onUnreadable) => ({ onUnreadable })),
      ...onPage('page', [...NOT_PLAIN, { Limit: 1 }, { cursor: 'x' }], (page) => page),
      onTimer('page', [...NOT_PLAIN, { Limit: 1 }, { cursor: 'x' }], (page) => page),
      onTimer('page.after', [null, 1, 'x', []], (after) => ({ after })),
      onTimer('page.after.executionId', NOT_KEYS, (executionId) => ({ after: { ...timer, executionId } })),
      onTimer('page.after.path', NOT_KEYS, (path) => ({ after: { ...timer, path } })),
      onTimer('page.after.fireAt', NOT_TIMES, (fireAt) => ({ after: { ...timer, fireAt } })),
    ],
  },
  {
    title: 'a seq that is none is refused, alone and among others, and then nothing is acknowledged',
    cases: (['ackOutbox', 'ackSpawn'] as const).flatMap((method): Case[] => [
      { argument: 'seqs', values: [...NOT_COUNTS, {}, 'x'], call: (store, _ns, seq) => store[method](seq) },
      {
        argument: 'seqs[1]',
        values: NOT_COUNTS,
        call: async (store, ns, seq) => {
          const queue = method === 'ackOutbox' ? await store.pendingOutbox() : await store.pendingSpawns()
          assert(queue.length > 0, ns)
          return store[method]([queue.at(-1)?.seq ?? 0, seq])
        },
      },
      { argument: 'seqs[0]', values: [new Array(1)], call: (store, _ns, seqs) => store[method](seqs) },
    ]),
  },
]
