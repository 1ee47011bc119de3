import { DynamoStore } from '@harel/store-dynamodb'
import { describeSurvival } from '@harel/store-testing/faults'
import { withServer } from '@harel-tooling/test-servers/vitest'
import { describe, test } from 'vitest'
import { configFor, freshPrefix } from './database.js'

// The server is not killed: a substitute of the service keeps everything in memory.
withServer('dynamodb', ({ url }) => {
  describeSurvival(
    { describe, test },
    'DynamoStore',
    {
      capabilities: { shared: true },
      open: ({ address = '', ...options }) => DynamoStore.connect(configFor(address), options),
      address: () => url,
      speaks: 'http',
      program: new URL('programs/faults-writer.ts', import.meta.url),
      prefix: freshPrefix(),
    },
    { scale: 0.02 },
  )
})
