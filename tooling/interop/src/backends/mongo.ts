import { MongoStore } from '@harel/store-mongo'
import { startServer } from '@harel-tooling/test-servers'
import { MongoClient } from 'mongodb'
import type { Backend } from '../backend.js'

export const mongo: Backend = {
  name: 'MongoDB',
  purgesWhatItSent: true,
  start: async () => {
    const server = await startServer('mongo')
    console.log(server.describe())
    const client = new MongoClient(server.url)
    let databases = 0
    return {
      make: async () => {
        const name = `harel_interop_${process.pid}_${++databases}`
        const url = new URL(server.url)
        url.pathname = `/${name}`
        return {
          url: url.href,
          open: (options) => MongoStore.connect(url.href, options),
          [Symbol.asyncDispose]: async () => void (await client.db(name).dropDatabase()),
        }
      },
      [Symbol.asyncDispose]: async () => {
        await client.close()
        await server.stop()
      },
    }
  },
}
