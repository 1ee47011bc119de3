import { STATUSES } from '@harel/store-base'
import type { MemoryBackend } from '../memory-database.js'
import { like, type Mutant, replace } from './mutant.js'

/** Changes the query, or what becomes of it. */
const query =
  (change: (query: Parameters<MemoryBackend['listExecutions']>[0]) => object) => (backend: MemoryBackend) => {
    replace(backend, 'listExecutions', (list) => (given) => list({ ...given, ...change(given) }))
  }

const summaries = (change: (summary: object) => object) => (backend: MemoryBackend) => {
  replace(backend, 'listExecutions', (list) => (given) => {
    const { rows, next } = list(given)
    return { rows: rows.map((row) => ({ ...row, ...change(row) })), next }
  })
}

export const listingMutants: readonly Mutant[] = [
  { name: 'ignores the definition', backend: query(() => ({ definitionId: undefined })) },
  { name: 'ignores the status', backend: query(() => ({ statuses: undefined })) },
  {
    name: 'looks for the first status only',
    backend: query(({ statuses }) => ({ statuses: statuses?.slice(0, 1) })),
  },
  {
    name: 'takes no status for any',
    backend: query(({ statuses }) => ({ statuses: statuses?.length === 0 ? undefined : statuses })),
  },
  {
    name: 'lists only what has a status',
    backend: query(({ statuses }) => ({ statuses: statuses ?? STATUSES })),
  },
  { name: 'ignores rootsOnly', backend: query(() => ({ rootsOnly: false })) },
  { name: 'lists roots only', backend: query(() => ({ rootsOnly: true })) },
  {
    name: 'lists the finished by default',
    backend: query(({ statuses }) => ({ statuses: statuses ?? ['DONE'] })),
  },
  {
    name: 'takes a definition for a pattern',
    backend(backend) {
      replace(backend, 'listExecutions', (list) => (given) => {
        const { definitionId = '%' } = given
        const same = [...backend.tables.executions.values()].find(({ summary }) =>
          like(definitionId).test(summary.definitionId),
        )
        return list({
          ...given,
          definitionId: given.definitionId === undefined ? undefined : (same?.summary.definitionId ?? definitionId),
        })
      })
    },
  },
  {
    name: 'builds its query by joining texts',
    backend: query(({ definitionId }) => ({ definitionId: definitionId?.split("'")[0] })),
  },
  { name: 'does not list the outcome', backend: summaries(() => ({ outcome: null })) },
  {
    name: 'lists the context',
    store: (store) => ({
      async listExecutions(given) {
        const { items, nextCursor } = await store.listExecutions(given)
        return { items: items.map((item) => ({ ...item, context: {}, history: {} })), nextCursor }
      },
    }),
  },
  {
    name: 'lists 0 as the time of what is not finished',
    backend: summaries((row) => ({ finishedAt: (row as { finishedAt: number | null }).finishedAt ?? 0 })),
  },
  {
    name: 'lists what was stored first',
    backend(backend) {
      replace(backend, 'writeExecution', (write) => (commit) => {
        const first = backend.tables.executions.get(commit.id)?.summary
        write(commit)
        const stored = backend.tables.executions.get(commit.id)
        if (first !== undefined && stored !== undefined) stored.summary = { ...first, version: commit.version }
      })
    },
  },
  {
    name: 'lists in the order of creation',
    backend(backend) {
      replace(backend, 'listExecutions', (list) => (given) => {
        const all = list({ ...given, position: null, limit: Number.POSITIVE_INFINITY }).rows
        const rows = [...backend.tables.executions.keys()].flatMap((id) => all.filter((row) => row.id === id))
        const start = given.position === null ? 0 : rows.findIndex(({ id }) => id === given.position) + 1
        const part = rows.slice(start, start + given.limit)
        return { rows: part, next: start + given.limit < rows.length ? (part.at(-1)?.id ?? null) : null }
      })
      backend.idsWithPrefix = (prefix) => [...backend.tables.executions.keys()].filter((id) => id.startsWith(prefix))
    },
  },
  {
    name: 'lists in the order of UTF-16 units',
    backend(backend) {
      replace(backend, 'listExecutions', (list) => (given) => {
        const { rows, next } = list(given)
        return { rows: rows.sort((a, b) => (a.id < b.id ? -1 : 1)), next }
      })
      replace(backend, 'idsWithPrefix', (find) => (prefix) => find(prefix).sort())
    },
  },
  {
    name: 'lists what was purged',
    backend(backend) {
      const gone: MemoryBackend['tables']['executions'] = new Map()
      replace(backend, 'purge', (purge) => (id, version) => {
        const stored = backend.tables.executions.get(id)
        const purged = purge(id, version)
        if (purged && stored !== undefined) gone.set(id, stored)
        return purged
      })
      replace(backend, 'listExecutions', (list) => (given) => {
        const { executions } = backend.tables
        for (const [id, entry] of gone) executions.set(id, entry)
        const page = list(given)
        for (const id of gone.keys()) executions.delete(id)
        return page
      })
    },
  },
  { name: 'fills a page with one item too many', backend: query(({ limit }) => ({ limit: limit + 1 })) },
  {
    name: 'fills a page with at most thirty items and then ends',
    backend(backend) {
      replace(backend, 'listExecutions', (list) => (given) => {
        const page = list({ ...given, limit: Math.min(given.limit, 30) })
        return given.limit > 30 ? { ...page, next: null } : page
      })
    },
  },
  {
    name: 'has one page more than there are items',
    backend(backend) {
      replace(backend, 'listExecutions', (list) => (given) => {
        const { rows, next } = list(given)
        return { rows, next: next ?? rows.at(-1)?.id ?? null }
      })
    },
  },
  {
    name: 'skips an item between two pages',
    backend(backend) {
      replace(backend, 'listExecutions', (list) => (given) => {
        const { rows, next } = list(given)
        const skipped = next === null ? undefined : list({ ...given, position: next, limit: 1 }).rows[0]
        return { rows, next: skipped?.id ?? next }
      })
    },
  },
  {
    name: 'repeats an item on the next page',
    backend(backend) {
      replace(backend, 'listExecutions', (list) => (given) => {
        const page = list(given)
        return page.next === null || page.rows.length < 2
          ? page
          : { rows: page.rows, next: page.rows.at(-2)?.id ?? null }
      })
    },
  },
  {
    name: 'says that it goes on behind keys, and counts',
    backend(backend) {
      replace(backend, 'listExecutions', (list) => (given) => {
        const { rows } = list({ ...given, position: null, limit: Number.POSITIVE_INFINITY })
        const start = Number(given.position ?? 0)
        const next = start + given.limit
        return { rows: rows.slice(start, next), next: next < rows.length ? String(next) : null }
      })
    },
  },
]
