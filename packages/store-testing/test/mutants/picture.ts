import type { Execution, Status } from '@harel/store-base'
import type { Mutant } from './mutant.js'

/** Hands out the same object each time that a record reads the same. */
function sharing<T extends object>(records: readonly T[], cache: Map<string, T>): T[] {
  return records.map((record) => {
    const key = JSON.stringify(record)
    const known = cache.get(key) ?? record
    cache.set(key, known)
    return known
  })
}

export const pictureMutants: readonly Mutant[] = [
  {
    name: 'hands out the object that it keeps',
    store(store) {
      const kept = new Map<string, Execution>()
      const keep = (found: Execution | undefined) => {
        if (found === undefined) return undefined
        const known = kept.get(`${found.id}@${found.version}`) ?? found
        kept.set(`${found.id}@${found.version}`, known)
        return known
      }
      return {
        load: async (id) => keep(await store.load(id)),
        async loadForEvent(id, eventId) {
          const { execution, processed } = await store.loadForEvent(id, eventId)
          return { execution: keep(execution), processed }
        },
      }
    },
  },
  {
    name: 'hands out the entries of queues that it keeps',
    store(store) {
      const events = new Map()
      return { pendingOutbox: async (page) => sharing(await store.pendingOutbox(page), events) }
    },
  },
  {
    name: 'keeps the object that it was given',
    store(store) {
      const kept = new Map<string, Execution>()
      return {
        async commit(execution, changes) {
          const seqs = await store.commit(execution, changes)
          kept.set(execution.id, execution)
          return seqs
        },
        async load(id) {
          const found = await store.load(id)
          const own = kept.get(id)
          return found !== undefined && own?.version === found.version ? own : found
        },
      }
    },
  },
  {
    name: 'asks an execution for its status once more, for the listing',
    store(store) {
      const columns = new Map<string, Status>()
      return {
        async commit(execution, changes) {
          const seqs = await store.commit(execution, changes)
          columns.set(execution.id, execution.status)
          return seqs
        },
        async listExecutions(query) {
          const { items, nextCursor } = await store.listExecutions(query)
          return { items: items.map((item) => ({ ...item, status: columns.get(item.id) ?? item.status })), nextCursor }
        },
      }
    },
  },
  {
    name: 'uses up its arguments',
    store: (store) => ({
      async commit(execution, changes) {
        const seqs = await store.commit(execution, changes)
        if (changes?.emits !== undefined && !Object.isFrozen(changes.emits)) (changes.emits as unknown[]).length = 0
        return seqs
      },
    }),
  },
  {
    name: 'notes something in the changes that it is given',
    store: (store) => ({
      async commit(execution, changes) {
        const own: object = changes?.spawns?.[0] ?? {}
        Object.assign(own, { note: 1 })
        return store.commit(execution, changes)
      },
    }),
  },
  {
    name: 'finds out too late that a version cannot be raised',
    store: (store) => ({
      async commit(execution, changes) {
        const own = { ...execution }
        const seqs = await store.commit(own, changes)
        execution.version = own.version
        return seqs
      },
    }),
  },
  {
    name: 'commits an object that is being committed as something new',
    store(store) {
      const busy = new Set<Execution>()
      return {
        async commit(execution, changes) {
          if (busy.has(execution)) return []
          busy.add(execution)
          return store.commit(execution, changes).finally(() => busy.delete(execution))
        },
      }
    },
  },
]
