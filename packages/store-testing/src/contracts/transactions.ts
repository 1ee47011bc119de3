import assert from 'node:assert/strict'
import { type ExecutionStore, StoreConflict, StoreError } from '@harel/store-base'
import { assertionOf, type CheckContext, type Contract } from '../contract.js'
import { everything, execution, loaded, outboxOf, stateOf, stored } from '../fixtures.js'

/** Runs work in a transaction of the caller's. What the work throws comes out of it, and nothing stays. */
type Transaction = <T>(work: (store: ExecutionStore, handle: unknown) => Promise<T>) => Promise<T>

/** How a transaction of an asynchronous store is begun. */
export const transactionOf = ({ original }: CheckContext): Transaction => {
  const { transaction } = original as unknown as { transaction: Transaction }
  return transaction.bind(original)
}

export const transactionContract: Contract = {
  name: 'transactions',
  checks: [
    {
      title: 'everything that was committed in a transaction is stored when it ends, and its result is returned',
      needs: ['transactions', 'asynchronous'],
      async run(context) {
        const { store, ns } = context
        const [a, b] = [execution(ns, 'a'), execution(ns, 'b')]
        const result = await transactionOf(context)(async (inside) => {
          const seqs = await inside.commit(a, everything(ns, 'a'))
          await inside.save(b)
          await inside.commit(b, { processedEventId: `${ns}ev` })
          assert.deepEqual([a.version, b.version], [1, 2])
          assert.equal((await loaded(inside, b.id)).version, 2)
          return seqs
        })
        assert.deepEqual(
          (await outboxOf(store, ns)).map(({ seq }) => seq),
          result,
        )
        assert.equal((await loaded(store, a.id)).version, 1)
        assert.equal(await store.isProcessed(b.id, `${ns}ev`), true)
      },
    },
    {
      title: 'what the work throws comes out of the transaction, nothing is stored, and versions are as before',
      needs: ['transactions', 'asynchronous'],
      async run(context) {
        const { store, ns } = context
        const held = await stored(store, ns)
        const created = execution(ns, 'new')
        const marks = [`${ns}e-ev`, `${ns}new-ev`]
        const before = await stateOf(context, [created.id], marks)
        const thrown = new Error('the work has failed')
        const failing = transactionOf(context)(async (inside) => {
          await inside.commit(held, everything(ns, 'e'))
          await inside.commit(held)
          await inside.commit(created, everything(ns, 'new'))
          await inside.appendTrace(held.id, { n: 1 })
          await inside.purge(created.id, 1)
          throw thrown
        })
        assert.equal(await failing.catch((error: unknown) => error), thrown)
        assert.deepEqual([held.version, created.version], [1, 0])
        assert.deepEqual(await stateOf(context, [created.id], marks), before)
        await store.commit(held)
        assert.equal(held.version, 2)
      },
    },
    {
      title: 'a conflict in a transaction that is let out undoes it',
      needs: ['transactions', 'asynchronous'],
      async run(context) {
        const { store, ns } = context
        const held = await stored(store, ns)
        const stale = { ...structuredClone(held), version: 0 }
        const failing = transactionOf(context)(async (inside) => {
          await inside.commit(held, everything(ns, 'e'))
          await inside.commit(stale)
        })
        await assert.rejects(failing, StoreConflict)
        assert.deepEqual([held.version, stale.version], [1, 0])
        assert.deepEqual(await outboxOf(store, ns), [])
      },
    },
    {
      title: 'the store of a transaction cannot be used after its end',
      needs: ['transactions', 'asynchronous'],
      async run(context) {
        const { ns } = context
        const held = execution(ns)
        const kept = await transactionOf(context)(async (inside) => inside)
        await assert.rejects(kept.commit(held), StoreError)
        assert.equal(held.version, 0)
        assert.equal(await context.store.load(held.id), undefined)
      },
    },
    {
      title: 'what a transaction has written is not seen before it ends',
      needs: ['transactions', 'asynchronous', 'shared'],
      async run(context) {
        const { open, ns } = context
        const other = await open()
        const held = execution(ns)
        await transactionOf(context)(async (inside) => {
          await inside.commit(held, everything(ns, 'e'))
          assert.equal(await other.load(held.id), undefined)
          assert.equal((await loaded(inside, held.id)).version, 1)
        })
        assert.equal((await other.load(held.id))?.version, 1)
      },
    },
    {
      title: 'transactions one after the other all work, after a failed one too',
      needs: ['transactions', 'asynchronous'],
      async run(context) {
        const { store, ns } = context
        for (let n = 0; n < 4; n++) {
          const work = transactionOf(context)(async (inside) => {
            await inside.commit(execution(ns, `e${n}`))
            if (n % 2 === 0) throw new Error('undone')
          })
          await work.catch(() => {})
        }
        assert.deepEqual(await store.idsWithPrefix(ns), [`${ns}e1`, `${ns}e3`])
      },
    },
  ],
}

/** Transactions of the caller's, of asynchronous stores. */
export const assertTransactions = assertionOf(transactionContract)
