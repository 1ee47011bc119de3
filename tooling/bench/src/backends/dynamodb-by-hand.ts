/** The SDK alone: a number for the event, then a transaction of the same items. */
import { randomUUID } from 'node:crypto'
import {
  type DynamoDBClient,
  GetItemCommand,
  TransactWriteItemsCommand,
  UpdateItemCommand,
} from '@aws-sdk/client-dynamodb'
import type { Actions } from '../contender.ts'
import { nextEventId, type Subject, wireEvent } from '../subjects.ts'

const S = (text: string) => ({ S: text })
const N = (value: number) => ({ N: String(value) })
const orNull = (text: string | null) => (text === null ? { NULL: true as const } : S(text))

/** On the tables of the store. */
export const byHand = (client: DynamoDBClient): Partial<Actions> => ({
  commit: (subject) => commit(client, subject),
  load: async (id) => {
    const request = { TableName: 'harel_executions', Key: { id: S(id) }, ConsistentRead: true }
    const { Item } = await client.send(new GetItemCommand(request))
    return JSON.parse(Item?.data?.S ?? '')
  },
})

async function commit(client: DynamoDBClient, subject: Subject): Promise<number[]> {
  const { execution, wire } = subject
  const counted = await client.send(
    new UpdateItemCommand({
      TableName: 'harel_counters',
      Key: { id: S('outbox') },
      UpdateExpression: 'ADD n :one',
      ExpressionAttributeValues: { ':one': N(1) },
      ReturnValues: 'UPDATED_NEW',
    }),
  )
  const seq = counted.Attributes?.n
  if (seq === undefined) throw new Error('no number was taken')
  const eventId = nextEventId()
  wire.version = execution.version + 1
  const update = {
    TableName: 'harel_executions',
    Key: { id: S(wire.id) },
    UpdateExpression: `SET #data = :data, definition_id = :definition, version = :version, summary_version = :version,
      #status = :status, outcome = :outcome, active_path = :path, parent_id = :parent, finished_at = :finished`,
    ConditionExpression: 'version = :expected',
    ExpressionAttributeNames: { '#data': 'data', '#status': 'status' },
    ExpressionAttributeValues: {
      ':data': S(JSON.stringify(wire)),
      ':definition': S(wire.definition_id),
      ':version': N(wire.version),
      ':status': S(wire.status),
      ':outcome': orNull(wire.outcome),
      ':path': orNull(wire.active_path),
      ':parent': orNull(wire.parent_id),
      ':finished': orNull(null),
      ':expected': N(execution.version),
    },
  }
  const event = { seq, target_id: S(wire.id), event: S(JSON.stringify(wireEvent(eventId))) }
  const mark = { execution_id: S(wire.id), event_id: S(eventId) }
  await client.send(
    new TransactWriteItemsCommand({
      ClientRequestToken: randomUUID(),
      TransactItems: [
        { Update: update },
        { Put: { TableName: 'harel_outbox', Item: event } },
        { Put: { TableName: 'harel_processed', Item: mark } },
      ],
    }),
  )
  execution.version += 1
  return [Number(seq.N)]
}
