export * from '@harel/store-base'
export type { MongoOptions } from './options.js'
export { MongoStore } from './store.js'
