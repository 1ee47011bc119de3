/** DynamoStore beside transactions by hand and Python harel, on one server. */
import { DeleteTableCommand, DynamoDBClient, ListTablesCommand } from '@aws-sdk/client-dynamodb'
import { DynamoStore } from '@harel/store-dynamodb'
import { storeContender } from '../contender.ts'
import { versionOf } from '../machine.ts'
import { pythonStores } from '../peers/python.ts'
import { serverOf } from '../servers.ts'
import type { Backend } from '../settings.ts'
import { measuresOf, type Site } from '../site.ts'
import { byHand } from './dynamodb-by-hand.ts'

const connect = (endpoint: string): DynamoDBClient =>
  new DynamoDBClient({
    endpoint,
    region: 'eu-central-1',
    credentials: { accessKeyId: 'key', secretAccessKey: 'secret' },
    // As many as are measured at once.
    requestHandler: { httpAgent: { keepAlive: true, maxSockets: 256 } },
  })

export const site: Site = {
  backend: 'dynamodb',
  isStandIn: true,
  protocol: 'http',

  async database() {
    const { url } = await serverOf('dynamodb')
    return {
      url,
      async [Symbol.asyncDispose]() {
        const client = connect(url)
        const { TableNames = [] } = await client.send(new ListTablesCommand())
        await Promise.all(TableNames.map((TableName) => client.send(new DeleteTableCommand({ TableName }))))
        client.destroy()
      },
    }
  },

  async open(url, peers) {
    const client = connect(url)
    const theirs = connect(url)
    const store = new DynamoStore(client)
    const python = pythonStores(url)
    return {
      store,
      contenders: [
        storeContender('DynamoStore', store),
        { name: 'transactions by hand', role: 'driver', does: byHand(theirs) },
        ...(peers ? python.contenders : []),
      ],
      async [Symbol.asyncDispose]() {
        python.end()
        await store.close()
        client.destroy()
        theirs.destroy()
      },
    }
  },

  goals: [
    { at: 1, variant: 'DynamoStore', beside: 'transactions by hand', target: { max: 1.3 } },
    { at: 256, variant: 'DynamoStore', beside: 'transactions by hand', target: { min: 0.85 } },
  ],
}

export const dynamodb: Backend = {
  measures: measuresOf(site),
  async describe() {
    const { describe } = await serverOf('dynamodb')
    return [
      `${describe()}, which is not AWS: ratios and requests count, speeds do not`,
      versionOf('@aws-sdk/client-dynamodb'),
    ]
  },
}
