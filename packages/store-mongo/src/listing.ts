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
import type { Filter } from 'mongodb'
import { type ExecutionDocument, FOREIGN, type Summary } from './collections.js'
import type { Connection } from './connection.js'

type Listed = Pick<ExecutionDocument, '_id' | 'version'> & { summary?: Summary; data?: string }

/** Documents looked at together. */
const SEARCHED = 200

/** Written by others: last, or, as there is no summary, always. */
const OTHERS = { $or: [FOREIGN, { 'summary.status': null }] } as Filter<ExecutionDocument>

/**
 * A page by id. Documents of ours are found by the indexes of their summaries, in which each status is a range that is in
 * order by id; those that Python has written last are walked through, and their payloads read.
 */
export async function list(connection: Connection, query: CheckedListQuery): Promise<SummaryRows> {
  const { statuses, definitionId, rootsOnly, limit } = query
  const unfiltered = statuses === undefined && definitionId === undefined && !rootsOnly
  const ours: Filter<ExecutionDocument> = unfiltered
    ? {}
    : {
        'summary.status': { $in: [...(statuses ?? STATUSES)] },
        ...(definitionId !== undefined && { 'summary.definition_id': definitionId }),
        ...(rootsOnly && { 'summary.root': true }),
      }
  const search = (filter: Filter<ExecutionDocument>) => collect(connection, filter, query, !unfiltered)
  const lists = unfiltered ? [await search({})] : await Promise.all([search(ours), search(OTHERS)])
  // A document of Python's may have an old summary too.
  const rows = new Map(lists.flat().map((row) => [row.id, row]))
  return listingPage(
    [...rows.values()].sort((a, b) => compareBytes(a.id, b.id)),
    limit,
  )
}

/** Up to `limit + 1` rows that pass the filters. */
async function collect(
  connection: Connection,
  filter: Filter<ExecutionDocument>,
  query: CheckedListQuery,
  filtered: boolean,
): Promise<SummaryRow[]> {
  const rows: SummaryRow[] = []
  let position = query.position
  for (;;) {
    const behind = position === null ? {} : { _id: { $gt: position } }
    const step = filtered ? Math.max(SEARCHED, query.limit + 1) : query.limit + 1
    const page: Listed[] = await connection.read(({ executions }, options) =>
      executions
        .find({ $and: [filter, behind] }, { projection: { version: 1, summary: 1 }, ...options })
        .sort({ _id: 1 })
        .limit(step)
        .toArray(),
    )
    rows.push(...(await toRows(connection, page)).filter((row) => passes(row, query)))
    position = page.at(-1)?._id ?? null
    if (rows.length > query.limit || page.length < step) return rows.slice(0, query.limit + 1)
  }
}

/** One without a status is left in, so that it is reported. */
const passes = (row: SummaryRow, query: CheckedListQuery): boolean =>
  row.status === null || matches(row as ExecutionSummary, query)

/** The summaries of documents; where the version has gone on without one, it is taken from the payload. */
async function toRows(connection: Connection, page: readonly Listed[]): Promise<SummaryRow[]> {
  const stale = page.filter(({ version, summary }) => Number(summary?.version ?? -1) !== Number(version))
  const payloads = new Map<string, string>()
  if (stale.length > 0) {
    const ids = stale.map(({ _id }) => _id)
    const found = await connection.read(({ executions }, options) =>
      executions.find({ _id: { $in: ids } }, { projection: { data: 1 }, ...options }).toArray(),
    )
    for (const { _id, data } of found) payloads.set(_id, data)
  }
  return page.map(({ _id, version, summary }) => {
    const payload = payloads.get(_id)
    if (payload !== undefined || summary === undefined) return summaryOfPayload(_id, payload ?? '')
    const { definition_id, status, outcome, active_path, parent_id, finished_at } = summary
    return {
      id: _id,
      definitionId: definition_id,
      version: Number(version),
      status,
      outcome,
      activePath: active_path,
      parentId: parent_id,
      finishedAt: finished_at === null ? null : Number(finished_at),
    }
  })
}
