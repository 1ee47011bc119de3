import { type CommitChanges, type Execution, newEvent, newExecution } from '@harel/store-base'
import { type MongoOptions, MongoStore } from '@harel/store-mongo'
import { type Db, type Document, MongoClient, type MongoClientOptions } from 'mongodb'
import { afterAll, onTestFinished } from 'vitest'

let databases = 0

/**
 * A database for the tests of a file, which goes with them.
 *
 * @param options of the client of `db`
 */
export function useDatabase(
  server: { url: string },
  options: MongoClientOptions = {},
): { readonly url: string; db: () => Db } {
  const url = new URL(server.url)
  url.pathname = `/harel_test_${process.pid}_${++databases}`
  let client: MongoClient | undefined
  const db = () => {
    client ??= new MongoClient(url.href, options)
    return client.db()
  }
  afterAll(async () => {
    await db().dropDatabase()
    await client?.close()
  })
  return { url: url.href, db }
}

/** A client past the stores, which goes with the test. */
export function connect(url: string, options: MongoClientOptions = {}): MongoClient {
  const client = new MongoClient(url, options)
  onTestFinished(() => client.close())
  return client
}

/** A store of its own client, which goes with the test. */
export async function open(
  url: string,
  options: MongoOptions & { client?: MongoClientOptions } = {},
): Promise<MongoStore> {
  const store = await MongoStore.connect(url, options)
  onTestFinished(() => store.close())
  return store
}

let prefixes = 0

/** A prefix under which there is nothing yet in the database of this file. */
export const newPrefix = (): string => `p${++prefixes}`

export const execution = (id: string, fields: Partial<Execution> = {}): Execution =>
  newExecution({ id, definitionId: 'd', ...fields })

/** One of everything that a commit can write. */
export const everything = (name: string): CommitChanges => ({
  emits: [{ targetId: name, event: newEvent({ kind: 'Tick' }) }],
  processedEventId: `${name}-event`,
  timers: [{ action: 'schedule', path: 'P', fireAt: 1 }],
  spawns: [{ childId: `${name}-child`, rootPath: '', context: {} }],
  trace: { event: 'Tick' },
})

/** A store on a client of the caller's. */
export const storeOn = (db: Db, options: MongoOptions = {}): MongoStore => new MongoStore(db, options)

/** All documents under a prefix, by collection. */
export async function documentsOf(db: Db, prefix: string): Promise<Record<string, Document[]>> {
  const collections = await db.listCollections().toArray()
  const documents: Record<string, Document[]> = {}
  for (const { name } of collections.filter((each) => each.name.startsWith(`${prefix}_`))) {
    documents[name.slice(prefix.length + 1)] = await db.collection(name).find().sort({ _id: 1 }).toArray()
  }
  return documents
}
