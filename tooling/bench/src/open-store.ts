import type { ExecutionStore } from '@harel/store-base'
import { PostgresStore } from '@harel/store-postgres'
import { RedisStore } from '@harel/store-redis'
import { AsyncSqliteStore } from '@harel/store-sqlite'

/** The store whose kind the URL tells; a path is a file of SQLite. */
export const openStore = (url: string): Promise<ExecutionStore> => {
  if (url.startsWith('postgres:')) return PostgresStore.connect(url)
  return url.startsWith('redis:') ? RedisStore.connect(url) : AsyncSqliteStore.open(url)
}
