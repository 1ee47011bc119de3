/** The SDK alone: a number for each entry, then a transaction of the same items; scans of tables that have no order. */
import { randomUUID } from 'node:crypto'
import {
  type AttributeValue,
  BatchWriteItemCommand,
  DynamoDBClient,
  type DynamoDBClientConfig,
  GetItemCommand,
  paginateScan,
  QueryCommand,
  ScanCommand,
  type ScanCommandInput,
  TransactGetItemsCommand,
  type TransactWriteItem,
  TransactWriteItemsCommand,
  UpdateItemCommand,
  type WriteRequest,
} from '@aws-sdk/client-dynamodb'
import { type Actions, PAGE } from '../contender.ts'
import { KEPT, nextEventId, type Subject, wireEvent, wireFull } from '../subjects.ts'
import { sequence } from './gather.ts'

export const configOf = (endpoint: string): DynamoDBClientConfig => ({
  endpoint,
  region: 'eu-central-1',
  credentials: { accessKeyId: 'key', secretAccessKey: 'secret' },
  // As many as are measured at once.
  requestHandler: { httpAgent: { keepAlive: true, maxSockets: 256 } },
})

export const connect = (endpoint: string): DynamoDBClient => new DynamoDBClient(configOf(endpoint))

type Item = Record<string, AttributeValue>

const S = (text: string) => ({ S: text })
const N = (value: number) => ({ N: String(value) })
const orNull = (text: string | null) => (text === null ? { NULL: true as const } : S(text))
const number = (value: AttributeValue | undefined): number => Number(value?.N)
const text = (value: AttributeValue | undefined): string => value?.S ?? ''
const put = (TableName: string, Item: Item): TransactWriteItem => ({ Put: { TableName, Item } })

/** How many entries are deleted together at most. */
const DELETES = 25

/** The execution at its next version. */
function stateOf({ execution, wire }: Subject): TransactWriteItem {
  wire.version = execution.version + 1
  const Update = {
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
  return { Update }
}

const markOf = (id: string, eventId: string) => put('harel_processed', { execution_id: S(id), event_id: S(eventId) })

/** On the tables of the store. */
export function byHand(client: DynamoDBClient): Actions {
  const numbers = (id: string) =>
    sequence(async (count) => {
      const command = new UpdateItemCommand({
        TableName: 'harel_counters',
        Key: { id: S(id) },
        UpdateExpression: 'ADD n :count',
        ExpressionAttributeValues: { ':count': N(count) },
        ReturnValues: 'UPDATED_NEW',
      })
      return number((await client.send(command)).Attributes?.n)
    })
  const outbox = numbers('outbox')
  const spawns = numbers('spawn')
  const eventsOf = async (id: string, events: readonly string[]) => {
    const first = await outbox(events.length)
    return events.map((event, index) =>
      put('harel_outbox', { seq: N(first + index), target_id: S(id), event: S(event) }),
    )
  }
  /** With a token, so that it is done once also when the client sends it again. */
  const write = async ({ execution }: Subject, TransactItems: TransactWriteItem[]) => {
    await client.send(new TransactWriteItemsCommand({ ClientRequestToken: randomUUID(), TransactItems }))
    execution.version += 1
  }
  const nextStep = async (id: string) => {
    const command = new QueryCommand({
      TableName: 'harel_trace',
      KeyConditionExpression: 'execution_id = :id',
      ExpressionAttributeValues: { ':id': S(id) },
      ScanIndexForward: false,
      Limit: 1,
      ConsistentRead: true,
    })
    const [last] = (await client.send(command)).Items ?? []
    return last === undefined ? 0 : number(last.idx) + 1
  }
  return {
    ...readsByHand(client),
    state: (subject) => write(subject, [stateOf(subject)]),
    commit: async (subject) => {
      const { id } = subject.execution
      const eventId = nextEventId()
      const state = stateOf(subject)
      const events = await eventsOf(id, [JSON.stringify(wireEvent(eventId))])
      await write(subject, [state, ...events, markOf(id, eventId)])
    },
    full: async (subject) => {
      const { id } = subject.execution
      const eventId = nextEventId()
      const { events, timers, spawn, trace } = wireFull(eventId)
      const state = stateOf(subject)
      const [emitted, seq, idx] = await Promise.all([eventsOf(id, events), spawns(1), nextStep(id)])
      const child = { child_id: S(spawn.childId), root_path: S(spawn.rootPath), context: S(spawn.context) }
      const step = { execution_id: S(id), idx: N(idx), entry: S(trace) }
      const isFree = 'attribute_not_exists(execution_id)'
      const tooOld = { TableName: 'harel_trace', Key: { execution_id: S(id), idx: N(idx - KEPT) } }
      await write(subject, [
        state,
        ...emitted,
        put('harel_spawns', { seq: N(seq), parent_id: S(id), ...child }),
        markOf(id, eventId),
        ...timers.map(({ path, fireAt }) =>
          put('harel_timers', { execution_id: S(id), path: S(path), fire_at: N(fireAt), all: S('timers') }),
        ),
        { Put: { TableName: 'harel_trace', Item: step, ConditionExpression: isFree } },
        ...(idx < KEPT ? [] : [{ Delete: tooOld }]),
      ])
    },
  }
}

const byText = (a: string, b: string): number => (a < b ? -1 : Number(a > b))

function readsByHand(client: DynamoDBClient) {
  const scan = async (input: ScanCommandInput) => {
    const items: Item[] = []
    for await (const { Items = [] } of paginateScan({ client }, { ...input, ConsistentRead: true }))
      items.push(...Items)
    return items
  }
  const page = async () => {
    const items = await scan({ TableName: 'harel_outbox' })
    const entries = items.map(({ seq, event }) => ({ seq: number(seq), event: text(event) }))
    const first = entries.sort((a, b) => a.seq - b.seq).slice(0, PAGE)
    return first.map(({ seq, event }) => ({ seq, event: JSON.parse(event) }))
  }
  const remove = async (requests: WriteRequest[]) => {
    for (let left = requests; left.length > 0; ) {
      const command = new BatchWriteItemCommand({ RequestItems: { harel_outbox: left } })
      left = (await client.send(command)).UnprocessedItems?.harel_outbox ?? []
    }
  }
  return {
    load: async (id: string) => {
      const command = new GetItemCommand({ TableName: 'harel_executions', Key: { id: S(id) }, ConsistentRead: true })
      return JSON.parse(text((await client.send(command)).Item?.data))
    },
    loadForEvent: async (id: string) => {
      const mark = { execution_id: S(id), event_id: S(nextEventId()) }
      const command = new TransactGetItemsCommand({
        TransactItems: [
          { Get: { TableName: 'harel_executions', Key: { id: S(id) } } },
          { Get: { TableName: 'harel_processed', Key: mark } },
        ],
      })
      const { Responses: [execution, marked] = [] } = await client.send(command)
      return { execution: JSON.parse(text(execution?.Item?.data)), processed: marked?.Item?.event_id !== undefined }
    },
    page,
    relay: async () => {
      const entries = await page()
      const requests = entries.map(({ seq }) => ({ DeleteRequest: { Key: { seq: N(seq) } } }))
      const starts = Array.from({ length: Math.ceil(requests.length / DELETES) }, (_, index) => index * DELETES)
      await Promise.all(starts.map((start) => remove(requests.slice(start, start + DELETES))))
      return entries
    },
    timers: async (now: number) => {
      const values = { ':now': N(now) }
      const isDue = { FilterExpression: 'fire_at <= :now', ExpressionAttributeValues: values }
      const items = await scan({ TableName: 'harel_timers', ...isDue })
      const due = items.map(({ execution_id, path, fire_at }) => {
        return { id: text(execution_id), path: text(path), fireAt: number(fire_at) }
      })
      return due.sort((a, b) => a.fireAt - b.fireAt || byText(a.id, b.id) || byText(a.path, b.path)).slice(0, PAGE)
    },
    list: async ({ after }: { after: string }) => {
      const command = new ScanCommand({
        TableName: 'harel_executions',
        ProjectionExpression: 'id, definition_id, version, #status, outcome, active_path, parent_id, finished_at',
        ExpressionAttributeNames: { '#status': 'status' },
        Limit: PAGE,
        ExclusiveStartKey: after === '' ? undefined : { id: S(after) },
        ConsistentRead: true,
      })
      return (await client.send(command)).Items ?? []
    },
  }
}
