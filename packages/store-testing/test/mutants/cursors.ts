import { InvalidCursor, type ListQuery } from '@harel/store-base'
import type { Mutant } from './mutant.js'

/** Lists otherwise than it was asked to. */
const listing =
  (
    list: (given: ListQuery, next: (query: ListQuery) => Promise<{ nextCursor: string | null }>) => Promise<unknown>,
  ): Mutant['store'] =>
  (store) => ({
    listExecutions: ((given: ListQuery = {}) =>
      list(given, (query) => store.listExecutions(query))) as typeof store.listExecutions,
  })

const startAgain = async (given: ListQuery, list: (query: ListQuery) => Promise<unknown>): Promise<unknown> => {
  try {
    return await list(given)
  } catch (error) {
    if (error instanceof InvalidCursor) return list({ ...given, cursor: null })
    throw error
  }
}

export const cursorMutants: readonly Mutant[] = [
  { name: 'starts again when it does not know a cursor', store: listing(startAgain) },
  {
    name: 'takes an empty cursor for a bad one',
    store: listing((given, list) => {
      if (given.cursor === '') throw new InvalidCursor('is empty')
      return list(given)
    }),
  },
  {
    name: 'forgets a cursor once it was used',
    store() {
      return {}
    },
    open: (database) => (options) => {
      const store = database.open(options)
      const used = new Set<string>()
      const list = store.listExecutions.bind(store)
      store.listExecutions = async (given = {}) => {
        if (typeof given.cursor === 'string' && used.has(given.cursor)) throw new InvalidCursor('was used before')
        if (typeof given.cursor === 'string' && given.cursor !== '') used.add(given.cursor)
        return list(given)
      }
      return store
    },
  },
  {
    name: 'keeps its cursors in the memory of a handle',
    open: (database) => (options) => {
      const store = database.open(options)
      const own = new Set<unknown>([null, undefined, ''])
      const list = store.listExecutions.bind(store)
      store.listExecutions = async (given = {}) => {
        if (!own.has(given.cursor)) throw new InvalidCursor('was not made here')
        const page = await list(given)
        own.add(page.nextCursor)
        return page
      }
      return store
    },
  },
  {
    name: 'ties a cursor to the limit and the order of the statuses',
    open: (database) => (options) => {
      const store = database.open(options)
      const made = new Map<unknown, string>()
      const list = store.listExecutions.bind(store)
      store.listExecutions = async (given = {}) => {
        const filter = JSON.stringify({ ...given, cursor: null })
        if ((made.get(given.cursor) ?? filter) !== filter) throw new InvalidCursor('was made under other filters')
        const page = await list(given)
        if (page.nextCursor !== null) made.set(page.nextCursor, filter)
        return page
      }
      return store
    },
  },
]
