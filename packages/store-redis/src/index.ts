export * from '@harel/store-base'
export type { RedisOptions } from './options.js'
export { RedisStore } from './store.js'
