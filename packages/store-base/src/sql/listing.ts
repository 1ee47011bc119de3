import type { CheckedListQuery } from '../listing.js'
import { STATUSES } from '../records.js'

/** A statement with `?` for its parameters, and these. */
export interface Sql {
  readonly sql: string
  readonly params: readonly (string | number | null)[]
}

const COLUMNS = 'id, definition_id, version, status, outcome, active_path, parent_id, finished_at'

/** All conditions of a query but the status. */
function conditionsOf({ definitionId, rootsOnly, position }: CheckedListQuery): Sql[] {
  const conditions: Sql[] = []
  if (definitionId !== undefined) conditions.push({ sql: 'definition_id = ?', params: [definitionId] })
  if (rootsOnly) conditions.push({ sql: 'parent_id IS NULL', params: [] })
  if (position !== null) conditions.push({ sql: 'id > ?', params: [position] })
  return conditions
}

function select(source: string, conditions: readonly Sql[]): Sql {
  const where = conditions.length === 0 ? '' : ` WHERE ${conditions.map(({ sql }) => sql).join(' AND ')}`
  return { sql: `SELECT ${COLUMNS} FROM ${source}${where}`, params: conditions.flatMap(({ params }) => params) }
}

const firstById = ({ sql, params }: Sql, limit: number): Sql => ({
  sql: `${sql} ORDER BY id LIMIT ?`,
  params: [...params, limit],
})

/**
 * A listing in SQLite's dialect that reads no more rows than it returns: up to `limit + 1`, for `listingPage`.
 *
 * Each index starts with what is compared for equality and ends with the id, so one status is one range of an index,
 * already in order. Several statuses are several ranges, which SQLite merges; so are, where none is given, all of them
 * and that of the rows whose status cannot be told.
 */
export function listingSql(table: string, query: CheckedListQuery): Sql {
  const { statuses, definitionId, rootsOnly, limit } = query
  const conditions = conditionsOf(query)
  if (statuses === undefined && definitionId === undefined && !rootsOnly) {
    return firstById(select(table, conditions), limit + 1)
  }
  const wanted = (statuses ?? STATUSES).map((status) => `status = '${status}'`)
  if (statuses === undefined) wanted.push('status IS NULL')
  // A range that nothing is in.
  if (wanted.length === 0) wanted.push('status = NULL')
  const ranges = wanted.map((sql) => select(table, [{ sql, params: [] }, ...conditions]))
  const merged = {
    sql: ranges.map(({ sql }) => sql).join(' UNION ALL '),
    params: ranges.flatMap(({ params }) => params),
  }
  return firstById(merged, limit + 1)
}

/**
 * The same where the columns of a summary stand in no index: walks the ids until the page is full.
 *
 * @param source a subquery that has these columns
 */
export function scanningListingSql(source: string, query: CheckedListQuery): Sql {
  const { statuses, limit } = query
  const conditions = conditionsOf(query)
  if (statuses !== undefined) {
    conditions.push({ sql: `status IN (${statuses.map(() => '?').join(', ')})`, params: statuses })
  }
  return firstById(select(source, conditions), limit + 1)
}
