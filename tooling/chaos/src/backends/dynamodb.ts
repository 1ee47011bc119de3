import { DynamoStore } from '@harel/store-dynamodb'
import { type OpenForFaults, runWriter } from '@harel/store-testing/faults'
import { onServer } from '../backend.ts'

const open: OpenForFaults = ({ address = '', ...options }) =>
  DynamoStore.connect(
    { endpoint: address, region: 'us-east-1', credentials: { accessKeyId: 'local', secretAccessKey: 'local' } },
    options,
  )

// Substitutes of the service keep everything in memory.
export const dynamodb = onServer('dynamodb', {}, { open, speaks: 'http', program: import.meta.filename, forgets: true })

if (import.meta.main) await runWriter(open)
