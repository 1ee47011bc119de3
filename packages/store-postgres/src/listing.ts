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

const KEY = 'id COLLATE "C"'

const select = (source: string, conditions: readonly string[], order: string): string =>
  `SELECT ${COLUMNS}, ${KEY} AS key FROM ${source}${
    conditions.length === 0 ? '' : ` WHERE ${conditions.join(' AND ')}`
  } ORDER BY ${order} LIMIT $1`

/**
 * A listing that reads no more rows than it returns, up to `limit + 1` of each status that is asked for.
 *
 * Each index starts with what is compared for equality and ends with the id by bytes, so one status is one range of an
 * index, already in order. The range is said by its borders and not by equality: then no order but that of this index
 * will do. Otherwise a planner that takes the filters for independent of each other, and of the ids, may walk another
 * one through the whole table. Without any filter the order is that of the ids.
 */
export function listing(table: string, query: CheckedListQuery): Listing {
  const { statuses, definitionId, rootsOnly, position, limit } = query
  const params: Param[] = [limit + 1]
  const from = position === null ? "''" : `$${params.push(position)}`
  if (statuses === undefined && definitionId === undefined && !rootsOnly) {
    return { text: select(table, [`${KEY} > ${from}`], 'key'), params }
  }
  const definition = definitionId === undefined ? [] : [`$${params.push(definitionId)}`]
  const columns = [...definition.map(() => 'definition_id'), 'status']
  const order = [...columns, KEY].join(', ')
  const ranges = (statuses ?? [...STATUSES, NO_STATUS]).map((status) => {
    const range = [...definition, `'${status}'`].join(', ')
    const borders = [`(${order}) > (${range}, ${from})`, `(${columns.join(', ')}) <= (${range})`]
    return `(${select(table, [...borders, ...(rootsOnly ? ['parent_id IS NULL'] : [])], order)})`
  })
  return { text: `SELECT ${COLUMNS} FROM (${ranges.join(' UNION ALL ')}) ranges ORDER BY key LIMIT $1`, params }
}

/**
 * The same where the columns of a summary stand in no index: walks the ids until the page is full.
 *
 * @param source a subquery that has these columns
 */
export function scanningListing(source: string, query: CheckedListQuery): Listing {
  const { statuses, definitionId, rootsOnly, position, limit } = query
  const params: Param[] = [limit + 1]
  const conditions: string[] = []
  if (definitionId !== undefined) conditions.push(`definition_id = $${params.push(definitionId)}`)
  if (rootsOnly) conditions.push('parent_id IS NULL')
  if (position !== null) conditions.push(`${KEY} > $${params.push(position)}`)
  if (statuses !== undefined) {
    conditions.push(`status IN (${statuses.map((status) => `'${status}'`).join(', ')})`)
  }
  return { text: select(source, conditions, 'key'), params }
}
