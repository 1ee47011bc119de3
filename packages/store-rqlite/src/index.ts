export * from '@harel/store-base'
export { printSqliteSchema as printSchema } from '@harel/store-base/sql'
export type { RqliteOptions } from './options.js'
export { RqliteStore } from './store.js'
