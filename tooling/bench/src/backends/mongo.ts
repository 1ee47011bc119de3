/** MongoStore beside the allocation and the update that write the same document, on one server. */
import { MongoStore } from '@harel/store-mongo'
import { MongoDBSaver } from '@langchain/langgraph-checkpoint-mongodb'
import { MongoClient } from 'mongodb'
import { storeContender } from '../contender.ts'
import { versionOf } from '../machine.ts'
import { langgraph } from '../peers/langgraph.ts'
import { pythonStores } from '../peers/python.ts'
import { serverOf } from '../servers.ts'
import type { Backend } from '../settings.ts'
import { measuresOf, type Site } from '../site.ts'
import { pipelinesByHand, pushesByHand } from './mongo-by-hand.ts'

export const site: Site = {
  backend: 'mongo',
  isStandIn: true,
  protocol: 'tcp',

  async database() {
    const { url } = await serverOf('mongo')
    return {
      url,
      async [Symbol.asyncDispose]() {
        const client = new MongoClient(url)
        await client.db('bench').dropDatabase()
        await client.close()
      },
    }
  },

  async open(url, peers) {
    const client = new MongoClient(url)
    const db = client.db('bench')
    const store = new MongoStore(db)
    const python = pythonStores(url)
    return {
      store,
      contenders: [
        storeContender('MongoStore', store),
        { name: 'allocation and pipeline', role: 'driver', does: pipelinesByHand(db) },
        { name: 'allocation and $push', role: 'driver', does: pushesByHand(db) },
        ...(peers ? [langgraph(new MongoDBSaver({ client, dbName: 'bench' })), ...python.contenders] : []),
      ],
      async [Symbol.asyncDispose]() {
        python.end()
        await store.close()
        await client.close()
      },
    }
  },

  goals: [
    { at: 1, variant: 'MongoStore', beside: 'allocation and pipeline', target: { max: 1.3 } },
    { at: 1, variant: 'MongoStore', beside: 'allocation and $push', target: { max: 1.3 } },
    { at: 256, variant: 'MongoStore', beside: 'allocation and pipeline', target: { min: 0.85 } },
    { at: 256, variant: 'MongoStore', beside: 'allocation and $push', target: { min: 0.85 } },
  ],
}

export const mongo: Backend = {
  measures: measuresOf(site),
  async describe() {
    const { describe } = await serverOf('mongo')
    const versions = ['mongodb', '@langchain/langgraph-checkpoint-mongodb'].map(versionOf)
    return [`${describe()}, writes wait for a majority and the journal`, versions.join(', ')]
  },
}
