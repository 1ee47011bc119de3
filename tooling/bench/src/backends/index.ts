import type { Backend } from '../settings.ts'

// Loaded when wanted: a backend brings its driver and its peers.
export const backends: Readonly<Record<string, () => Promise<Backend>>> = {
  codec: async () => (await import('../codec.ts')).codec,
  sqlite: async () => (await import('./sqlite.ts')).sqlite,
  libsql: async () => (await import('./libsql.ts')).libsql,
  rqlite: async () => (await import('./rqlite.ts')).rqlite,
  dynamodb: async () => (await import('./dynamodb.ts')).dynamodb,
  postgres: async () => (await import('./postgres.ts')).postgres,
  redis: async () => (await import('./redis.ts')).redis,
  mongo: async () => (await import('./mongo.ts')).mongo,
}
