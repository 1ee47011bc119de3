import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  CreateTableCommand,
  type CreateTableCommandInput,
  type DynamoDBClient,
  PutItemCommand,
} from '@aws-sdk/client-dynamodb'
import type { Item } from './database.js'

const read = (file: string) => JSON.parse(readFileSync(join(import.meta.dirname, 'vectors', file), 'utf8'))

type Stored = Pick<CreateTableCommandInput, 'KeySchema' | 'AttributeDefinitions'> & { Items: Item[] }

/** Makes the tables that Python harel has made, and stores the items that it has written, under this prefix. */
export async function restore(client: DynamoDBClient, name: 'scenario' | 'runner', prefix: string): Promise<void> {
  const tables: Record<string, Stored> = read(`${name}.tables.json`)
  for (const [table, { KeySchema, AttributeDefinitions, Items }] of Object.entries(tables)) {
    const TableName = table.replace(/^harel_/, `${prefix}_`)
    const schema = { TableName, KeySchema, AttributeDefinitions, BillingMode: 'PAY_PER_REQUEST' as const }
    await client.send(new CreateTableCommand(schema))
    for (const Item of Items) await client.send(new PutItemCommand({ TableName, Item }))
  }
}

/** What Python reads from these tables. */
export function readByPython(name: 'scenario' | 'runner'): object {
  // What the program that wrote the tables noted down beside it.
  const { notes: _notes, definition_id: _definition, fired: _fired, ...stored } = read(`${name}.canonical.json`)
  return stored
}

/** An execution as Python stores it: with its `Put`, what we keep beside the payload is gone. */
export const pythonItem = (id: string, version: number, fields: Record<string, unknown> = {}): Item => ({
  id: { S: id },
  data: { S: JSON.stringify({ id, definition_id: 'd', status: 'RUNNING', ...fields, version }) },
  version: { N: String(version) },
  definition_id: { S: 'd' },
})

export const putItem = (client: DynamoDBClient, TableName: string, item: Item) =>
  client.send(new PutItemCommand({ TableName, Item: item }))
