import type { TransactWriteItem } from '@aws-sdk/client-dynamodb'
import { newId } from '@harel/store-base'
import type { Connection } from './client.js'
import { MAX_WRITES } from './commit.js'
import { PURGED } from './listing.js'
import type { Tables } from './tables.js'
import { type Item, N, number, S } from './values.js'

interface Guard {
  readonly ConditionExpression: string
  readonly ExpressionAttributeValues?: Item
}

const ABSENT: Guard = { ConditionExpression: 'attribute_not_exists(id)' }
const at = (version: number): Guard => ({
  ConditionExpression: 'version = :version',
  ExpressionAttributeValues: { ':version': N(version) },
})

/**
 * Removes an execution with what is its own. What is more than one transaction takes is removed by several: the first
 * marks the execution, at a version that no commit expects, so that nobody goes on from it or is born in its place; the
 * last removes it. Each is good only while the mark stands, so who comes too late harms no later life, and anybody can
 * finish a purge that broke off.
 *
 * @returns whether this call has removed it at the expected version
 */
export async function purge(
  connection: Connection,
  tables: Tables,
  id: string,
  expectedVersion: number,
): Promise<boolean> {
  const key = { TableName: tables.executions, Key: { id: S(id) } }
  const stored = await connection.get(key.TableName, key.Key)
  const version = stored === undefined ? undefined : number(stored.version)
  const purged = version === PURGED ? number(stored?.purged_version) : version
  if (version !== undefined && version !== PURGED && version !== expectedVersion) return false

  const owned = await ownedBy(connection, tables, id)
  let guard = version === undefined ? ABSENT : at(version)
  if (owned.length >= MAX_WRITES && version === expectedVersion) {
    if (!(await write([mark(key, expectedVersion)]))) return false
    guard = at(PURGED)
  }
  while (owned.length >= MAX_WRITES) {
    if (!(await write([{ ConditionCheck: { ...key, ...guard } }, ...owned.splice(0, MAX_WRITES - 1)]))) return false
  }
  const last = version === undefined ? { ConditionCheck: { ...key, ...guard } } : { Delete: { ...key, ...guard } }
  if (version === undefined && owned.length === 0) return false
  return (await write([last, ...owned])) && purged === expectedVersion

  async function write(writes: TransactWriteItem[]): Promise<boolean> {
    return (await connection.transact(writes, newId())) === undefined
  }
}

const mark = (key: { TableName: string; Key: Item }, version: number): TransactWriteItem => ({
  Update: {
    ...key,
    ...at(version),
    UpdateExpression: 'SET version = :mark, purged_version = :version',
    ExpressionAttributeValues: { ':mark': N(PURGED), ':version': N(version) },
  },
})

/** The deletions of what goes with an execution. */
async function ownedBy(
  connection: Connection,
  { processed, timers, trace, outbox, spawns }: Tables,
  id: string,
): Promise<TransactWriteItem[]> {
  const found = async (TableName: string, pages: AsyncIterable<{ items: Item[] }>): Promise<TransactWriteItem[]> => {
    const writes: TransactWriteItem[] = []
    for await (const { items } of pages) writes.push(...items.map((Key) => ({ Delete: { TableName, Key } })))
    return writes
  }
  const values = { ':id': S(id) }
  const under = (TableName: string, range: string) =>
    found(
      TableName,
      connection.query({
        TableName,
        KeyConditionExpression: 'execution_id = :id',
        ExpressionAttributeValues: values,
        ProjectionExpression: 'execution_id, #range',
        ExpressionAttributeNames: { '#range': range },
      }),
    )
  const queued = (TableName: string, attribute: string) =>
    found(
      TableName,
      connection.scan({
        TableName,
        FilterExpression: `${attribute} = :id`,
        ExpressionAttributeValues: values,
        ProjectionExpression: 'seq',
      }),
    )
  const all = await Promise.all([
    under(processed, 'event_id'),
    under(timers, 'path'),
    under(trace, 'idx'),
    queued(outbox, 'target_id'),
    queued(spawns, 'parent_id'),
  ])
  return all.flat()
}
