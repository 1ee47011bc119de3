import { type Mutant, replace, tick } from './mutant.js'

export const definitionMutants: readonly Mutant[] = [
  {
    name: 'overwrites a definition',
    backend(backend) {
      backend.publishDefinition = (row) => {
        backend.tables.definitions.set(JSON.stringify([row.id, row.version]), row)
        return row
      }
    },
  },
  {
    name: 'returns the definition that it was given',
    backend(backend) {
      replace(backend, 'publishDefinition', (publish) => (row) => {
        publish(row)
        return row
      })
    },
  },
  {
    name: 'looks for a definition first and stores it later',
    backend(backend) {
      backend.publishDefinition = (row) => {
        backend.tables.definitions.set(JSON.stringify([row.id, row.version]), row)
        return row
      }
    },
    store: (store) => ({
      async publishDefinition(record) {
        const found = await store.loadDefinition(record.id, record.version)
        await tick()
        return found ?? store.publishDefinition(record)
      },
    }),
  },
  {
    name: 'has times of publication of its own',
    backend(backend) {
      replace(
        backend,
        'publishDefinition',
        (publish) => (row) => publish({ ...row, publishedAt: row.publishedAt ?? 0 }),
      )
    },
  },
  {
    name: 'keeps no times of publication',
    backend(backend) {
      replace(backend, 'publishDefinition', (publish) => (row) => publish({ ...row, publishedAt: null }))
    },
  },
  ...(
    [
      [
        'takes versions for numbers',
        (id, version) => [id, Number.isNaN(Number(version)) ? version : String(Number(version))],
      ],
      ['joins id and version with a colon', (id, version) => [`${id}:${version}`, '']],
      ['compares definitions without case', (id, version) => [id.toLowerCase(), version.toLowerCase()]],
      ['loads the latest version where one is missing', (id) => [id, 'latest']],
    ] as const satisfies readonly (readonly [string, (id: string, version: string) => [string, string]])[]
  ).map(
    ([name, key]): Mutant => ({
      name,
      backend(backend) {
        const { definitions } = backend.tables
        backend.publishDefinition = (row) => {
          const stored = definitions.get(JSON.stringify(key(row.id, row.version)))
          definitions.set(JSON.stringify(key(row.id, row.version)), stored ?? row)
          return stored ?? row
        }
        backend.loadDefinition = (id, version) => definitions.get(JSON.stringify(key(id, version)))
      },
    }),
  ),
  {
    name: 'takes an empty definition for none',
    store: (store) => ({
      async loadDefinition(id, version) {
        const found = await store.loadDefinition(id, version)
        return found?.definition ? found : undefined
      },
    }),
  },
  {
    name: 'reserves the version of a definition that it refuses',
    store: (store) => ({
      publishDefinition: (record) =>
        store.publishDefinition(record).catch(async (error: unknown) => {
          await store.publishDefinition({ id: record.id, version: record.version, definition: null }).catch(() => {})
          throw error
        }),
    }),
  },
]
