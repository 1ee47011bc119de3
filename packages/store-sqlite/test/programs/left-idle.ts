// Opens a store, and neither uses nor closes it: left-idle.ts FILE
import { AsyncSqliteStore } from '@harel/store-sqlite'

const [path = ''] = process.argv.slice(2)
const store = await AsyncSqliteStore.open(path)
console.log(store.capabilities.durable)
