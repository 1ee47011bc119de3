import { RedisStore, StoreError } from '@harel/store-redis'

// There is no server beside a tarball: what can be tried is that nobody answers at this address.
const refused = async (): Promise<void> => {
  const client = { maxRetriesPerRequest: 0, retryStrategy: () => null }
  const error = await RedisStore.connect('redis://127.0.0.1:1', { client }).catch((reason: unknown) => reason)
  if (!(error instanceof StoreError)) throw new Error('an address without a server is not a StoreError')
}

refused()
