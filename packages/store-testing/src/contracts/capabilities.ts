import assert from 'node:assert/strict'
import type { StoreCapabilities } from '@harel/store-base'
import { assertionOf, type Contract } from '../contract.js'
import { byBytes, execution, listed, loaded, stored } from '../fixtures.js'

const isCount = (value: unknown): boolean => typeof value === 'number' && value >= 1

/** What each capability may be. */
const KINDS: { [K in keyof StoreCapabilities]: (value: unknown) => boolean } = {
  durable: (value) => typeof value === 'boolean',
  shared: (value) => typeof value === 'boolean',
  identity: (value) => typeof value === 'boolean',
  ordered: (value) => typeof value === 'boolean',
  paging: (value) => value === 'key' || value === 'offset',
  maxCommitWrites: isCount,
  maxExecutionBytes: isCount,
  dedupe: (value) => value === 'forever' || isCount(value),
  atomicPurge: (value) => typeof value === 'boolean',
  transactions: (value) => typeof value === 'boolean',
}

export const capabilityContract: Contract = {
  name: 'capabilities',
  checks: [
    {
      title: 'the store has the capabilities that were announced, and no others',
      async run({ store, capabilities }) {
        assert.deepEqual({ ...store.capabilities }, { ...capabilities })
        for (const [name, isOfKind] of Object.entries(KINDS)) {
          const value = store.capabilities[name as keyof StoreCapabilities]
          assert(isOfKind(value), `${name} is ${String(value)}`)
        }
      },
    },
    {
      title: 'load returns the very object that was committed if and only if identity is promised',
      async run({ store, ns, capabilities }) {
        const held = execution(ns)
        await store.commit(held)
        assert.equal((await store.load(held.id)) === held, capabilities.identity)
        assert.equal((await store.loadForEvent(held.id, 'ev')).execution === held, capabilities.identity)
        const next = await loaded(store, held.id)
        await store.commit(next)
        assert.equal((await store.load(held.id)) === next, capabilities.identity)
      },
    },
    {
      title: 'what changes in an object that is shared with the store shows in it',
      needs: ['identity'],
      async run({ store, ns }) {
        const held = execution(ns)
        await store.commit(held)
        held.context = { changed: true }
        assert.deepEqual((await store.load(held.id))?.context, { changed: true })
        await store.commit(held)
        assert.equal(held.version, 2)
      },
    },
    {
      title: 'two handles see one database if and only if it is promised to be shared',
      needs: ['open'],
      async run({ store, open, ns, capabilities }) {
        const other = await open()
        const { id } = await stored(store, ns)
        assert.equal((await other.load(id)) !== undefined, capabilities.shared)
      },
    },
    {
      title: 'a durable store can be shared: there is no other way to look at what it kept',
      needs: ['durable'],
      async run({ capabilities }) {
        assert(capabilities.shared)
      },
    },
    {
      title: 'an ordered store lists by the bytes of the id',
      needs: ['ordered'],
      async run({ store, ns }) {
        const names = ['\u{1f600}', '\uffff', 'b', 'a', 'B']
        for (const name of names) await stored(store, ns, name)
        assert.deepEqual(await listed(store, ns, { definitionId: `${ns}d` }), names.sort(byBytes))
      },
    },
    {
      title: 'the store has `transaction` if and only if it is promised',
      async run({ original, capabilities }) {
        const { transaction } = original as { transaction?: unknown }
        assert.equal(typeof transaction === 'function', capabilities.transactions)
      },
    },
  ],
}

/** That the manifest tells the truth, where no other contract proves it. */
export const assertCapabilities = assertionOf(capabilityContract)
