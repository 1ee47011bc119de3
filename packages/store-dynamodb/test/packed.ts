import { DynamoStore, StoreError } from '@harel/store-dynamodb'

// There is no service beside a tarball: what can be tried is that nobody answers at this address.
const refused = async (): Promise<void> => {
  const credentials = { accessKeyId: 'key', secretAccessKey: 'secret' }
  const config = { endpoint: 'http://127.0.0.1:1', region: 'eu-central-1', credentials }
  const error = await DynamoStore.connect(config).catch((reason: unknown) => reason)
  if (!(error instanceof StoreError)) throw new Error('an address without a service is not a StoreError')
}

refused()
