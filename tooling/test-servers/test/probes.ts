import { Redis } from 'ioredis'
import { MongoClient } from 'mongodb'
import postgresClient from 'postgres'
import { request } from '../src/http.ts'
import type { Probe } from './survives.ts'

const sql = async (url: string, text: string) => {
  const client = postgresClient(url, { max: 1, prepare: false })
  try {
    return await client.unsafe(text)
  } finally {
    await client.end({ timeout: 0 })
  }
}

export const postgres: Probe = {
  write: (url) => sql(url, "create table kept (value text); insert into kept values ('kept')"),
  read: async (url) => (await sql(url, 'select value from kept'))[0]?.value,
}

const command = async (url: string, ...args: [string, ...string[]]) => {
  const client = new Redis(url, { retryStrategy: () => null, maxRetriesPerRequest: 0 })
  client.on('error', () => {})
  try {
    return await client.call(...args)
  } finally {
    client.disconnect()
  }
}

export const redis: Probe = {
  write: (url) => command(url, 'SET', 'key', 'kept'),
  read: (url) => command(url, 'GET', 'key'),
}

// What the servers answer is a fact of theirs; a test that gets something else fails by itself.
const json = async <T>(url: string, path: string, body: unknown, headers = {}): Promise<T> =>
  (await (await request(url, path, body, headers)).json()) as T

export const rqlite: Probe = {
  write: (url) =>
    json(url, '/db/execute?transaction', ['create table kept (value)', "insert into kept values ('kept')"]),
  async read(url) {
    const path = '/db/query?level=strong'
    const { results } = await json<{ results: { values: unknown[][] }[] }>(url, path, ['select value from kept'])
    return results[0]?.values[0]?.[0]
  },
}

interface PipelineAnswer {
  results: { response: { result: { rows: { value: unknown }[][] } } }[]
}
const pipeline = (url: string, text: string) =>
  json<PipelineAnswer>(url, '/v2/pipeline', { requests: [{ type: 'execute', stmt: { sql: text } }, { type: 'close' }] })

export const libsql: Probe = {
  async write(url) {
    await pipeline(url, 'create table kept (value)')
    await pipeline(url, "insert into kept values ('kept')")
  },
  async read(url) {
    const { results } = await pipeline(url, 'select value from kept')
    return results[0]?.response.result.rows[0]?.[0]?.value
  },
}

const collection = async <T>(
  url: string,
  use: (kept: ReturnType<ReturnType<MongoClient['db']>['collection']>) => Promise<T>,
) => {
  const client = new MongoClient(url, { serverSelectionTimeoutMS: 1000 })
  try {
    return await use(client.db('tests').collection('kept'))
  } finally {
    await client.close()
  }
}

export const mongo: Probe = {
  write: (url) => collection(url, (kept) => kept.insertOne({ value: 'kept' })),
  read: (url) => collection(url, async (kept) => (await kept.findOne({}))?.value),
}

const dynamo = <T>(url: string, target: string, body: unknown): Promise<T> => {
  const credential = 'AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/dynamodb/aws4_request'
  const headers = {
    'content-type': 'application/x-amz-json-1.0',
    'x-amz-target': `DynamoDB_20120810.${target}`,
    'x-amz-date': '20260101T000000Z',
    authorization: `${credential}, SignedHeaders=host;x-amz-date, Signature=0`,
  }
  return json(url, '/', body, headers)
}

export const dynamodb: Probe = {
  async write(url) {
    const schema = {
      AttributeDefinitions: [{ AttributeName: 'id', AttributeType: 'S' }],
      KeySchema: [{ AttributeName: 'id', KeyType: 'HASH' }],
    }
    await dynamo(url, 'CreateTable', { TableName: 'kept', BillingMode: 'PAY_PER_REQUEST', ...schema })
    await dynamo(url, 'PutItem', { TableName: 'kept', Item: { id: { S: '1' }, value: { S: 'kept' } } })
  },
  async read(url) {
    const key = { TableName: 'kept', Key: { id: { S: '1' } }, ConsistentRead: true }
    const { Item } = await dynamo<{ Item?: { value: { S: string } } }>(url, 'GetItem', key)
    return Item?.value.S
  },
}

/** The server processes that served one client's transactions while others were busy as well. */
export async function sessionsOf(url: string, transactions: number): Promise<Set<unknown>> {
  const busy = postgresClient(url, { max: 4, prepare: false, fetch_types: false })
  const client = postgresClient(url, { max: 1, prepare: false, fetch_types: false })
  const sessions = new Set<unknown>()
  for (let count = 0; count < transactions; count++) {
    const others = [1, 2, 3, 4].map(() => busy`select pg_sleep(random() * 0.02)`)
    const [row] = await client`select pg_backend_pid() as pid`
    sessions.add(row?.pid)
    await Promise.all(others)
  }
  await Promise.all([busy.end(), client.end()])
  return sessions
}
