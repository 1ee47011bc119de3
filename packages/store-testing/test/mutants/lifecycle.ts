import { type ExecutionStore, StoreUnavailable } from '@harel/store-base'
import { MemoryDatabase } from '../memory-database.js'
import type { Mutant } from './mutant.js'

export const lifecycleMutants: readonly Mutant[] = [
  {
    name: 'hangs what it was given on its errors',
    store: (store) => ({
      async commit(execution, changes) {
        try {
          return await store.commit(execution, changes)
        } catch (error) {
          if (error instanceof Error) error.cause ??= execution
          throw error
        }
      },
    }),
  },
  {
    name: 'fails to close twice',
    store(store) {
      let closed = false
      const close = async () => {
        if (closed) throw new StoreUnavailable('closed already')
        closed = true
        await store.close()
      }
      return { close, [Symbol.asyncDispose]: close }
    },
  },
  {
    name: 'works on after it was closed',
    store: () => ({ close: async () => {} }),
  },
  {
    name: 'does not close when its scope is left',
    store: () => ({ [Symbol.asyncDispose]: async () => {} }),
  },
  {
    name: 'raises the version although it is closed',
    store: (store) => ({
      async commit(execution, changes) {
        const pending = store.commit({ ...execution }, changes)
        pending.catch(() => {})
        execution.version++
        return pending.catch((error: unknown) => {
          if (!(error instanceof Error && error.name === 'StoreClosed')) execution.version--
          throw error
        })
      },
    }),
  },
  {
    name: 'loses its capabilities with its connection',
    open: (database) => (options) => {
      const store = database.open(options)
      let closed = false
      const close = store.close.bind(store)
      store.close = async () => {
        closed = true
        await close()
      }
      const capabilities = store.capabilities
      Object.defineProperty(store, 'capabilities', {
        get: () => {
          if (closed) throw new StoreUnavailable('not connected')
          return capabilities
        },
      })
      return store
    },
  },
  {
    name: 'breaks off what is under way when it is closed',
    store(store) {
      let closed = false
      return {
        async commit(execution, changes) {
          const seqs = await store.commit(execution, changes)
          if (closed) throw new Error('connection lost')
          return seqs
        },
        async close() {
          closed = true
          await store.close()
        },
      }
    },
  },
  {
    name: 'closes all handles with one',
    open: (database) => {
      const all: ExecutionStore[] = []
      return (options) => {
        const store = database.open(options)
        const close = store.close.bind(store)
        all.push(
          Object.assign(store, {
            close: async () => void (await Promise.all([close(), ...all.splice(0).map((other) => other.close())])),
          }),
        )
        return store
      }
    },
  },
  {
    name: 'keeps its rows in the memory of a handle',
    open: () => (options) => new MemoryDatabase().open(options),
  },
  {
    name: 'begins to count seqs anew when it is opened',
    backend: ({ tables }) => {
      tables.lastEvent = 0
      tables.lastSpawn = 0
    },
  },
  {
    name: 'has one handle at work at a time',
    open: (database) => {
      let last = 0
      return (options) => {
        const own = ++last
        const store = database.open(options)
        const save = store.save.bind(store)
        store.save = (execution) =>
          own === last ? save(execution) : Promise.reject(new StoreUnavailable('database is locked'))
        return store
      }
    },
  },
  {
    name: 'shows where it is connected, password included',
    open: (database) => (options) => Object.assign(database.open(options), { url: 'redis://user:S3cr3t@127.0.0.1:1' }),
  },
  {
    name: 'cannot do the same thing twice at once',
    store(store) {
      const seen = new Set<string>()
      const once = (key: string) => {
        if (seen.has(key)) throw new StoreUnavailable('done already')
        seen.add(key)
      }
      return {
        async ackOutbox(seqs) {
          if (Array.isArray(seqs) && seqs.length === 0) return
          once(`outbox ${JSON.stringify(seqs)}`)
          await store.ackOutbox(seqs)
        },
        async deleteTimer(id, path, fireAt) {
          const armed = (await store.dueTimers(fireAt)).some((timer) => timer.executionId === id && timer.path === path)
          await store.deleteTimer(id, path, fireAt)
          if (!armed) throw new StoreUnavailable('no such timer')
        },
      }
    },
  },
]
