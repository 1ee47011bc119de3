export { AsyncDictStore, DictStore, type DictStoreOptions } from './store.js'
