export * from '@harel/store-base'
export { AsyncSqliteStore, type AsyncTransactionHandle } from './async-store.js'
export type { SqliteOptions } from './schema.js'
export { printSchema, SqliteStore } from './store.js'
