import { type CheckedTimerPage, compareBytes, type DueTimer } from '@harel/store-base'
import type { Connection } from './client.js'
import { BY_DUE } from './tables.js'
import { type Item, number, S, text, time, timeOf } from './values.js'

const compare = (a: DueTimer, b: DueTimer): number =>
  a.fireAt - b.fireAt || compareBytes(a.executionId, b.executionId) || compareBytes(a.path, b.path)

const toTimer = (item: Item): DueTimer => ({
  executionId: text(item.execution_id),
  path: text(item.path),
  fireAt: timeOf(item),
})

const isWanted =
  (now: number, after: DueTimer | undefined) =>
  (timer: DueTimer): boolean =>
    timer.fireAt <= now && (after === undefined || compare(timer, after) > 0)

/** The due timers of a table that has no order: all of them are read. */
export async function scanTimers(
  connection: Connection,
  TableName: string,
  now: number,
  { after, limit }: CheckedTimerPage,
): Promise<DueTimer[]> {
  const due: DueTimer[] = []
  const values = { ':now': time(now), ':from': time(after?.fireAt ?? Number.NEGATIVE_INFINITY) }
  const FilterExpression = 'fire_at BETWEEN :from AND :now'
  const range = { TableName, FilterExpression, ExpressionAttributeValues: values }
  for await (const { items } of connection.scan(range)) due.push(...items.map(toTimer).filter(isWanted(now, after)))
  return due.sort(compare).slice(0, limit)
}

/**
 * The due timers by the index, which has them in the order of their times. It follows the table with a delay, so what it
 * shows is looked at in the table: no timer is reported that was cancelled or armed anew before the call.
 */
export async function queryTimers(
  connection: Connection,
  TableName: string,
  now: number,
  { after, limit }: CheckedTimerPage,
): Promise<DueTimer[]> {
  const due: DueTimer[] = []
  const pages = connection.query({
    TableName,
    IndexName: BY_DUE,
    KeyConditionExpression: '#all = :all AND fire_at BETWEEN :from AND :now',
    ExpressionAttributeNames: { '#all': 'all' },
    ExpressionAttributeValues: {
      ':all': S('timers'),
      ':now': time(now),
      ':from': time(after?.fireAt ?? Number.NEGATIVE_INFINITY),
    },
    ...(Number.isFinite(limit) && { Limit: limit + 1 }),
  })
  const seen = new Set<string>()
  for await (const { items } of pages) {
    const stored = await connection.getAll(TableName, unseen(items, seen))
    due.push(...stored.map(toTimer).filter(isWanted(now, after)))
    due.sort(compare)
    // Those of one time come in any order, so that time has to be passed.
    const passed = number(items.at(-1)?.fire_at)
    if (due.length >= limit && passed > number(time(due[limit - 1]?.fireAt ?? now))) break
  }
  return due.slice(0, limit)
}

/** The keys of the items that are new; one that is armed anew meanwhile shows at both times. */
function unseen(items: readonly Item[], seen: Set<string>): Item[] {
  const keys: Item[] = []
  for (const { execution_id = S(''), path = S('') } of items) {
    // No key holds a NUL.
    const name = `${text(execution_id)}\0${text(path)}`
    if (!seen.has(name)) keys.push({ execution_id, path })
    seen.add(name)
  }
  return keys
}
