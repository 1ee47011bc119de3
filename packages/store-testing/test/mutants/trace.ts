import type { TraceStep } from '@harel/store-base'
import { type Mutant, replace, whileSmall } from './mutant.js'

export const traceMutants: readonly Mutant[] = [
  {
    name: 'keeps one step too many',
    backend: (backend) => Object.assign(backend, { traceMax: backend.traceMax > 0 ? backend.traceMax + 1 : 0 }),
  },
  {
    name: 'keeps one step too few',
    backend: (backend) =>
      Object.assign(backend, { traceMax: backend.traceMax > 1 ? backend.traceMax - 1 : backend.traceMax }),
  },
  {
    name: 'keeps a hundred steps at most',
    backend: (backend) => Object.assign(backend, { traceMax: Math.min(backend.traceMax || 100, 100) }),
  },
  {
    name: 'counts the steps that are kept',
    store: (store) => ({
      readTrace: async (id) => (await store.readTrace(id)).map((step, index): TraceStep => ({ ...step, index })),
    }),
  },
  {
    name: 'reads the newest step first',
    store: (store) => ({ readTrace: async (id) => (await store.readTrace(id)).reverse() }),
  },
  {
    name: 'goes on counting after a purge',
    backend(backend) {
      const last = new Map<string, number>()
      replace(backend, 'purge', (purge) => (id, version) => {
        const index = backend.readTrace(id).at(-1)?.index
        const purged = purge(id, version)
        if (purged && index !== undefined) last.set(id, index)
        return purged
      })
      replace(
        backend,
        'readTrace',
        (read) => (id) => read(id).map((row) => ({ ...row, index: row.index + 1 + (last.get(id) ?? -1) })),
      )
    },
  },
  {
    name: 'limits committed steps only',
    backend(backend) {
      replace(backend, 'writeCompanions', (write) => (commit) => write(commit))
      replace(backend, 'appendTrace', (append) => (id, entry) => {
        const { traceMax } = backend
        backend.traceMax = 0
        append(id, entry)
        backend.traceMax = traceMax
      })
    },
  },
  {
    name: 'removes one step for each that is added',
    backend(backend) {
      backend.appendTrace = (id, entry) => {
        const rows = backend.readTrace(id)
        rows.push({ index: (rows.at(-1)?.index ?? -1) + 1, entry })
        if (backend.traceMax > 0 && rows.length > backend.traceMax) rows.shift()
        backend.tables.traces.set(id, rows)
      }
    },
  },
  {
    name: 'adds no step to an execution that is not stored',
    backend(backend) {
      replace(backend, 'appendTrace', (append) => (id, entry) => {
        if (backend.load(id) !== undefined) append(id, entry)
      })
    },
  },
  {
    name: 'finds ids of which there is only a trace',
    backend(backend) {
      replace(backend, 'idsWithPrefix', (find) => (prefix) => [
        ...find(prefix),
        ...[...backend.tables.traces.keys()].filter((id) => id.startsWith(prefix) && backend.load(id) === undefined),
      ])
    },
  },
  {
    name: 'takes an index inside a step for its own',
    store: (store) => ({
      async appendTrace(id, step) {
        return store.appendTrace(id, 'index' in step ? { ...step, given: step.index } : step)
      },
    }),
  },
  {
    name: 'has one trace for ids that differ in case',
    backend(backend) {
      replace(backend, 'readTrace', (read) => (id) => read(id.toLowerCase()))
      replace(backend, 'appendTrace', (append) => (id, entry) => append(id.toLowerCase(), entry))
    },
  },
  {
    name: 'raises the version for an appended step',
    backend(backend) {
      replace(backend, 'appendTrace', (append) => (id, entry) => {
        append(id, entry)
        const stored = backend.tables.executions.get(id)
        if (stored !== undefined) stored.summary.version += 1
      })
      replace(backend, 'writeCompanions', (write) => (commit) => {
        const seqs = write(commit)
        const stored = backend.tables.executions.get(commit.id)
        if (stored !== undefined) stored.summary.version = commit.version
        return seqs
      })
    },
  },
  {
    name: 'forgets steps that are appended at once',
    store(store) {
      const busy = new Set<string>()
      return {
        async appendTrace(id, step) {
          if (busy.has(id)) return
          busy.add(id)
          await store.appendTrace(id, step).finally(() => busy.delete(id))
        },
      }
    },
  },
  {
    name: 'reads the first megabyte of a trace',
    backend(backend) {
      replace(backend, 'readTrace', (read) => (id) => {
        return whileSmall(read(id), ({ entry }) => entry.length, 1_000_000)
      })
    },
  },
  {
    name: 'stores an empty step where it refuses one',
    store: (store) => ({
      async appendTrace(id, step) {
        return store.appendTrace(id, step).catch(async (error: unknown) => {
          await store.appendTrace(id, {})
          throw error
        })
      },
    }),
  },
]
