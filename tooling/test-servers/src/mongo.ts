import { type Db, MongoClient } from 'mongodb'
import { fromPyPI } from './install.ts'
import type { Flavoured, Kind } from './server.ts'

export const mongo: Kind<Flavoured> = {
  name: 'mongo',
  flavours: ['8'],

  identify: (url) =>
    ask(url, async (admin) => {
      const { isWritablePrimary } = await admin.command({ hello: 1 })
      if (!isWritablePrimary) throw new Error('not the primary')
      const { version, secantusVersion } = await admin.command({ buildInfo: 1 })
      // The substitute states the MongoDB version that it imitates as well.
      return secantusVersion === undefined
        ? { product: 'mongodb', version: String(version) }
        : { product: 'secantusdb', version: String(secantusVersion) }
    }),

  container: () => ({
    image: 'mongo:8',
    port: 27_017,
    command: ['mongod', '--replSet', 'tests', '--bind_ip_all'],
    url: (host, port) => `mongodb://${host}:${port}/?directConnection=true`,
    prepare: initiate,
  }),

  /** SecantusDB: it speaks MongoDB's protocol, and is what a package registry has. A process of its own, never linked. */
  async start(run) {
    const folder = await fromPyPI('secantusdb-0.7.0b3', ['secantusdb==0.7.0b3'])
    const port = await run.port()
    const url = `mongodb://127.0.0.1:${port}/?directConnection=true`
    // Without --sync-on-commit, SIGKILL loses writes that were acknowledged.
    const args = ['-m', 'secantus', '--host', '127.0.0.1', '--port', String(port), '--sync-on-commit']
    args.push('--storage-path', run.dataDir('secantus'), '--log-level', 'WARNING')
    const environment = { PYTHONPATH: folder }
    const node = await run.launch({
      name: 'secantus',
      url,
      command: 'python3',
      args,
      environment,
      ready: () => mongo.identify(url),
    })
    return [node]
  },
}

/** Makes a fresh server the only member of its replica set: transactions and change streams need one. */
async function initiate(url: string): Promise<void> {
  const config = { _id: 'tests', members: [{ _id: 0, host: '127.0.0.1:27017' }] }
  await ask(url, (admin) => admin.command({ replSetInitiate: config }))
}

async function ask<T>(url: string, question: (admin: Db) => Promise<T>): Promise<T> {
  const client = new MongoClient(url, { serverSelectionTimeoutMS: 2000, connectTimeoutMS: 2000 })
  try {
    return await question(client.db('admin'))
  } finally {
    await client.close()
  }
}
