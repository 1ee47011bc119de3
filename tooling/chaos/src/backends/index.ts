import type { Backends } from '../backend.ts'

export const backends: Backends = {
  sqlite: async () => (await import('./sqlite.ts')).sqlite,
  'libsql-file': async () => (await import('./libsql-file.ts')).libsqlFile,
  libsql: async () => (await import('./libsql.ts')).libsql,
  rqlite: async () => (await import('./rqlite.ts')).rqlite,
  postgres: async () => (await import('./postgres.ts')).postgres,
  redis: async () => (await import('./redis.ts')).redis,
  mongo: async () => (await import('./mongo.ts')).mongo,
  dynamodb: async () => (await import('./dynamodb.ts')).dynamodb,
}
