import type { CheckedListQuery } from '../listing.js'
import { STATUSES } from '../records.js'

/** A statement with `?` for its parameters, and these. */
export interface Sql {
  readonly sql: string
  readonly params: readonly (string | number | null)[]
}

const COLUMNS = 'id, definition_id, version, status, outcome, active_path, parent_id, finished_at'

/**
 * A listing in SQLite's dialect that reads no more rows than it returns: up to `limit + 1`, for `listingPage`.
 *
 * Each index starts with what is compared for equality and ends with the id, so one status is one range of an index,
 * already in order. Several statuses (or none given: all of them) are several ranges, which SQLite merges.
 *
 * @param source the table, or a subquery with the columns of a summary
 */
export function listingSql(source: string, query: CheckedListQuery): Sql {
  const { statuses, definitionId, rootsOnly, position, limit } = query
  const filtered = statuses !== undefined || definitionId !== undefined || rootsOnly
  const conditions: string[] = []
  const params: (string | number)[] = []
  if (definitionId !== undefined) {
    conditions.push('definition_id = ?')
    params.push(definitionId)
  }
  if (rootsOnly) conditions.push('parent_id IS NULL')
  if (position !== null) {
    conditions.push('id > ?')
    params.push(position)
  }
  const range = (status?: string): string => {
    const where = status === undefined ? conditions : [`status = '${status}'`, ...conditions]
    return `SELECT ${COLUMNS} FROM ${source}${where.length === 0 ? '' : ` WHERE ${where.join(' AND ')}`}`
  }
  if (!filtered) return { sql: `${range()} ORDER BY id LIMIT ?`, params: [...params, limit + 1] }
  const wanted = statuses ?? STATUSES
  if (wanted.length === 0) return { sql: `${range()} LIMIT 0`, params }
  return {
    sql: `${wanted.map(range).join(' UNION ALL ')} ORDER BY id LIMIT ?`,
    params: [...wanted.flatMap(() => params), limit + 1],
  }
}
