export * from '@harel/store-base'
export { printSqliteSchema as printSchema } from '@harel/store-base/sql'
export type { LibsqlOptions } from './options.js'
export { LibsqlStore } from './store.js'
