export type { RqliteOptions } from './options.js'
export { printSchema, RqliteStore } from './store.js'
