export * from '@harel/store-base'
export type { DynamoOptions } from './options.js'
export { DynamoStore } from './store.js'
export { printSchema } from './tables.js'
