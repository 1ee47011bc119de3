export * from '@harel/store-base'
export type { RqliteOptions } from './options.js'
export { printSchema, RqliteStore } from './store.js'
