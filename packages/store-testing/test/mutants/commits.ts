import {
  type Execution,
  type ExecutionStore,
  NotSerializable,
  StoreConflict,
  StoreUnavailable,
} from '@harel/store-base'
import type { MemoryBackend } from '../memory-database.js'
import { type Mutant, replace, tick } from './mutant.js'

/** Writes with a refused commit what a part of it says. */
const leak = (part: 'emits' | 'processedEventId' | 'timers' | 'spawns' | 'trace') => (backend: MemoryBackend) => {
  replace(backend, 'commit', (commit) => (given) => {
    const verdict = commit(given)
    if (verdict.applied) return verdict
    const nothing = { emits: [], processedEventId: undefined, timers: [], spawns: [], trace: undefined }
    backend.writeCompanions({ ...given, ...nothing, [part]: given[part] })
    return verdict
  })
}

/** Changes the payload that is stored. */
const payload =
  (change: (fields: Record<string, unknown>, before: string | undefined) => Record<string, unknown>) =>
  (backend: MemoryBackend) => {
    replace(backend, 'writeExecution', (write) => (commit) => {
      const fields = JSON.parse(commit.data) as Record<string, unknown>
      write({ ...commit, data: JSON.stringify(change(fields, backend.load(commit.id))) })
    })
  }

/** Looks at the version by itself and writes afterwards. */
const checkThenAct = (store: ExecutionStore): Partial<ExecutionStore> => ({
  async commit(execution, changes) {
    const found = (await store.load(execution.id))?.version ?? null
    if ((found ?? 0) !== execution.version) throw new StoreConflict(execution.id, execution.version, found)
    return store.commit(execution, changes)
  },
})

const alwaysApply = (backend: MemoryBackend) => {
  backend.commit = (commit) => {
    backend.writeExecution(commit)
    return { applied: true, seqs: backend.writeCompanions(commit) }
  }
}

export const commitMutants: readonly Mutant[] = [
  { name: 'ignores the version', backend: alwaysApply },
  { name: 'looks at the version first and writes later', backend: alwaysApply, store: checkThenAct },
  {
    name: 'lets a first commit overwrite',
    backend(backend) {
      replace(backend, 'commit', (commit) => (given) => {
        const expected = given.expected === 0 ? (backend.versionOf(given.id) ?? 0) : given.expected
        return commit({ ...given, expected })
      })
    },
  },
  {
    name: 'takes what is stored at version 0 for committed by somebody',
    backend(backend) {
      replace(backend, 'commit', (commit) => (given) => {
        const found = backend.versionOf(given.id)
        return found === 0 ? { applied: false, found } : commit(given)
      })
    },
  },
  {
    name: 'acknowledges a first commit that it has not written over what is stored at version 0',
    backend(backend) {
      replace(backend, 'commit', (commit) => (given) => {
        if (backend.versionOf(given.id) !== 0) return commit(given)
        return { applied: true, seqs: backend.writeCompanions(given) }
      })
    },
  },
  {
    name: 'accepts copies that are ahead',
    backend(backend) {
      replace(backend, 'commit', (commit) => (given) => {
        const found = backend.versionOf(given.id)
        return commit({ ...given, expected: found !== null && given.expected > found ? found : given.expected })
      })
    },
  },
  {
    name: 'creates what it is told to update',
    backend(backend) {
      replace(
        backend,
        'commit',
        (commit) => (given) =>
          commit({ ...given, expected: backend.versionOf(given.id) === null ? 0 : given.expected }),
      )
    },
  },
  {
    name: 'does not tell which version is stored',
    backend(backend) {
      replace(backend, 'commit', (commit) => (given) => {
        const verdict = commit(given)
        return verdict.applied ? verdict : { applied: false, found: null }
      })
    },
  },
  {
    name: 'stores versions of one digit',
    backend(backend) {
      replace(backend, 'writeExecution', (write) => (commit) => write({ ...commit, version: commit.version % 10 }))
    },
  },
  { name: 'leaks the events of a refused commit', backend: leak('emits') },
  { name: 'leaks the mark of a refused commit', backend: leak('processedEventId') },
  { name: 'leaks the timers of a refused commit', backend: leak('timers') },
  { name: 'leaks the spawns of a refused commit', backend: leak('spawns') },
  { name: 'leaks the trace step of a refused commit', backend: leak('trace') },
  {
    name: 'takes a trace index for a refused commit',
    backend(backend) {
      const { tables } = backend
      const next = new Map<string, number>()
      replace(backend, 'appendTrace', (append) => (id, entry) => {
        append(id, entry)
        const index = next.get(id) ?? 0
        next.set(id, index + 1)
        tables.traces.set(
          id,
          backend.readTrace(id).map((row, n, rows) => ({ ...row, index: index - rows.length + 1 + n })),
        )
      })
      replace(backend, 'commit', (commit) => (given) => {
        const verdict = commit(given)
        if (!verdict.applied && given.trace !== undefined) next.set(given.id, (next.get(given.id) ?? 0) + 1)
        return verdict
      })
    },
  },
  {
    name: 'shows a refused commit in listings',
    backend(backend) {
      replace(backend, 'commit', (commit) => (given) => {
        const verdict = commit(given)
        const stored = backend.tables.executions.get(given.id)
        if (!verdict.applied && stored !== undefined) stored.summary.status = given.status
        return verdict
      })
    },
  },
  {
    name: 'does not raise the version of the caller',
    store: (store) => ({ commit: (execution, changes) => store.commit({ ...execution }, changes) }),
  },
  {
    name: 'raises the version before it knows',
    store: (store) => ({
      async commit(execution, changes) {
        const pending = store.commit({ ...execution }, changes)
        pending.catch(() => {})
        execution.version++
        return pending
      },
    }),
  },
  {
    name: 'gives the caller of a lost race the state of the winner',
    store: (store) => ({
      async commit(execution, changes) {
        try {
          return await store.commit(execution, changes)
        } catch (error) {
          const winner = await store.load(execution.id)
          if (winner !== undefined) Object.assign(execution, winner, { version: execution.version })
          throw error
        }
      },
    }),
  },
  {
    name: 'stores what it can of a commit that it refuses',
    store: (store) => ({
      async commit(execution, changes) {
        try {
          return await store.commit(execution, changes)
        } catch (error) {
          if (error instanceof NotSerializable) await store.commit({ ...execution, context: {}, status: 'FAILED' })
          throw error
        }
      },
    }),
  },
  {
    name: 'stamps times of its own',
    store: (store) => ({
      commit(execution, changes) {
        execution.updatedAt = 1
        return store.commit(execution, changes)
      },
    }),
  },
  {
    name: 'forgets the deferred events',
    backend: payload((fields) => ({ ...fields, deferred: [] })),
  },
  {
    name: 'keeps the old value of a field that was cleared',
    backend: payload((fields, before) => {
      const old = JSON.parse(before ?? '{}') as Record<string, unknown>
      return Object.fromEntries(Object.entries(fields).map(([key, value]) => [key, value ?? old[key] ?? null]))
    }),
  },
  { name: 'saves nothing', store: () => ({ save: async () => {} }) },
  {
    name: 'writes marks, timers and traces a moment later than the execution',
    backend(backend) {
      replace(backend, 'writeCompanions', (write) => (commit) => {
        const { processedEventId, timers, trace } = commit
        const later = async () => {
          // Whoever asks at once is answered before that.
          for (let turn = 0; turn < 5; turn++) await tick()
          write({ ...commit, emits: [], spawns: [], processedEventId, timers, trace })
        }
        void later()
        return write({ ...commit, processedEventId: undefined, timers: [], trace: undefined })
      })
    },
  },
  {
    name: 'fails good commits that stand beside a bad one',
    store(store) {
      let batch: Promise<unknown>[] = []
      return {
        async commit(execution, changes) {
          const own = store.commit(execution, changes)
          const together = batch
          // Those of one turn are together, whatever the time they take.
          if (together.push(own) === 1) queueMicrotask(() => (batch = []))
          const seqs = await own
          const outcomes = await Promise.allSettled(together)
          if (outcomes.some(({ status }) => status === 'rejected')) {
            throw new StoreUnavailable('another commit has failed')
          }
          return seqs
        },
      }
    },
  },
  {
    name: 'fails the commit that follows a failed one',
    store(store) {
      let failed = false
      return {
        async commit(execution, changes) {
          if (failed) {
            failed = false
            throw new StoreUnavailable('the commit before has failed')
          }
          try {
            return await store.commit(execution, changes)
          } catch (error) {
            failed = true
            throw error
          }
        },
      }
    },
  },
  {
    name: 'tells a lost race as something else',
    store: (store) => ({
      async commit(execution, changes) {
        try {
          return await store.commit(execution, changes)
        } catch (error) {
          if (error instanceof StoreConflict) throw new StoreUnavailable('duplicate key')
          throw error
        }
      },
    }),
  },
  {
    name: 'remembers what it has loaded, handle by handle',
    store(store) {
      const cache = new Map<string, Execution>()
      return {
        async load(id) {
          const found = cache.get(id) ?? (await store.load(id))
          if (found !== undefined) cache.set(id, found)
          return structuredClone(found)
        },
        async commit(execution, changes) {
          const seqs = await store.commit(execution, changes)
          cache.set(execution.id, structuredClone(execution))
          return seqs
        },
        async purge(id, version) {
          cache.delete(id)
          return store.purge(id, version)
        },
      }
    },
  },
  {
    name: 'takes its picture after an await',
    store: (store) => ({
      async commit(execution, changes) {
        await tick()
        return store.commit(execution, changes)
      },
      async publishDefinition(record) {
        await tick()
        return store.publishDefinition(record)
      },
      async pendingOutbox(page) {
        await tick()
        return store.pendingOutbox(page)
      },
    }),
  },
]
