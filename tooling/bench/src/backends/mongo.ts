/** MongoStore beside the allocation and the update that write the same document, on one server. */
import { MongoStore } from '@harel/store-mongo'
import { MongoDBSaver } from '@langchain/langgraph-checkpoint-mongodb'
import { MongoClient } from 'mongodb'
import { storeContender } from '../contender.ts'
import { growthOf } from '../growth.ts'
import { versionOf } from '../machine.ts'
import { memoryOf } from '../memory.ts'
import { langgraph } from '../peers/langgraph.ts'
import { pythonStores } from '../peers/python.ts'
import { profileOf } from '../profile.ts'
import { serverOf } from '../servers.ts'
import type { Backend } from '../settings.ts'
import { measuresOf, type Site } from '../site.ts'
import { pipelinesByHand, pushesByHand } from './mongo-by-hand.ts'
import { fillMongo } from './mongo-fill.ts'

let databases = 0

export const site: Site = {
  backend: 'mongo',
  isStandIn: true,
  protocol: 'tcp',

  async database() {
    const url = new URL((await serverOf('mongo')).url)
    url.pathname = `/bench_${databases++}`
    // It goes with the server: the stand-in takes minutes to drop a large one.
    return { url: url.href, async [Symbol.asyncDispose]() {} }
  },

  async open(url, peers) {
    const client = new MongoClient(url)
    const db = client.db()
    const store = new MongoStore(db)
    const python = pythonStores(url)
    return {
      store,
      contenders: [
        storeContender('MongoStore', store),
        { name: 'allocation and pipeline', role: 'driver', does: pipelinesByHand(db) },
        { name: 'allocation and $push', role: 'driver', does: pushesByHand(db) },
        ...(peers ? [langgraph(new MongoDBSaver({ client, dbName: db.databaseName })), ...python.contenders] : []),
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

/** With these a page takes the stand-in half a second and two: it looks at every document for each. */
const LARGEST = { memory: 1000, growth: 10_000 }

export const mongo: Backend = {
  measures: [
    ...measuresOf(site),
    profileOf(site),
    growthOf(site, fillMongo, LARGEST.growth),
    memoryOf(site, 'MongoStore', fillMongo, LARGEST.memory),
  ],
  async describe() {
    const { describe } = await serverOf('mongo')
    const versions = ['mongodb', '@langchain/langgraph-checkpoint-mongodb'].map(versionOf)
    return [`${describe()}, writes wait for a majority and the journal`, versions.join(', ')]
  },
}
