import assert from 'node:assert/strict'
import { InvalidPrefix } from '@harel/store-base'
import { cases } from '../cases.js'
import { assertionOf, type CheckContext, type Contract } from '../contract.js'
import { everything, execution, loaded, outboxOf, rejection, spawnsOf, stateOf, stored } from '../fixtures.js'

/** The same database under another prefix. */
const elsewhere = async ({ open }: CheckContext, prefix: string) => {
  const store = await open({ prefix })
  assert(store !== undefined)
  return store
}

/** A prefix that begins like any that the suite is run under is nothing special; these are as long as may be. */
const LONGEST = ['a', 'b'].map((last) => `harel_longest_prefix_possible${last}`)

const VALID = /^[A-Za-z_][A-Za-z0-9_]{0,29}$/

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
