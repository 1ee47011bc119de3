import type { TransactWriteItem } from '@aws-sdk/client-dynamodb'
import { CommitTooLarge, type PreparedCommit } from '@harel/store-base'
import type { Tables } from './tables.js'
import { doubleOrNull, type Item, N, S, SOrNull, sizeOf, timeAttributes } from './values.js'

/** Limits of DynamoDB. Source: "Quotas in Amazon DynamoDB" and TransactWriteItems in its documentation. */
export const MAX_WRITES = 100
export const MAX_ITEM = 400 * 1024
const MAX_TRANSACTION = 4 * 1024 * 1024

/** What is known only after requests of their own: the first number for the outbox and that for the spawns. */
export interface CommitNumbers {
  readonly outbox: number
  readonly spawn: number
}

/** The writes of a commit but for those to the trace, checked before anything is sent. */
export interface CommitWrites {
  /** How many more writes the transaction has room for once the trace step is in it. */
  readonly room: number
  /** The writes with these numbers, that of the execution first. */
  numbered(numbers: CommitNumbers): TransactWriteItem[]
}

/** @throws CommitTooLarge */
export function commitWrites(commit: PreparedCommit, tables: Tables): CommitWrites {
  const { id, emits, spawns, timers, trace, processedEventId } = commit
  const attributes = attributesOf(commit)
  const events = emits.map(({ targetId, event }): Item => ({ target_id: SOrNull(targetId), event: S(event) }))
  const children = spawns.map(
    ({ childId, rootPath, context }): Item => ({
      parent_id: S(id),
      child_id: S(childId),
      root_path: S(rootPath),
      context: S(context),
    }),
  )
  const mark = processedEventId === undefined ? [] : [{ execution_id: S(id), event_id: S(processedEventId) }]
  const steps = trace === undefined ? [] : [{ execution_id: S(id), entry: S(trace) }]
  const armed = timers.map((op) => ({ op, key: { execution_id: S(id), path: S(op.path) } }))

  const writes = 1 + events.length + children.length + mark.length + armed.length + steps.length
  if (writes > MAX_WRITES) throw new CommitTooLarge('writes', writes, MAX_WRITES)
  const counted = [...events, ...children, ...steps].map((item) => ({ ...item, seq: N(0) }))
  const bytes = checkSizes([{ id: S(id), ...attributes }, ...counted])
  // What a write deletes may count as well.
  const spare = Math.floor((MAX_TRANSACTION - bytes) / MAX_ITEM) - 1

  const put = (TableName: string, Item: Item): TransactWriteItem => ({ Put: { TableName, Item } })
  return {
    room: Math.max(0, Math.min(MAX_WRITES - writes, spare)),
    numbered: ({ outbox, spawn }) => [
      { Update: { TableName: tables.executions, Key: { id: S(id) }, ...guardedUpdate(attributes, commit.expected) } },
      ...events.map((item, index) => put(tables.outbox, { seq: N(outbox + index), ...item })),
      ...children.map((item, index) => put(tables.spawns, { seq: N(spawn + index), ...item })),
      ...mark.map((item) => put(tables.processed, item)),
      ...armed.map(({ op, key }) =>
        op.action === 'cancel'
          ? { Delete: { TableName: tables.timers, Key: key } }
          : put(tables.timers, { ...key, ...timeAttributes(op.fireAt), all: S('timers') }),
      ),
    ],
  }
}

/** The attributes of an execution but for its id: its payload, and what listings show. */
const attributesOf = (commit: PreparedCommit): Item => ({
  data: S(commit.data),
  definition_id: S(commit.definitionId),
  version: N(commit.version),
  summary_version: N(commit.version),
  status: S(commit.status),
  outcome: SOrNull(commit.outcome),
  active_path: SOrNull(commit.activePath),
  parent_id: SOrNull(commit.parentId),
  finished_at: doubleOrNull(commit.finishedAt),
})

/** Sets the attributes and leaves others, if the version is the expected one; the refusal brings along what is stored. */
function guardedUpdate(attributes: Item, expected: number) {
  const entries = Object.entries(attributes)
  return {
    UpdateExpression: `SET ${entries.map((_, index) => `#a${index} = :a${index}`).join(', ')}`,
    // Others may have stored it at version 0, as one that nobody has committed yet.
    ConditionExpression: `${expected === 0 ? 'attribute_not_exists(id) OR ' : ''}version = :expected`,
    ExpressionAttributeNames: Object.fromEntries(entries.map(([name], index) => [`#a${index}`, name])),
    ExpressionAttributeValues: {
      ...Object.fromEntries(entries.map(([, value], index) => [`:a${index}`, value])),
      ':expected': N(expected),
    },
    ReturnValuesOnConditionCheckFailure: 'ALL_OLD' as const,
  }
}

/** The bytes of all items. @throws CommitTooLarge */
function checkSizes(items: readonly Item[]): number {
  let total = 0
  for (const item of items) {
    const size = sizeOf(item)
    if (size > MAX_ITEM) throw new CommitTooLarge('bytes in one item', size, MAX_ITEM)
    total += size
  }
  if (total > MAX_TRANSACTION) throw new CommitTooLarge('bytes', total, MAX_TRANSACTION)
  return total
}
