import { type CheckedListQuery, STATUSES, type SummaryRow } from '@harel/store-base'

/** Where those stand that cannot be read: every filtered listing reports them. */
const UNREADABLE = '\0? ? '

/** What stands in front of an execution's id in the index by filters. Neither id nor definition has a NUL. */
export const placeOf = ({ definitionId, status, parentId }: Omit<SummaryRow, 'id'>): string =>
  status === null ? UNREADABLE : placeUnder(definitionId, status, parentId === null ? 'root' : 'child')

/** The same in front of all ids that pass the filters; without a definition, in front of the members that have none. */
export function placesOf({ statuses = STATUSES, definitionId = '', rootsOnly }: CheckedListQuery): string[] {
  const kinds = rootsOnly ? ['root'] : ['root', 'child']
  const readable = statuses.flatMap((status) => kinds.map((kind) => placeUnder(definitionId, status, kind)))
  return [...readable, UNREADABLE]
}

const placeUnder = (definitionId: string, status: string, kind: string): string => `${definitionId}\0${status} ${kind} `
