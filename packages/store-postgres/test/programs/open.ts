// Opens a store and says which error has come of it, if any: open.ts URL PREFIX CREATE_SCHEMA
import { PostgresStore, StoreError } from '@harel/store-postgres'

const [url = '', prefix = '', createSchema] = process.argv.slice(2)
try {
  await using _store = await PostgresStore.connect(url, { prefix, createSchema: createSchema === 'true' })
} catch (error) {
  if (!(error instanceof StoreError)) throw error
  console.log(error.code)
}
