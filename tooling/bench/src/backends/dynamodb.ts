/** DynamoStore beside transactions by hand and Python harel, on one server. */
import { DeleteTableCommand, ListTablesCommand } from '@aws-sdk/client-dynamodb'
import { DynamoStore } from '@harel/store-dynamodb'
import { storeContender } from '../contender.ts'
import { growthOf } from '../growth.ts'
import { versionOf } from '../machine.ts'
import { memoryOf } from '../memory.ts'
import { pythonStores } from '../peers/python.ts'
import { profileOf } from '../profile.ts'
import { serverOf } from '../servers.ts'
import type { Backend } from '../settings.ts'
import { measuresOf, type Site } from '../site.ts'
import { byHand, connect } from './dynamodb-by-hand.ts'
import { fillDynamo } from './dynamodb-fill.ts'

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

/** Both scan whole tables for a page, by hand for each: with ten times as many rows one page takes seconds. */
const LARGEST = 10_000

export const dynamodb: Backend = {
  measures: [
    ...measuresOf(site),
    profileOf(site),
    growthOf(site, fillDynamo, LARGEST),
    memoryOf(site, 'DynamoStore', fillDynamo, LARGEST),
  ],
  async describe() {
    const { describe } = await serverOf('dynamodb')
    return [
      `${describe()}, which is not AWS: ratios and requests count, speeds do not`,
      versionOf('@aws-sdk/client-dynamodb'),
    ]
  },
}
