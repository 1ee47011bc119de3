import { withServer } from '@harel-tooling/test-servers/vitest'
import { describeContracts } from './contracts.js'

withServer('dynamodb', ({ url }) => {
  describeContracts('DynamoStore', { url: () => url, prefixes: ['harel', 'harel2'] })
})
