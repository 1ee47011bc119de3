export type { RedisOptions } from './options.js'
export { RedisStore } from './store.js'
