export type { PostgresOptions } from './options.js'
export { PostgresStore, printSchema } from './store.js'
