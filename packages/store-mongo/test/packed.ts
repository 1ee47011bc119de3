import { MongoStore, StoreUnavailable } from '@harel/store-mongo'

// There is no server beside a tarball: what can be tried is that nobody answers at this address.
const refused = async (): Promise<void> => {
  const client = { serverSelectionTimeoutMS: 100 }
  const error = await MongoStore.connect('mongodb://127.0.0.1:1', { client }).catch((reason: unknown) => reason)
  if (!(error instanceof StoreUnavailable)) throw new Error('an address without a server is not StoreUnavailable')
}

refused()
