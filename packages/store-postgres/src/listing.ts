import { type CheckedListQuery, STATUSES } from '@harel/store-base'
import type { Param } from './client.js'

/** A statement and its parameters. */
export interface Listing {
  readonly text: string
  readonly params: readonly Param[]
}

/** The status of a row whose payload does not tell one; see the function that fills the columns. */
export const NO_STATUS = ''

const COLUMNS = 'id, definition_id, version, status, outcome, active_path, parent_id, finished_at'

/** What all rows of a listing have in common. `$1` is the number of rows. */
function conditionsOf({ definitionId, rootsOnly, position, limit }: CheckedListQuery) {
  const params: Param[] = [limit + 1]
  const conditions: string[] = []
  if (definitionId !== undefined) conditions.push(`definition_id = $${params.push(definitionId)}`)
  if (rootsOnly) conditions.push('parent_id IS NULL')
  if (position !== null) conditions.push(`id COLLATE "C" > $${params.push(position)}`)
  return { params, conditions }
}

const select = (source: string, conditions: readonly string[]): string =>
  `SELECT ${COLUMNS}, id COLLATE "C" AS key FROM ${source}${
    conditions.length === 0 ? '' : ` WHERE ${conditions.join(' AND ')}`
  } ORDER BY key LIMIT $1`

/**
 * A listing that reads no more rows than it returns, up to `limit + 1` (and one of each range that is merged).
 *
 * Each index starts with what is compared for equality and ends with the id by bytes, so one status is one range of an
 * index, already in order. Several statuses, or none given under another filter, are ranges that the server merges; it
 * does so only where the key is a column of each.
 */
export function listing(table: string, query: CheckedListQuery): Listing {
  const { params, conditions } = conditionsOf(query)
  const { statuses, definitionId, rootsOnly } = query
  if (statuses === undefined && definitionId === undefined && !rootsOnly) {
    return { text: select(table, conditions), params }
  }
  const ranges = (statuses ?? [...STATUSES, NO_STATUS]).map(
    (status) => `(${select(table, [`status = '${status}'`, ...conditions])})`,
  )
  return { text: `SELECT ${COLUMNS} FROM (${ranges.join(' UNION ALL ')}) ranges ORDER BY key LIMIT $1`, params }
}

/**
 * The same where the columns of a summary stand in no index: walks the ids until the page is full.
 *
 * @param source a subquery that has these columns
 */
export function scanningListing(source: string, query: CheckedListQuery): Listing {
  const { params, conditions } = conditionsOf(query)
  const { statuses } = query
  if (statuses !== undefined) {
    conditions.push(`status IN (${statuses.map((status) => `'${status}'`).join(', ')})`)
  }
  return { text: select(source, conditions), params }
}
