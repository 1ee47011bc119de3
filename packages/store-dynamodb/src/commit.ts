import type { TransactWriteItem } from '@aws-sdk/client-dynamodb'
import { CommitTooLarge, type PreparedCommit } from '@harel/store-base'
import type { Settings } from './options.js'
import type { Tables } from './tables.js'
import { type Item, N, numberOrNull, S, SOrNull, sizeOf, time } from './values.js'

/** Limits of DynamoDB. Source: "Amazon DynamoDB Transactions: How it works" and "Service quotas" of its documentation. */
export const MAX_WRITES = 100
export const MAX_ITEM = 400 * 1024
const MAX_TRANSACTION = 4 * 1024 * 1024

/** What was found out before the write. */
export interface CommitNumbers {
  readonly outbox: number
  readonly spawn: number
  /** The index of the trace step. */
  readonly trace: number
}

/** The attributes of an execution but for its id. Python harel has the first three, and drops the others when it writes. */
const attributesOf = (c: PreparedCommit): Item => ({
  data: S(c.data),
  version: N(c.version),
  definition_id: S(c.definitionId),
  summary_version: N(c.version),
  status: S(c.status),
  outcome: SOrNull(c.outcome),
  active_path: SOrNull(c.activePath),
  parent_id: SOrNull(c.parentId),
  finished_at: c.finishedAt === null ? { NULL: true } : N(c.finishedAt),
})

/**
 * The commit as the items of one transaction, that of the execution first.
 *
 * @throws CommitTooLarge, before anything is sent
 */
export function commitItems(
  commit: PreparedCommit,
  numbers: CommitNumbers,
  tables: Tables,
  settings: Settings,
): TransactWriteItem[] {
  const { id, expected, emits, spawns, timers, trace, processedEventId } = commit
  const { traceMax } = settings
  const put = (TableName: string, Item: Item): TransactWriteItem => ({ Put: { TableName, Item } })
  const companions: TransactWriteItem[] = [
    ...emits.map(({ targetId, event }, index) =>
      put(tables.outbox, { seq: N(numbers.outbox + index), target_id: SOrNull(targetId), event: S(event) }),
    ),
    ...spawns.map(({ childId, rootPath, context }, index) =>
      put(tables.spawns, {
        seq: N(numbers.spawn + index),
        parent_id: S(id),
        child_id: S(childId),
        root_path: S(rootPath),
        context: S(context),
      }),
    ),
    ...(processedEventId === undefined
      ? []
      : [put(tables.processed, { execution_id: S(id), event_id: S(processedEventId) })]),
    ...timers.map((op): TransactWriteItem => {
      const key = { execution_id: S(id), path: S(op.path) }
      return op.action === 'cancel'
        ? { Delete: { TableName: tables.timers, Key: key } }
        : put(tables.timers, { ...key, fire_at: time(op.fireAt), all: S('timers') })
    }),
    ...(trace === undefined ? [] : traceItems(id, trace, numbers.trace, traceMax, tables)),
  ]
  const execution = executionItem(commit, tables)
  check([execution, ...companions])
  checkSize(attributesOf(commit), id)
  return [execution, ...companions]

  function executionItem(c: PreparedCommit, { executions }: Tables): TransactWriteItem {
    const attributes = Object.entries(attributesOf(c))
    return {
      Update: {
        TableName: executions,
        Key: { id: S(id) },
        UpdateExpression: `SET ${attributes.map((_, index) => `#a${index} = :a${index}`).join(', ')}`,
        ConditionExpression: expected === 0 ? 'attribute_not_exists(id) OR #a1 = :expected' : '#a1 = :expected',
        ExpressionAttributeNames: Object.fromEntries(attributes.map(([name], index) => [`#a${index}`, name])),
        ExpressionAttributeValues: {
          ...Object.fromEntries(attributes.map(([, value], index) => [`:a${index}`, value])),
          ':expected': N(expected),
        },
        // The stored version comes with the refusal.
        ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
      },
    }
  }
}

/** The step, if nobody else has taken its index, and the end of the one that falls out of the ring. */
function traceItems(id: string, entry: string, index: number, traceMax: number, tables: Tables): TransactWriteItem[] {
  const { trace: TableName } = tables
  const step: TransactWriteItem = {
    Put: {
      TableName,
      Item: { execution_id: S(id), idx: N(index), entry: S(entry) },
      ConditionExpression: 'attribute_not_exists(execution_id)',
    },
  }
  if (traceMax === 0 || index < traceMax) return [step]
  return [step, { Delete: { TableName, Key: { execution_id: S(id), idx: N(index - traceMax) } } }]
}

function check(items: readonly TransactWriteItem[]): void {
  if (items.length > MAX_WRITES) throw new CommitTooLarge('writes', items.length, MAX_WRITES)
  const sizes = items.map(({ Put, Update, Delete }) =>
    sizeOf(Put?.Item ?? Update?.ExpressionAttributeValues ?? Delete?.Key ?? {}),
  )
  const total = sizes.reduce((sum, size) => sum + size, 0)
  if (total > MAX_TRANSACTION) throw new CommitTooLarge('bytes', total, MAX_TRANSACTION)
  for (const { Put } of items) if (Put?.Item !== undefined) checkSize(Put.Item, '')
}

function checkSize(item: Item, id: string): void {
  const size = sizeOf(item) + id.length * 3 + 'id'.length
  if (size > MAX_ITEM) throw new CommitTooLarge('bytes in one item', size, MAX_ITEM)
}

/** The version in an item that a refusal brought along; null when there was none. */
export const foundVersion = (item: Item | undefined): number | null =>
  item === undefined || Object.keys(item).length === 0 ? null : numberOrNull(item.version)
