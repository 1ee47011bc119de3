import { type ExecutionStore, InvalidArgument, StoreUnavailable } from '@harel/store-base'
import { Tables, type Transaction } from '../memory-database.js'
import { type Mutant, override } from './mutant.js'

/** Transactions of its own. */
const transaction =
  (make: (honest: Transaction, store: ExecutionStore) => Transaction): Mutant['store'] =>
  (store) =>
    store.transaction === undefined ? {} : { transaction: make(store.transaction, store) }

export const transactionMutants: readonly Mutant[] = [
  {
    name: 'keeps what a failed transaction has written',
    store: transaction((_, store) => (work) => work(store, new Tables())),
  },
  {
    name: 'leaves versions raised when a transaction has failed',
    store: transaction(
      (honest) => (work) =>
        honest((inside, tables) => {
          const commit: ExecutionStore['commit'] = async (execution, changes) => {
            const own = { ...execution }
            const seqs = await inside.commit(own, changes)
            execution.version = own.version
            return seqs
          }
          return work(override(inside, { commit }), tables)
        }),
    ),
  },
  {
    name: 'wraps what the work of a transaction throws',
    store: transaction(
      (honest) => (work) =>
        honest(work).catch((cause: unknown) =>
          Promise.reject(new StoreUnavailable('the transaction has failed', cause)),
        ),
    ),
  },
  {
    name: 'does not return what the work of a transaction returns',
    store: transaction((honest) => async (work) => {
      await honest(work)
      return [] as never
    }),
  },
  {
    name: 'works on in a transaction that has ended',
    store: transaction((honest, store) => (work) => {
      let ended = false
      return honest((inside, tables) => {
        const either = new Proxy(inside, {
          get(_target, key) {
            const target = ended ? store : inside
            const member: unknown = Reflect.get(target, key, target)
            return typeof member === 'function' ? member.bind(target) : member
          },
        })
        return work(either, tables)
      }).finally(() => {
        ended = true
      })
    }),
  },
  {
    name: 'rolls every transaction back',
    store: transaction((honest) => async (work) => {
      let result: unknown
      await honest(async (inside, tables) => {
        result = await work(inside, tables)
        throw new StoreUnavailable('never mind')
      }).catch((error: unknown) => {
        if (!(error instanceof StoreUnavailable)) throw error
      })
      return result as never
    }),
  },
  {
    name: 'has one transaction in its life',
    store: (store) => {
      let begun = false
      return (
        transaction((honest) => async (work) => {
          if (begun) throw new StoreUnavailable('a transaction has begun already')
          begun = true
          return honest(work)
        })?.(store) ?? {}
      )
    },
  },
  {
    name: 'doubles the quotes in what a transaction has written',
    store: transaction(
      (honest) => (work) =>
        honest(async (inside, tables) => {
          const result = await work(inside, tables)
          for (const row of tables.executions.values()) row.data = row.data.replaceAll("'", "''")
          return result
        }),
    ),
  },
  {
    name: 'takes in a transaction what it must refuse, and stores nothing',
    store: transaction(
      (honest) => (work) =>
        honest((inside, tables) => {
          const commit: ExecutionStore['commit'] = async (execution, changes) => {
            try {
              return await inside.commit(execution, changes)
            } catch (error) {
              if (error instanceof InvalidArgument) return []
              throw error
            }
          }
          return work(override(inside, { commit }), tables)
        }),
    ),
  },
  {
    name: 'keeps a step of a failed transaction on an execution with a percent sign in its id',
    store: transaction((honest, store) => async (work) => {
      const ids: string[] = []
      try {
        return await honest((inside, tables) => {
          const commit: ExecutionStore['commit'] = (execution, changes) => {
            ids.push(execution.id)
            return inside.commit(execution, changes)
          }
          return work(override(inside, { commit }), tables)
        })
      } catch (error) {
        for (const id of ids) if (id.includes('%')) await store.appendTrace(id, {}).catch(() => {})
        throw error
      }
    }),
  },
]
