// Opens a store and writes one execution: open.ts URL PREFIX ID
import { DynamoStore, newExecution } from '@harel/store-dynamodb'

const [endpoint = '', prefix = '', id = ''] = process.argv.slice(2)
const credentials = { accessKeyId: 'key', secretAccessKey: 'secret' }
await using store = await DynamoStore.connect({ endpoint, region: 'eu-central-1', credentials }, { prefix })
await store.save(newExecution({ id, definitionId: 'd' }))
