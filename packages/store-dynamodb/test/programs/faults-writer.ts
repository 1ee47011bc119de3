/** Writes to a server until it is killed. */
import { DynamoStore } from '@harel/store-dynamodb'
import { runWriter } from '@harel/store-testing/faults'

const credentials = { accessKeyId: 'key', secretAccessKey: 'secret' }
await runWriter(({ address = '', ...options }) =>
  DynamoStore.connect({ endpoint: address, region: 'eu-central-1', credentials }, options),
)
