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
import type { Connection } from './client.js'
import { BY_STATUS, SUMMARY } from './tables.js'
import { type Item, number, S, text, textOrNull, toDoubleOrNull } from './values.js'

/** The version of an execution that is being purged: no commit expects it. */
export const PURGED = -1

const shown = ['id', ...SUMMARY].map((name, index) => [`#p${index}`, name] as const)
const PROJECTION = {
  ProjectionExpression: shown.map(([placeholder]) => placeholder).join(', '),
  ExpressionAttributeNames: Object.fromEntries(shown),
}
/** So many executions are looked at at once where most of them may not be wanted. */
const PART = 1000

/** A page of summaries in the order of a scan, which goes on behind any key. */
export async function scanExecutions(
  connection: Connection,
  TableName: string,
  query: CheckedListQuery,
): Promise<SummaryRows> {
  const { position, limit, statuses, definitionId, rootsOnly } = query
  const isFiltered = statuses !== undefined || definitionId !== undefined || rootsOnly
  const start = position === null ? undefined : { id: S(position) }
  const pages = connection.scan({ TableName, Limit: isFiltered ? PART : limit + 1, ...PROJECTION }, start)
  return listingPage(await collect(connection, TableName, pages, query), limit)
}

/**
 * A page of summaries in the order of their ids, by the index of statuses, which follows the table with a delay. Where
 * there are more statuses than one, their ranges are read side by side.
 */
export async function queryExecutions(
  connection: Connection,
  TableName: string,
  query: CheckedListQuery,
): Promise<SummaryRows> {
  const { position, limit, statuses = STATUSES } = query
  const ranges = statuses.map((status) => {
    const pages = connection.query({
      TableName,
      IndexName: BY_STATUS,
      KeyConditionExpression: `#status = :status${position === null ? '' : ' AND id > :position'}`,
      ExpressionAttributeValues: { ':status': S(status), ...(position !== null && { ':position': S(position) }) },
      Limit: limit + 1,
      ProjectionExpression: PROJECTION.ProjectionExpression,
      ExpressionAttributeNames: { ...PROJECTION.ExpressionAttributeNames, '#status': 'status' },
    })
    return collect(connection, TableName, pages, query)
  })
  const rows = (await Promise.all(ranges)).flat()
  return listingPage(
    rows.sort((a, b) => compareBytes(a.id, b.id)),
    limit,
  )
}

/** Up to `limit + 1` rows that pass the filters. */
async function collect(
  connection: Connection,
  TableName: string,
  pages: AsyncIterable<{ items: Item[] }>,
  query: CheckedListQuery,
): Promise<SummaryRow[]> {
  const rows: SummaryRow[] = []
  for await (const { items } of pages) {
    for (const row of await toRows(connection, TableName, items)) {
      // One whose status cannot be told is passed on, to be reported.
      if (row.status === null || matches(row as ExecutionSummary, query)) rows.push(row)
    }
    if (rows.length > query.limit) break
  }
  return rows
}

/** The summaries of items, in their order; where another writer has dropped one, that of the payload. */
async function toRows(connection: Connection, TableName: string, items: readonly Item[]): Promise<SummaryRow[]> {
  const isForeign = ({ version, summary_version }: Item) => version?.N !== summary_version?.N
  const keys = items.filter(isForeign).map(({ id = S('') }) => ({ id }))
  const payloads = new Map((await connection.getAll(TableName, keys)).map((item) => [text(item.id), text(item.data)]))
  return items
    .filter(({ version }) => number(version) !== PURGED)
    .flatMap((item) => {
      if (!isForeign(item)) return [toRow(item)]
      const id = text(item.id)
      const payload = payloads.get(id)
      return payload === undefined ? [] : [summaryOfPayload(id, payload)]
    })
}

const toRow = (item: Item): SummaryRow => ({
  id: text(item.id),
  definitionId: text(item.definition_id),
  version: number(item.version),
  status: textOrNull(item.status),
  outcome: textOrNull(item.outcome),
  activePath: textOrNull(item.active_path),
  parentId: textOrNull(item.parent_id),
  finishedAt: toDoubleOrNull(item.finished_at),
})
