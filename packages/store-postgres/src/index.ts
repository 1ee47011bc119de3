export * from '@harel/store-base'
export type { PostgresOptions } from './options.js'
export { PostgresStore, printSchema } from './store.js'
