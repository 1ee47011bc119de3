import type { MemoryBackend, Tables } from '../memory-database.js'
import { like, type Mutant, replace } from './mutant.js'

/** Purges all but one table. */
const forget = (keep: (tables: Tables, id: string) => () => void) => (backend: MemoryBackend) => {
  replace(backend, 'purge', (purge) => (id, version) => {
    const restore = keep(backend.tables, id)
    const purged = purge(id, version)
    if (purged) restore()
    return purged
  })
}

const keepEntry = (name: 'marks' | 'timers' | 'traces') =>
  forget((tables, id) => {
    const table = tables[name] as Map<string, unknown>
    const entry = table.get(id)
    return () => void (entry !== undefined && table.set(id, entry))
  })

const keepRows = (name: 'outbox' | 'spawns') =>
  forget((tables) => {
    const table = tables[name] as Map<number, unknown>
    const rows = [...table]
    return () => {
      for (const [seq, row] of rows) table.set(seq, row)
    }
  })

export const purgeMutants: readonly Mutant[] = [
  { name: 'forgets to purge the marks', backend: keepEntry('marks') },
  { name: 'forgets to purge the trace', backend: keepEntry('traces') },
  { name: 'forgets to purge the timers', backend: keepEntry('timers') },
  { name: 'forgets to purge the events', backend: keepRows('outbox') },
  { name: 'forgets to purge the spawns', backend: keepRows('spawns') },
  {
    name: 'purges all traces, all marks and all timers',
    backend(backend) {
      replace(backend, 'purge', (purge) => (id, version) => {
        const purged = purge(id, version)
        if (purged)
          for (const table of [backend.tables.marks, backend.tables.timers, backend.tables.traces]) table.clear()
        return purged
      })
    },
  },
  {
    name: 'purges at any version',
    backend(backend) {
      replace(backend, 'purge', (purge) => (id, version) => purge(id, backend.versionOf(id) ?? version))
    },
  },
  {
    name: 'purges up to a version',
    backend(backend) {
      replace(
        backend,
        'purge',
        (purge) => (id, version) => purge(id, Math.min(version, backend.versionOf(id) ?? version)),
      )
    },
  },
  {
    name: 'tells that it has purged what was not there',
    backend(backend) {
      replace(backend, 'purge', (purge) => (id, version) => backend.versionOf(id) === null || purge(id, version))
    },
  },
  { name: 'purges nothing', backend: (backend) => Object.assign(backend, { purge: () => true }) },
  {
    name: 'leaves what it finds where no execution is stored',
    backend(backend) {
      replace(backend, 'purge', (purge) => (id, version) => backend.versionOf(id) !== null && purge(id, version))
    },
  },
  {
    name: 'purges what resembles the id',
    backend(backend) {
      replace(backend, 'purge', (purge) => (id, version) => {
        const purged = purge(id, version)
        if (purged)
          for (const other of backend.idsWithPrefix(''))
            if (like(id).test(other)) purge(other, backend.versionOf(other) ?? 0)
        return purged
      })
    },
  },
  {
    name: 'purges the children with their parent',
    backend(backend) {
      replace(backend, 'purge', (purge) => (id, version) => {
        const purged = purge(id, version)
        if (purged) for (const other of backend.idsWithPrefix(`${id}:`)) purge(other, backend.versionOf(other) ?? 0)
        return purged
      })
    },
  },
  {
    name: 'purges the events that the execution has sent',
    backend(backend) {
      const senders = new Map<number, string>()
      replace(backend, 'commit', (commit) => (given) => {
        const verdict = commit(given)
        if (verdict.applied) for (const seq of verdict.seqs) senders.set(seq, given.id)
        return verdict
      })
      replace(backend, 'purge', (purge) => (id, version) => {
        const purged = purge(id, version)
        if (purged) for (const [seq, sender] of senders) if (sender === id) backend.tables.outbox.delete(seq)
        return purged
      })
    },
  },
  {
    name: 'purges definitions with their executions',
    backend(backend) {
      replace(backend, 'purge', (purge) => (id, version) => {
        const definitionId = backend.tables.executions.get(id)?.summary.definitionId
        const purged = purge(id, version)
        if (purged && definitionId !== undefined) backend.tables.definitions.delete(JSON.stringify([definitionId, '1']))
        return purged
      })
    },
  },
  {
    name: 'leaves an empty row where it has purged',
    backend(backend) {
      replace(backend, 'purge', (purge) => (id, version) => {
        const purged = purge(id, version)
        if (purged) backend.tables.traces.set(id, [])
        if (purged) backend.tables.marks.set(id, new Set(['']))
        return purged
      })
    },
  },
  {
    name: 'looks at the version first and purges later',
    backend(backend) {
      replace(backend, 'purge', (purge) => (id) => purge(id, backend.versionOf(id) ?? 0))
    },
    store: (store) => ({
      async purge(id, version) {
        const found = await store.load(id)
        if (found?.version !== version) return false
        await store.purge(id, version)
        return true
      },
    }),
  },
]
