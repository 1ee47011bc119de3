import { type DynamoDBClient, QueryCommand, ScanCommand } from '@aws-sdk/client-dynamodb'
import {
  type CheckedListQuery,
  compareBytes,
  type ExecutionSummary,
  listingPage,
  matches,
  STATUSES,
  type SummaryRow,
  type SummaryRows,
  summaryOfPayload,
} from '@harel/store-base'
import { patiently } from './errors.js'
import { BY_STATUS } from './tables.js'
import { type Item, number, numberOrNull, S, text, textOrNull } from './values.js'

type Page = (from: Item | undefined) => Promise<{ Items?: Item[] | undefined; LastEvaluatedKey?: Item | undefined }>
type Load = (id: string) => Promise<string | undefined>

const ATTRIBUTES = [
  'id',
  'definition_id',
  'version',
  'summary_version',
  'status',
  'outcome',
  'active_path',
  'parent_id',
  'finished_at',
]
const PROJECTION = {
  ProjectionExpression: ATTRIBUTES.map((_, index) => `#p${index}`).join(', '),
  ExpressionAttributeNames: Object.fromEntries(ATTRIBUTES.map((name, index) => [`#p${index}`, name])),
}

/**
 * A page of summaries: with the index, in order of ids out of its ranges, one for each status; without, in the order of a
 * scan, which goes on behind any key.
 */
export async function list(
  client: DynamoDBClient,
  TableName: string,
  query: CheckedListQuery,
  gsi: boolean,
  load: Load,
): Promise<SummaryRows> {
  const { position, limit } = query
  if (!gsi) {
    const page: Page = (from) => {
      const start = from ?? (position === null ? undefined : { id: S(position) })
      const command = new ScanCommand({
        TableName,
        ConsistentRead: true,
        ExclusiveStartKey: start,
        Limit: 1000,
        ...PROJECTION,
      })
      return patiently(() => client.send(command), false)
    }
    return listingPage(await collect(page, query, load), limit)
  }
  const ranges = (query.statuses ?? STATUSES).map((status) => {
    const page: Page = (from) => {
      const command = new QueryCommand({
        TableName,
        IndexName: BY_STATUS,
        KeyConditionExpression: position === null ? '#status = :status' : '#status = :status AND id > :position',
        ExpressionAttributeValues: { ':status': S(status), ...(position !== null && { ':position': S(position) }) },
        ExclusiveStartKey: from,
        Limit: limit + 1,
        ProjectionExpression: PROJECTION.ProjectionExpression,
        ExpressionAttributeNames: { ...PROJECTION.ExpressionAttributeNames, '#status': 'status' },
      })
      return patiently(() => client.send(command), false)
    }
    return collect(page, query, load)
  })
  const rows = (await Promise.all(ranges)).flat()
  return listingPage(
    rows.sort((a, b) => compareBytes(a.id, b.id)),
    limit,
  )
}

/** Up to `limit + 1` rows that pass the filters; an empty page with a key to go on from is not the end. */
async function collect(page: Page, query: CheckedListQuery, load: Load): Promise<SummaryRow[]> {
  const rows: SummaryRow[] = []
  let from: Item | undefined
  do {
    const { Items = [], LastEvaluatedKey } = await page(from)
    for (const item of Items) {
      const row = await toRow(item, load)
      if (row !== undefined && (row.status === null || matches(row as ExecutionSummary, query))) rows.push(row)
      if (rows.length > query.limit) return rows
    }
    from = LastEvaluatedKey
  } while (from !== undefined)
  return rows
}

/** The summary of an item; where another writer has dropped it, that of the payload. */
async function toRow(item: Item, load: Load): Promise<SummaryRow | undefined> {
  const id = text(item.id)
  const version = number(item.version)
  if (numberOrNull(item.summary_version) === version) {
    return {
      id,
      definitionId: text(item.definition_id),
      version,
      status: textOrNull(item.status),
      outcome: textOrNull(item.outcome),
      activePath: textOrNull(item.active_path),
      parentId: textOrNull(item.parent_id),
      finishedAt: numberOrNull(item.finished_at),
    }
  }
  const data = await load(id)
  return data === undefined ? undefined : summaryOfPayload(id, data)
}
