import { PostgresStore, printSchema, StoreUnavailable } from '@harel/store-postgres'

// There is no server beside a tarball: what can be tried is the schema, and that nobody answers at this address.
const refused = async (): Promise<void> => {
  if (!printSchema('orders').includes('orders_executions')) throw new Error('printSchema does not name the tables')
  const error = await PostgresStore.connect('postgres://127.0.0.1:1/none').catch((reason: unknown) => reason)
  if (!(error instanceof StoreUnavailable)) throw new Error('an address without a server is not StoreUnavailable')
}

refused()
