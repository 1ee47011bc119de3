import assert from 'node:assert/strict'
import {
  type CommitChanges,
  type Execution,
  type ExecutionStore,
  InvalidArgument,
  InvalidCursor,
  newEvent,
  STATUSES,
} from '@harel/store-base'
import * as fc from 'fast-check'
import { assertionOf, type Contract } from '../contract.js'
import { cleanUp, execution, loaded, outboxOf, rejection, spawnsOf, stateOf, stored, timersOf } from '../fixtures.js'
import { budgetOf } from '../model/budget.js'

/** What means something to one of the languages that stores speak, or to JavaScript. */
const FRAGMENTS = [
  "'",
  '"',
  '`',
  ';',
  '--',
  '/*',
  '\\',
  '%',
  '_',
  '*',
  '?',
  '[',
  ']',
  '{',
  '}',
  '(',
  ')',
  '<',
  '>',
  '=',
  '&',
  '#',
  '$',
  '@',
  ':',
  '::',
  '/',
  '..',
  '|',
  '!',
  '~',
  '^',
  '+',
  ',',
  '.',
  ' ',
  '\t',
  '\n',
  '\r',
  '\u0001',
  '\u007f',
  '\u2028',
  '\ufeff',
  '\uffff',
  '\u{10ffff}',
  'é',
  'e\u0301',
  'İ',
  'ß',
  '😀',
  '\0',
  '\ud800',
  '\udc00',
  'x'.repeat(400),
  '0',
  '-1',
  '1e5',
  'NaN',
  'null',
  'true',
  'undefined',
  '__proto__',
  'constructor',
  'toString',
  'hasOwnProperty',
  '$ne',
  '$where',
  '$ref',
  '$id',
  '_bsontype',
  "' OR '1'='1",
  "'; DROP TABLE harel_executions; --",
  ']] return redis.call("FLUSHALL") --',
  '#{process.exit()}',
  '{"$gt":""}',
  '%00',
  '%s',
  '{0}',
  'seq:',
  'trace:',
  'harel:',
  'seq',
  'outbox',
  'executions',
  'id',
]

const text = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.array(fc.constantFrom(...FRAGMENTS), { minLength: 1, maxLength: 4 }).map((all) => all.join('')),
  },
  { weight: 2, arbitrary: fc.string({ unit: 'binary', minLength: 1, maxLength: 20 }) },
  { weight: 1, arbitrary: fc.string({ unit: 'grapheme', minLength: 1, maxLength: 20 }) },
)

/** A text for each place that takes one. */
const texts = fc.record({
  id: text,
  target: text,
  child: text,
  event: text,
  path: text,
  definition: text,
  version: text,
  value: text,
})
type Texts = typeof texts extends fc.Arbitrary<infer T> ? T : never

/** The rule for keys, written down a second time. */
const isKey = (key: string): boolean => key.isWellFormed() && !key.includes('\0') && Buffer.byteLength(key) <= 1024

const KEYS = ['id', 'target', 'child', 'event', 'path', 'definition'] as const

/** Writes one of everything with these texts in every way that there is, reads it in as many, and purges it. */
async function tryKeys(store: ExecutionStore, ns: string, given: Texts): Promise<void> {
  const keys = Object.fromEntries(KEYS.map((name) => [name, ns + given[name]])) as Record<(typeof KEYS)[number], string>
  const { value } = given
  const held: Execution = execution('', keys.id, {
    definitionId: keys.definition,
    definitionFqn: value,
    rootPath: keys.path,
    parentId: keys.target,
    childId: keys.child,
    activePath: value,
    outcome: value,
    error: value,
    context: { [value]: value },
    history: { [value]: value },
    deferred: [newEvent({ id: keys.event, kind: value, data: { [value]: value } })],
    children: {
      [keys.child]: { rootPath: keys.path, finished: false, outcome: value, result: {}, submachine: false, key: value },
    },
    invokeSeq: { [value]: 1 },
  })
  const event = newEvent({ id: keys.event, kind: given.value, data: { [given.value]: given.value } })
  const changes: CommitChanges = {
    emits: [{ targetId: keys.target, event }],
    processedEventId: keys.event,
    timers: [{ action: 'schedule', path: keys.path, fireAt: 1 }],
    spawns: [{ childId: keys.child, rootPath: keys.path, context: { value: given.value } }],
    trace: { value: given.value },
  }
  if (!KEYS.every((name) => isKey(keys[name])) || !given.value.isWellFormed()) {
    const error = await store.commit(held, changes).then(
      () => assert.fail('a text that is no key, or that JSON cannot carry, is taken'),
      (refusal: unknown) => refusal as { code?: unknown },
    )
    assert(error.code === 'INVALID_ARGUMENT' || error.code === 'NOT_SERIALIZABLE', String(error))
    assert.equal(held.version, 0)
    assert.deepEqual(await store.idsWithPrefix(ns), [])
    return
  }
  const [seq] = await store.commit(held, changes)
  assert.deepEqual(await loaded(store, keys.id), held)
  assert.deepEqual(await store.loadForEvent(keys.id, keys.event), { execution: held, processed: true })
  const [entry] = (await outboxOf(store, ns)).filter((one) => one.seq === seq)
  assert.deepEqual(entry && [entry.targetId, entry.event.id, entry.event.kind], [keys.target, keys.event, event.kind])
  assert.deepEqual(entry?.event.data, event.data)
  const [spawn] = (await spawnsOf(store, ns)).filter(({ parentId }) => parentId === keys.id)
  assert.deepEqual(spawn && [spawn.childId, spawn.rootPath], [keys.child, keys.path])
  const [timer] = (await timersOf(store, ns)).filter(({ executionId }) => executionId === keys.id)
  assert.equal(timer?.path, keys.path)
  if (timer !== undefined) {
    const behind = await store.dueTimers(timer.fireAt, { after: timer })
    assert(!behind.some(({ executionId }) => executionId === keys.id))
  }
  await store.appendTrace(keys.id, { of: { [given.value]: given.value } })
  assert.deepEqual(await store.readTrace(keys.id), [
    { value: given.value, index: 0 },
    { of: { [given.value]: given.value }, index: 1 },
  ])
  assert.deepEqual(await store.idsWithPrefix(keys.id), [keys.id])
  const { items } = await store.listExecutions({ definitionId: keys.definition })
  assert.deepEqual(
    items.map(({ id, parentId, activePath, outcome }) => [id, parentId, activePath, outcome]),
    [[keys.id, keys.target, value, value]],
  )
  await tryPages(store, keys.id, keys.definition)
  await store.save(held)
  assert.deepEqual(await loaded(store, keys.id), held)
  await store.deleteTimer(keys.id, keys.path, 1)
  await store.ackOutbox(seq ?? -1)
  await store.ackSpawn(spawn?.seq ?? -1)
  assert.deepEqual([...(await timersOf(store, ns)), ...(await outboxOf(store, ns)), ...(await spawnsOf(store, ns))], [])
  assert.equal(await store.purge(keys.id, 2), true)
  assert.equal(await store.load(keys.id), undefined)
  if (isKey(given.version)) await tryDefinition(store, keys.definition, given)
}

/** A cursor that holds the id goes on behind it. */
async function tryPages(store: ExecutionStore, id: string, definitionId: string): Promise<void> {
  const next = `${id}~`
  if (!isKey(next)) return
  await store.commit(execution('', next, { definitionId }))
  const first = await store.listExecutions({ definitionId, limit: 1 })
  const second = await store.listExecutions({ definitionId, limit: 1, cursor: first.nextCursor })
  assert.deepEqual([...first.items, ...second.items].map((item) => item.id).toSorted(), [id, next])
  assert.deepEqual((await store.idsWithPrefix(id)).toSorted(), [id, next])
  assert.equal(await store.purge(next, 1), true)
}

/** Whoever has published it first, for nothing removes a definition. */
async function tryDefinition(store: ExecutionStore, id: string, { version, value }: Texts): Promise<void> {
  const published = await store.publishDefinition({ id, version, definition: { [value]: value } })
  assert.deepEqual([published.id, published.version], [id, version])
  assert.deepEqual(await store.loadDefinition(id, version), published)
}

const nothing = { execution: undefined, processed: false }

/** Asks with these texts for what nobody has stored. */
async function askFor(store: ExecutionStore, ns: string, { id, version, value }: Texts): Promise<void> {
  const taken = async (what: string, ask: () => Promise<unknown>, ...keys: string[]) => {
    if (keys.every(isKey)) return ask()
    await rejection(ask, InvalidArgument, what)
    return undefined
  }
  assert.equal(await taken('load', () => store.load(ns + id), ns + id), undefined)
  const asked = await taken('loadForEvent', () => store.loadForEvent(ns + id, value), ns + id, value)
  assert.deepEqual(asked ?? nothing, nothing)
  assert.deepEqual((await taken('readTrace', () => store.readTrace(ns + id), ns + id)) ?? [], [])
  assert.deepEqual((await taken('idsWithPrefix', () => store.idsWithPrefix(ns + id), ns + id)) ?? [], [])
  const after = { executionId: ns + id, path: value, fireAt: Number.MAX_VALUE }
  assert.deepEqual((await taken('dueTimers', () => store.dueTimers(1, { after }), ns + id, value)) ?? [], [])
  assert.notEqual(await taken('isProcessed', () => store.isProcessed(ns + id, value), ns + id, value), true)
  assert.equal(await taken('loadDefinition', () => store.loadDefinition(ns + id, version), ns + id, version), undefined)
  await taken('deleteTimer', () => store.deleteTimer(ns + id, value, 1), ns + id, value)
  assert.notEqual(await taken('purge', () => store.purge(ns + id, 1), ns + id), true)
  if (value !== '') await rejection(() => store.listExecutions({ cursor: value }), InvalidCursor, 'the cursor')
  if (!STATUSES.some((status) => status === value)) {
    await rejection(() => store.listExecutions({ status: value as never }), InvalidArgument, 'the status')
  }
}

export const hostileTextContract: Contract = {
  name: 'hostile-text',
  checks: [
    {
      title: 'any text is stored, asked for and removed to the letter, or refused, and harms nothing beside it',
      reports: ['B31', 'B100'],
      async run(context) {
        const { store, ns, model } = context
        await stored(store, ns, 'bystander', {}, { processedEventId: `${ns}bystander-ev`, trace: { n: 1 } })
        const own = `${ns}own/`
        const look = async () => {
          const { rows = {}, ...state } = await stateOf(context, [], [`${ns}bystander-ev`])
          // Nothing removes definitions.
          return { ...state, rows: Object.entries(rows).filter(([kind]) => !kind.includes('definition')) }
        }
        const before = await look()
        const polluted = Object.getOwnPropertyNames(Object.prototype).length
        const { seed, runs, deadline } = budgetOf(model)
        const property = fc.asyncProperty(texts, async (given) => {
          try {
            // Definitions stay, so those of earlier runs must not be what nobody has stored.
            await askFor(store, `${ns}absent/`, given)
            await tryKeys(store, own, given)
          } finally {
            await cleanUp(store, own)
          }
        })
        for (let run = seed; run < seed + runs && performance.now() < deadline; run++) {
          await fc.assert(property, { seed: run, numRuns: 1, unbiased: true })
        }
        assert.deepEqual(await look(), before)
        assert.equal(Object.getOwnPropertyNames(Object.prototype).length, polluted)
      },
    },
  ],
}

/** Random texts that mean something to databases and to JavaScript, wherever a text is taken. */
export const assertHostileText = assertionOf(hostileTextContract)
