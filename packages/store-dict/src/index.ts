export * from '@harel/store-base'
export { AsyncDictStore, DictStore, type DictStoreOptions } from './store.js'
