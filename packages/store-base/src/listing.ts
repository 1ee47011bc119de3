import { checkArray, checkFlag, checkInteger, checkKey, checkMembers, checkStatus } from './arguments.js'
import { decodeKey, decodeOffset, encodeKey, encodeOffset, fingerprintOf } from './cursor.js'
import { InvalidCursor } from './errors.js'
import type { ExecutionPage, ListQuery } from './protocol.js'
import { type ExecutionSummary, STATUSES, type Status } from './records.js'

const DEFAULT_LIMIT = 100
/** The most that one page may hold. */
export const MAX_LIMIT = 1000

/** The filters of a listing, checked. */
export interface ListFilter {
  /** Undefined: any. Distinct, in the order of `STATUSES`. */
  readonly statuses: readonly Status[] | undefined
  readonly definitionId: string | undefined
  readonly rootsOnly: boolean
}

/** A listing, checked; `position` is what the page before gave as `next`. */
export interface CheckedListQuery extends ListFilter {
  readonly limit: number
  readonly position: string | null
  readonly fingerprint: string
}

/** @throws InvalidArgument, InvalidCursor */
export function checkListQuery(query: ListQuery, paging: 'key' | 'offset'): CheckedListQuery {
  const given = checkMembers('query', query, ['status', 'definitionId', 'rootsOnly', 'limit', 'cursor'])
  const filter: ListFilter = {
    // `in`, because a filter that got lost on the way (undefined) must not turn into "everything".
    statuses: 'status' in given ? checkStatuses(given.status) : undefined,
    definitionId: 'definitionId' in given ? checkKey('query.definitionId', given.definitionId) : undefined,
    rootsOnly: 'rootsOnly' in given && checkFlag('query.rootsOnly', given.rootsOnly),
  }
  const fingerprint = fingerprintOf([filter.statuses ?? null, filter.definitionId ?? null, filter.rootsOnly])
  return {
    ...filter,
    fingerprint,
    limit: checkInteger('query.limit', given.limit === undefined ? DEFAULT_LIMIT : given.limit, 1, MAX_LIMIT),
    position: positionOf(given.cursor, fingerprint, paging),
  }
}

function checkStatuses(value: unknown): Status[] {
  const given = Array.isArray(value) ? checkArray('query.status', value) : [value]
  for (const status of given) checkStatus('query.status', status)
  return STATUSES.filter((status) => given.includes(status))
}

function positionOf(cursor: unknown, fingerprint: string, paging: 'key' | 'offset'): string | null {
  if (cursor === undefined || cursor === null || cursor === '') return null
  if (typeof cursor !== 'string') throw new InvalidCursor('is not a string')
  return paging === 'key' ? decodeKey(cursor, fingerprint) : String(decodeOffset(cursor, fingerprint))
}

/** The page that callers get, from its items and the position where the next one starts. */
export function toPage(
  items: ExecutionSummary[],
  next: string | null,
  query: CheckedListQuery,
  paging: 'key' | 'offset',
): ExecutionPage {
  if (next === null) return { items, nextCursor: null }
  const { fingerprint } = query
  return {
    items,
    nextCursor: paging === 'key' ? encodeKey(next, fingerprint) : encodeOffset(Number(next), fingerprint),
  }
}

/** Whether a summary passes the filters. */
export const matches = (summary: ExecutionSummary, { statuses, definitionId, rootsOnly }: ListFilter): boolean =>
  (statuses === undefined || statuses.includes(summary.status)) &&
  (definitionId === undefined || summary.definitionId === definitionId) &&
  (!rootsOnly || summary.parentId === null)

/**
 * One page out of up to `limit + 1` rows that are ordered by id: the extra row only tells that there is a next page,
 * which starts behind the last row of this one.
 */
export function listingPage<Row extends { id: string }>(
  rows: readonly Row[],
  limit: number,
): { rows: Row[]; next: string | null } {
  const page = rows.slice(0, limit)
  return { rows: page, next: rows.length > limit ? (page.at(-1)?.id ?? null) : null }
}

/** Compares by UTF-8 bytes, which is by code points; JavaScript's own order of strings is by UTF-16 units. */
export function compareBytes(a: string, b: string): number {
  const length = Math.min(a.length, b.length)
  for (let i = 0; i < length; i++) {
    const x = a.charCodeAt(i)
    const y = b.charCodeAt(i)
    // Surrogates stand for code points above U+FFFF, so they sort behind U+E000 to U+FFFF.
    if (x !== y) return isSurrogate(x) === isSurrogate(y) ? x - y : isSurrogate(x) ? 1 : -1
  }
  return a.length - b.length
}

const isSurrogate = (unit: number): boolean => unit >= 0xd800 && unit <= 0xdfff

/** The pattern of SQL's `LIKE … ESCAPE '\'` for texts that start with exactly this one. */
export const likePrefix = (prefix: string): string => `${prefix.replace(/[\\%_]/g, '\\$&')}%`

/**
 * The smallest text, by bytes, that is behind every text with this prefix: with it, a prefix search is a range of an
 * index. Undefined when there is none (the empty prefix, or nothing but U+10FFFF).
 */
export function prefixEnd(prefix: string): string | undefined {
  const points = Array.from(prefix, (character) => character.codePointAt(0) as number)
  while (points.at(-1) === 0x10ffff) points.pop()
  const last = points.pop()
  if (last === undefined) return undefined
  return String.fromCodePoint(...points, last === 0xd7ff ? 0xe000 : last + 1)
}
