/** The stores that processes share in tests, by the name and the address that a process is started with. */
import type { ExecutionStore } from '@harel/store-base'

type Open = (address: string, options: { prefix?: string }) => Promise<ExecutionStore>

/** Loaded when wanted: each brings its driver. */
const kinds: Readonly<Record<string, () => Promise<Open>>> = {
  sqlite: async () => {
    const { AsyncSqliteStore } = await import('@harel/store-sqlite')
    return (path, options) => AsyncSqliteStore.open(path, options)
  },
  'libsql-file': async () => {
    const { LibsqlStore } = await import('@harel/store-libsql')
    return (path, options) => LibsqlStore.connect({ url: `file:${path}` }, options)
  },
  libsql: async () => {
    const { LibsqlStore } = await import('@harel/store-libsql')
    return (url, options) => LibsqlStore.connect({ url }, options)
  },
  rqlite: async () => {
    const { RqliteStore } = await import('@harel/store-rqlite')
    return (url, options) => RqliteStore.connect(url, options)
  },
  postgres: async () => {
    const { PostgresStore } = await import('@harel/store-postgres')
    return (url, options) => PostgresStore.connect(url, options)
  },
  redis: async () => {
    const { RedisStore } = await import('@harel/store-redis')
    return (url, options) => RedisStore.connect(url, options)
  },
  mongo: async () => {
    const { MongoStore } = await import('@harel/store-mongo')
    return (url, options) => MongoStore.connect(url, options)
  },
  dynamodb: async () => {
    const { DynamoStore } = await import('@harel/store-dynamodb')
    const credentials = { accessKeyId: 'local', secretAccessKey: 'local' }
    return (endpoint, options) => DynamoStore.connect({ endpoint, region: 'us-east-1', credentials }, options)
  },
}

/** One database that several processes open. */
export interface Shared {
  /** A store's name, as its package has it behind `store-`; `libsql-file` for a file of that. */
  readonly kind: string
  /** The path of a file, the URL of a server. */
  readonly address: string
  readonly prefix?: string
}

export async function openShared({ kind, address, ...options }: Shared): Promise<ExecutionStore> {
  const open = await kinds[kind]?.()
  if (open === undefined) throw new Error(`there is no store called ${kind}`)
  return open(address, options)
}
