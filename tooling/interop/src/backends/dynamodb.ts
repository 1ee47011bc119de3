import { DeleteTableCommand, DynamoDBClient, ListTablesCommand } from '@aws-sdk/client-dynamodb'
import { DynamoStore } from '@harel/store-dynamodb'
import { startServer } from '@harel-tooling/test-servers'
import type { Backend } from '../backend.js'

export const dynamodb: Backend = {
  name: 'DynamoDB',
  start: async () => {
    // Of its own: all tables go with a database.
    const server = await startServer('dynamodb', { own: true })
    console.log(server.describe())
    // As Python's.
    const credentials = { accessKeyId: 'test', secretAccessKey: 'test' }
    const client = new DynamoDBClient({ endpoint: server.url, region: 'us-east-1', credentials })
    return {
      make: async () => ({
        url: `dynamodb+${server.url}`,
        open: async (options) => new DynamoStore(client, options),
        [Symbol.asyncDispose]: async () => {
          const { TableNames = [] } = await client.send(new ListTablesCommand())
          for (const TableName of TableNames) await client.send(new DeleteTableCommand({ TableName }))
        },
      }),
      [Symbol.asyncDispose]: async () => {
        client.destroy()
        await server.stop()
      },
    }
  },
}
