/** The stores that processes share in tests, by the name and the address that a process is started with. */
import type { ExecutionStore } from '@harel/store-base'
import { PostgresStore } from '@harel/store-postgres'
import { RedisStore } from '@harel/store-redis'
import { AsyncSqliteStore } from '@harel/store-sqlite'

export type Kind = 'sqlite' | 'redis' | 'postgres'

export function openShared(kind: string, address: string): Promise<ExecutionStore> {
  if (kind === 'redis') return RedisStore.connect(address)
  return kind === 'postgres' ? PostgresStore.connect(address) : AsyncSqliteStore.open(address)
}
