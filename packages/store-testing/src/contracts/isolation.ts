import assert from 'node:assert/strict'
import { type CommitChanges, type ExecutionStore, InvalidPrefix, newExecution } from '@harel/store-base'
import { cases } from '../cases.js'
import { assertionOf, type CheckContext, type Contract } from '../contract.js'
import {
  cleanUp,
  event,
  everything,
  execution,
  FAR,
  loaded,
  outboxOf,
  rejection,
  spawnsOf,
  stateOf,
  stored,
} from '../fixtures.js'

/** The same database under another prefix. */
const elsewhere = async ({ open }: CheckContext, prefix: string) => {
  const store = await open({ prefix })
  assert(store !== undefined)
  return store
}

/** A prefix that begins like any that the suite is run under is nothing special; these are as long as may be. */
const LONGEST = ['a', 'b'].map((last) => `harel_longest_prefix_possible${last}`)

const VALID = /^[A-Za-z_][A-Za-z0-9_]{0,29}$/

/** What a prefix is made longer by. */
const REST = '2'

/** Two stores of which the prefix of one begins with that of the other. */
async function nested(context: CheckContext): Promise<{ shorter: ExecutionStore; longer: ExecutionStore }> {
  const prefix = context.prefix.slice(0, 30 - REST.length)
  return { shorter: await elsewhere(context, prefix), longer: await elsewhere(context, prefix + REST) }
}

/** What a backend could put between the parts of a key. */
const SEPARATORS = ['', ':', '_', '/', '.', '-', '|', '#', '"', '\\']

/** What a backend could call a kind of row. */
const KINDS = ['executions', 'exe', 'processed', 'timers', 'trace', 'definition_versions']

/**
 * Where a store under the shorter prefix would look for what is called this, if it took what follows the prefix in a key
 * for a name: under its own prefix or under the longer one, and whatever the keys are made of.
 */
const spellings = (text: string): string[] =>
  ['', REST].flatMap((rest) => [
    ...SEPARATORS.map((separator) => `${rest}${separator}${text}`),
    ...KINDS.flatMap((kind) => [`${rest}:${kind}:${text}`, `${rest}_${kind}:${text}`]),
  ])

/** That a store neither finds nor removes anything of the execution `e` and the definition `D` under these names. */
async function assertUnreachable(store: ExecutionStore, ns: string, names: (text: string) => string[]): Promise<void> {
  const [id, eventId, definition] = [`${ns}e`, `${ns}e-ev`, `${ns}D`]
  const nothing = { execution: undefined, processed: false }
  const calls: [expected: unknown, names: string[], call: (name: string) => Promise<unknown>][] = [
    [undefined, names(id), (name) => store.load(name)],
    [nothing, names(id), (name) => store.loadForEvent(name, eventId)],
    [nothing, names(eventId), (name) => store.loadForEvent(id, name)],
    [false, names(id), (name) => store.isProcessed(name, eventId)],
    [false, names(eventId), (name) => store.isProcessed(id, name)],
    [[], names(id), (name) => store.readTrace(name)],
    [[], names(ns), (name) => store.idsWithPrefix(name)],
    [undefined, names(definition), (name) => store.loadDefinition(name, '1')],
    [undefined, names('1'), (name) => store.loadDefinition(definition, name)],
    [undefined, names(id), (name) => store.deleteTimer(name, 'P', 1)],
    [undefined, names('P'), (name) => store.deleteTimer(id, name, 1)],
    [false, names(id), (name) => store.purge(name, 1)],
  ]
  await Promise.all(
    calls.flatMap(([expected, texts, call]) =>
      texts.map(async (text) => assert.deepEqual(await call(text), expected, `${call} finds ${JSON.stringify(text)}`)),
    ),
  )
  const listings = names(`${ns}d`).map((definitionId) => store.listExecutions({ definitionId }))
  assert.deepEqual(
    (await Promise.all(listings)).flatMap(({ items }) => items),
    [],
  )
}

/** One of everything that a commit can write, for an execution whose id does not stand under `ns`. */
const everythingOf = (ns: string, id: string): CommitChanges => ({
  ...everything(ns, 'e'),
  emits: [{ targetId: id, event: event(ns, `${id}-tick`) }],
})

/** All that is stored under these ids. */
async function rowsOf(store: ExecutionStore, ns: string, ids: readonly string[]) {
  const isOf = (id: string) => ids.includes(id)
  const executions = ids.map(async (id) => ({
    ...structuredClone(await store.loadForEvent(id, `${ns}e-ev`)),
    trace: await store.readTrace(id),
  }))
  return {
    executions: await Promise.all(executions),
    outbox: (await store.pendingOutbox()).filter(({ targetId }) => isOf(targetId ?? '')),
    spawns: (await store.pendingSpawns()).filter(({ parentId }) => isOf(parentId)),
    timers: (await store.dueTimers(FAR)).filter(({ executionId }) => isOf(executionId)),
  }
}

export const isolationContract: Contract = {
  name: 'prefixes',
  checks: [
    {
      title: 'what is stored under one prefix is not seen under another',
      needs: ['shared'],
      async run(context) {
        const { store, ns } = context
        const other = await elsewhere(context, 'harel_other')
        await stored(store, ns, 'e', {}, everything(ns, 'e'))
        await store.publishDefinition({ id: `${ns}D`, version: '1', definition: {} })
        const { executions, ...queues } = await stateOf({ store: other, ns, probes: {} }, [`${ns}e`], [`${ns}e-ev`])
        assert.deepEqual(executions, { [`${ns}e`]: { execution: undefined, trace: [], marks: [] } })
        assert.deepEqual(queues, { outbox: [], spawns: [], timers: [], rows: undefined })
        assert.equal(await other.loadDefinition(`${ns}D`, '1'), undefined)
        assert.deepEqual((await other.listExecutions({ definitionId: `${ns}d` })).items, [])
      },
    },
    {
      title: 'what is done under one prefix does nothing to the same ids and seqs under another',
      reports: ['B35'],
      needs: ['shared'],
      async run(context) {
        const { store, ns } = context
        const other = await elsewhere(context, 'harel_other')
        const held = await stored(store, ns, 'e', {}, everything(ns, 'e'))
        await store.publishDefinition({ id: `${ns}D`, version: '1', definition: { first: true } })
        const before = await stateOf(context, [held.id], [`${ns}e-ev`, `${ns}x`])
        const seqs = (await outboxOf(store, ns)).map(({ seq }) => seq)
        const spawnSeqs = (await spawnsOf(store, ns)).map(({ seq }) => seq)

        const twin = execution(ns, 'e', { context: { other: true } })
        await other.commit(twin, { ...everything(ns, 'e'), processedEventId: `${ns}x` })
        await other.appendTrace(held.id, { n: 1 })
        await other.ackOutbox(seqs)
        await other.ackSpawn(spawnSeqs)
        await other.deleteTimer(held.id, 'P', 1)
        await other.publishDefinition({ id: `${ns}D`, version: '1', definition: { first: false } })
        assert.equal(await other.purge(held.id, 1), true)

        assert.deepEqual(await stateOf(context, [held.id], [`${ns}e-ev`, `${ns}x`]), before)
        assert.deepEqual((await store.loadDefinition(`${ns}D`, '1'))?.definition, { first: true })
      },
    },
    {
      title: 'two prefixes of the greatest length that differ in their last character are two',
      reports: ['B39'],
      needs: ['shared'],
      async run(context) {
        const { ns } = context
        const [a, b] = await Promise.all(LONGEST.map((prefix) => elsewhere(context, prefix)))
        assert(a !== undefined && b !== undefined)
        const [seq] = await a.commit(execution(ns, 'e', { context: { a: 1 } }), everything(ns, 'e'))
        await b.commit(execution(ns, 'e', { context: { b: 1 } }))
        assert.deepEqual((await loaded(a, `${ns}e`)).context, { a: 1 })
        assert.equal((await outboxOf(b, ns)).length, 0)
        assert.equal((await outboxOf(a, ns))[0]?.seq, seq)
        for (const store of [a, b]) assert.equal(await store.purge(`${ns}e`, 1), true)
      },
    },
    {
      title: 'a name that spells the rest of a longer prefix reaches nothing that is stored there',
      reports: ['B35'],
      needs: ['shared'],
      async run(context) {
        const { ns } = context
        const { shorter, longer } = await nested(context)
        await stored(longer, ns, 'e', {}, everything(ns, 'e'))
        await longer.publishDefinition({ id: `${ns}D`, version: '1', definition: { longer: true } })
        const before = await rowsOf(longer, ns, [`${ns}e`])
        await assertUnreachable(shorter, ns, spellings)
        assert.deepEqual(await rowsOf(longer, ns, [`${ns}e`]), before)

        const own = { id: `${REST}${ns}D`, version: '1', definition: { longer: false } }
        assert.deepEqual((await shorter.publishDefinition(own)).definition, { longer: false })
        assert.deepEqual((await longer.loadDefinition(`${ns}D`, '1'))?.definition, { longer: true })
        await cleanUp(longer, ns)
      },
    },
    {
      title: 'ids that spell the rest of a longer prefix are ids like any other beside those that they spell',
      reports: ['B35'],
      needs: ['shared'],
      async run(context) {
        const { ns } = context
        const { shorter, longer } = await nested(context)
        const id = `${ns}e`
        const ids = spellings(id)
        const commit = (store: ExecutionStore, name: string) =>
          store.commit(newExecution({ id: name, definitionId: `${ns}d` }), everythingOf(ns, name))
        await Promise.all(ids.map((name) => commit(shorter, name)))
        const before = await rowsOf(shorter, ns, ids)
        await assertUnreachable(longer, ns, (text) => [text])
        await commit(longer, id)
        await longer.appendTrace(id, { event: 'Tock' })
        assert.deepEqual(await rowsOf(shorter, ns, ids), before)

        const held = await rowsOf(longer, ns, [id])
        const sizes = Object.entries(held).map(([kind, rows]) => [kind, rows.length])
        assert.deepEqual(Object.fromEntries(sizes), { executions: 1, outbox: 1, spawns: 1, timers: 1 })
        assert.deepEqual(
          await Promise.all(ids.map((name) => shorter.purge(name, 1))),
          ids.map(() => true),
        )
        assert.deepEqual(await rowsOf(longer, ns, [id]), held)
        assert.equal(await longer.purge(id, 1), true)
      },
    },
    {
      title: 'a prefix that is no identifier is refused before anything is created',
      reports: ['B35', 'B39', 'B40', 'B45', 'B100'],
      needs: ['shared'],
      async run({ open }) {
        const long = cases.prefixes.lengths.filter((length) => length > 30).map((length) => 'p'.repeat(length))
        for (const prefix of [...cases.prefixes.quote_or_reject, ...long, 'p'.repeat(31), 'ab\n']) {
          if (VALID.test(prefix) && !prefix.endsWith('\n')) continue
          await rejection(async () => open({ prefix }), InvalidPrefix, JSON.stringify(prefix))
        }
      },
    },
    {
      title: 'a prefix that is a word of a query language is like any other, each time it is opened',
      reports: ['B40', 'B41'],
      needs: ['shared'],
      async run(context) {
        const { ns } = context
        for (const prefix of cases.prefixes.quote_or_reject.filter((text) => VALID.test(text))) {
          const held = execution(ns, 'e', { context: { prefix } })
          for (let version = 1; version <= 3; version++) {
            const store = await elsewhere(context, prefix)
            await store.commit(held, everything(ns, 'e'))
            assert.deepEqual(await loaded(store, held.id), held)
            if (version === 3) assert.equal(await store.purge(held.id, version), true)
            await store.close()
          }
        }
      },
    },
  ],
}

/** That a prefix is a world of its own. */
export const assertNames = assertionOf(isolationContract)
