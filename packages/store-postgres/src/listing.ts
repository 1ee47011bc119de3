import { type CheckedListQuery, STATUSES } from '@harel/store-base'
import type { Param } from './client.js'

const COLUMNS = 'id, definition_id, version, status, outcome, active_path, parent_id, finished_at'

/**
 * A listing that reads no more rows than it returns, up to `limit + 1`. Each status is one range of an index whose
 * order is that of the ids by bytes; several statuses (or none given: all of them) are ranges that are merged.
 *
 * @param source the table, or a subquery with the columns of a summary
 */
export function listing(source: string, query: CheckedListQuery): { text: string; params: Param[] } {
  const { statuses, definitionId, rootsOnly, position, limit } = query
  const conditions: string[] = []
  const params: Param[] = [limit + 1]
  const param = (value: Param): string => `$${params.push(value)}::text`
  if (definitionId !== undefined) conditions.push(`definition_id = ${param(definitionId)}`)
  if (rootsOnly) conditions.push('parent_id IS NULL')
  if (position !== null) conditions.push(`id COLLATE "C" > ${param(position)}`)
  const range = (status?: string): string => {
    const where = status === undefined ? conditions : [`status = '${status}'`, ...conditions]
    const filter = where.length === 0 ? '' : ` WHERE ${where.join(' AND ')}`
    return `SELECT ${COLUMNS} FROM ${source}${filter} ORDER BY id COLLATE "C" LIMIT $1::text::bigint`
  }
  const filtered = statuses !== undefined || definitionId !== undefined || rootsOnly
  if (!filtered) return { text: range(), params }
  const wanted = statuses ?? STATUSES
  if (wanted.length === 1) return { text: range(wanted[0]), params }
  const ranges = wanted.map((status) => `(${range(status)})`).join(' UNION ALL ')
  return { text: `SELECT * FROM (${ranges}) merged ORDER BY id COLLATE "C" LIMIT $1::text::bigint`, params }
}
