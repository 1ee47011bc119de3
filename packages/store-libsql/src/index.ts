export * from '@harel/store-base'
export type { LibsqlOptions } from './options.js'
export { LibsqlStore, printSchema } from './store.js'
