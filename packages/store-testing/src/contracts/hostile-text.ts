import assert from 'node:assert/strict'
import {
  type CommitChanges,
  type Execution,
  type ExecutionStore,
  InvalidArgument,
  InvalidCursor,
  InvalidPrefix,
  newEvent,
  STATUSES,
  type SyncExecutionStore,
} from '@harel/store-base'
import * as fc from 'fast-check'
import { assertionOf, type CheckContext, type Contract, isSynchronous, type ModelOptions } from '../contract.js'
import { cleanUp, execution, loaded, outboxOf, rejection, spawnsOf, stateOf, stored, timersOf } from '../fixtures.js'
import { budgetOf } from '../model/budget.js'
import { fragment, hostileText } from './hostile-fragments.js'
import { transactionOf } from './transactions.js'

/** A text for each place that takes one. */
const texts = fc.record({
  id: hostileText,
  target: hostileText,
  child: hostileText,
  event: hostileText,
  path: hostileText,
  definition: hostileText,
  version: hostileText,
  value: hostileText,
})
type Texts = typeof texts extends fc.Arbitrary<infer T> ? T : never

/** The rule for keys, written down a second time. */
const isKey = (key: string): boolean => key.isWellFormed() && !key.includes('\0') && Buffer.byteLength(key) <= 1024

const KEYS = ['id', 'target', 'child', 'event', 'path', 'definition'] as const

/** How a commit is made. */
type Commit = (execution: Execution, changes: CommitChanges) => Promise<number[]>

/** Writes one of everything with these texts in every way that there is, reads it in as many, and purges it. */
async function tryKeys(
  store: ExecutionStore,
  ns: string,
  given: Texts,
  commit: Commit = store.commit.bind(store),
): Promise<void> {
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
    const error = await commit(held, changes).then(
      () => assert.fail('a text that is no key, or that JSON cannot carry, is taken'),
      (refusal: unknown) => refusal as { code?: unknown },
    )
    assert(error.code === 'INVALID_ARGUMENT' || error.code === 'NOT_SERIALIZABLE', String(error))
    assert.equal(held.version, 0)
    assert.deepEqual(await store.idsWithPrefix(ns), [])
    return
  }
  const [seq] = await commit(held, changes)
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

/** Plays this with random texts until its time is over. */
async function withTexts<T>(given: fc.Arbitrary<T>, model: ModelOptions, play: (given: T) => Promise<void>) {
  const { seed, runs, deadline } = budgetOf(model)
  const property = fc.asyncProperty(given, play)
  for (let run = seed; run < seed + runs && performance.now() < deadline; run++) {
    await fc.assert(property, { seed: run, numRuns: 1, unbiased: true })
  }
}

/** Stores something that nobody may touch, and says how to see all that is stored, but for definitions, which stay. */
async function plantBystander(context: CheckContext): Promise<() => Promise<unknown>> {
  const { store, ns } = context
  await stored(store, ns, 'bystander', {}, { processedEventId: `${ns}bystander-ev`, trace: { n: 1 } })
  return async () => {
    const { rows = {}, ...state } = await stateOf(context, [], [`${ns}bystander-ev`])
    return { ...state, rows: Object.entries(rows).filter(([kind]) => !kind.includes('definition')) }
  }
}

/** Commits in a transaction of the caller's, whose work then throws this error, if there is one. */
function commitIn(context: CheckContext): (...commit: [...Parameters<Commit>, failure?: Error]) => Promise<number[]> {
  const { original } = context
  const end = <T>(result: T, failure: Error | undefined): T => {
    if (failure !== undefined) throw failure
    return result
  }
  if (!isSynchronous(original)) {
    const transaction = transactionOf(context)
    return (execution, changes, failure) =>
      transaction(async (inside) => end(await inside.commit(execution, changes), failure))
  }
  const { transaction } = original as unknown as { transaction<T>(work: (store: SyncExecutionStore) => T): T }
  return async (execution, changes, failure) =>
    transaction.call(original, (inside: SyncExecutionStore) =>
      end(inside.commit(execution, changes), failure),
    ) as number[]
}

/** The rule for prefixes, written down a second time. */
const isPrefix = (text: string): boolean => /^[A-Za-z_]\w{0,29}$/.test(text)

const prefixes = fc.oneof(
  hostileText,
  fragment.map((text) => `harel${text}`),
  fragment.map((text) => `${text}harel`),
)

/** Words that mean something elsewhere, and may be prefixes. Few, for on most backends each makes tables that stay. */
const TAKEN = ['__proto__', 'hasOwnProperty', 'executions']

export const hostileTextContract: Contract = {
  name: 'hostile-text',
  checks: [
    {
      title: 'any text is stored, asked for and removed to the letter, or refused, and harms nothing beside it',
      reports: ['B31', 'B100'],
      async run(context) {
        const { store, ns, model } = context
        const look = await plantBystander(context)
        const before = await look()
        const own = `${ns}own/`
        const polluted = Object.getOwnPropertyNames(Object.prototype).length
        await withTexts(texts, model, async (given) => {
          try {
            // Definitions stay, so those of earlier runs must not be what nobody has stored.
            await askFor(store, `${ns}absent/`, given)
            await tryKeys(store, own, given)
          } finally {
            await cleanUp(store, own)
          }
        })
        assert.deepEqual(await look(), before)
        assert.equal(Object.getOwnPropertyNames(Object.prototype).length, polluted)
      },
    },
    {
      title: 'any text in a transaction is stored to the letter when it ends, and leaves nothing when it fails',
      reports: ['B31', 'B100'],
      needs: ['transactions'],
      async run(context) {
        const { store, ns, model } = context
        const look = await plantBystander(context)
        const before = await look()
        const own = `${ns}own/`
        const commit = commitIn(context)
        await withTexts(texts, model, async (given) => {
          try {
            await tryKeys(store, own, given, async (held, changes) => {
              const failure = new Error('the work has failed')
              const error: unknown = await commit(held, changes, failure).catch((thrown: unknown) => thrown)
              assert.equal(held.version, 0)
              assert.deepEqual(await look(), before)
              if (error !== failure) throw error
              const { id } = held
              assert.equal(await store.isProcessed(id, changes.processedEventId ?? ''), false)
              assert.deepEqual(await store.readTrace(id), [])
              return commit(held, changes)
            })
          } finally {
            await cleanUp(store, own)
          }
        })
        assert.deepEqual(await look(), before)
      },
    },
    {
      title: 'a prefix of any text is refused with what is allowed, and nothing is created, or is like any other',
      reports: ['B31', 'B100'],
      needs: ['shared'],
      async run(context) {
        const { open, ns, model, probes } = context
        const look = await plantBystander(context)
        const before = await look()
        const tables = await probes.tables?.()
        await withTexts(prefixes, model, async (prefix) => {
          if (isPrefix(prefix)) return
          const { message } = await rejection(() => open({ prefix }), InvalidPrefix, JSON.stringify(prefix))
          assert.match(message, /letter.*30/s)
        })
        assert.deepEqual(await probes.tables?.(), tables)
        for (const prefix of TAKEN) {
          const other = await open({ prefix })
          assert.deepEqual(await other.idsWithPrefix(ns), [])
          for (const given of fc.sample(texts, { seed: budgetOf(model).seed, numRuns: 3 })) {
            await tryKeys(other, `${ns}own/`, given).finally(() => cleanUp(other, `${ns}own/`))
          }
          assert.deepEqual(await look(), before)
        }
      },
    },
  ],
}

/** Random texts that mean something to databases and to JavaScript, wherever a text is taken. */
export const assertHostileText = assertionOf(hostileTextContract)
