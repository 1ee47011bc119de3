import { startServer, type TestServer } from '@harel-tooling/test-servers'
import { afterAll, beforeAll, describe } from 'vitest'
import { describeContracts } from '../contracts.js'

describe('ministack', () => {
  let server: TestServer
  beforeAll(async () => {
    server = await startServer('dynamodb', { own: true, flavour: 'ministack' })
    console.log(server.describe())
  })
  afterAll(() => server?.stop())

  describeContracts('DynamoStore', { url: () => server.url, prefixes: ['harel', 'harel2'] })
  describeContracts('DynamoStore with indexes', { url: () => server.url, gsi: true, prefixes: ['gsi', 'gsi2'] })
})
