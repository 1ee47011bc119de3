import { StoreUnavailable } from '@harel/store-base'
import { type Mutant, replace } from './mutant.js'

/** Changes the payload that is stored, which others read. */
const payload =
  (change: (data: string, id: string) => string): Mutant['backend'] =>
  (backend) => {
    replace(
      backend,
      'writeExecution',
      (write) => (commit) => write({ ...commit, data: change(commit.data, commit.id) }),
    )
  }

const parsed = (change: (fields: Record<string, unknown>) => Record<string, unknown>) =>
  payload((data) => JSON.stringify(change(JSON.parse(data) as Record<string, unknown>)))

export const payloadMutants: readonly Mutant[] = [
  {
    name: 'stores the id in front of the version',
    backend: parsed(({ id, ...rest }) => ({ id, ...rest })),
  },
  {
    name: 'has one token for all commits',
    backend: parsed((fields) => ({ ...fields, commit_token: 'token' })),
  },
  {
    name: 'stores no fields that are null',
    backend: parsed((fields) => Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null))),
  },
  {
    name: 'stores its records as they are',
    backend: payload((data) => data.replaceAll('root_path', 'rootPath')),
  },
  {
    name: 'rewrites the keys of users',
    backend: payload((data) => data.replaceAll('camelCase', 'camel_case')),
  },
  {
    name: 'stores a history of its own in the payload',
    backend: (backend) => {
      const history = new Map<string, number>()
      payload((data, id) => {
        history.set(id, (history.get(id) ?? 0) + 1)
        return data.replace(/}$/, `,"log":"${'.'.repeat(history.get(id) ?? 0)}"}`)
      })?.(backend)
    },
  },
  {
    name: 'marks what it has purged in the place of the payload',
    backend(backend) {
      const { tables } = backend
      const purged = new Set<string>()
      replace(backend, 'purge', (purge) => (id, version) => {
        const stored = tables.executions.get(id)
        const done = purge(id, version)
        if (done && stored !== undefined) {
          purged.add(id)
          tables.executions.set(id, {
            data: '',
            summary: { ...stored.summary, version: 0, status: null, definitionId: '' },
          })
        }
        return done
      })
      replace(backend, 'load', (load) => (id) => load(id) || undefined)
      replace(backend, 'versionOf', (versionOf) => (id) => versionOf(id) || null)
      replace(
        backend,
        'idsWithPrefix',
        (find) => (prefix) => find(prefix).filter((id) => backend.load(id) !== undefined),
      )
    },
  },
  {
    name: 'needs the version in front of the payloads of others',
    backend(backend) {
      replace(backend, 'commit', (commit) => (given) => {
        const stored = backend.load(given.id)
        if (stored !== undefined && !stored.startsWith('{"version"'))
          throw new StoreUnavailable('cannot tell the version')
        return commit(given)
      })
    },
  },
  {
    name: 'drops a field that it does not know',
    backend(backend) {
      replace(backend, 'commit', (commit) => (given) => {
        const { unknown: _dropped, ...known } = JSON.parse(given.data)
        return commit({ ...given, data: JSON.stringify(known) })
      })
    },
  },
  {
    name: 'takes what it cannot read for nothing',
    store: (store) => ({
      load: (id) => store.load(id).catch(() => undefined),
    }),
  },
  {
    name: 'writes numbers rounded without a word',
    open: (database) => (options) => database.open({ ...options, numbers: 'lossy' }),
  },
  {
    name: 'refuses rounded numbers whatever it was told',
    open: (database) => (options) => database.open({ ...options, numbers: 'exact' }),
  },
  {
    name: 'forgets to purge events that it cannot read',
    backend(backend) {
      replace(backend, 'purge', (purge) => (id, version) => {
        const bad = [...backend.tables.outbox.values()].filter(({ event }) => !event.startsWith('{'))
        const purged = purge(id, version)
        for (const row of bad) backend.tables.outbox.set(row.seq, row)
        return purged
      })
    },
  },
]
