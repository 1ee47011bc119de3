import type { ExecutionStore } from '@harel/store-base'

/** Loaded when wanted: what a process holds of other drivers would be measured with it. */
const OPENERS: Readonly<Record<string, (url: string) => Promise<ExecutionStore>>> = {
  sqlite: async (path) => (await import('@harel/store-sqlite')).AsyncSqliteStore.open(path),
  libsql: async (path) => (await import('@harel/store-libsql')).LibsqlStore.connect({ url: `file:${path}` }),
  rqlite: async (url) => (await import('@harel/store-rqlite')).RqliteStore.connect(url),
  postgres: async (url) => (await import('@harel/store-postgres')).PostgresStore.connect(url),
  redis: async (url) => (await import('@harel/store-redis')).RedisStore.connect(url),
  mongo: async (url) => (await import('@harel/store-mongo')).MongoStore.connect(url),
  async dynamodb(url) {
    const [{ DynamoStore }, { configOf }] = await Promise.all([
      import('@harel/store-dynamodb'),
      import('./backends/dynamodb-by-hand.ts'),
    ])
    return DynamoStore.connect(configOf(url))
  },
}

/** A store of this backend, as a program of its own has it. @throws Error when there is no such backend */
export async function openStore(backend: string, url: string): Promise<ExecutionStore> {
  const open = OPENERS[backend]
  if (open === undefined) throw new Error(`there is no backend '${backend}'`)
  return await open(url)
}
