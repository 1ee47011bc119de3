import type { DueTimer, OutboxRow, SpawnRow, TraceRow } from '@harel/store-base'
import { toText } from './bson.js'
import type { ExecutionDocument, OutboxItem, SpawnItem } from './collections.js'
import { fromField } from './paths.js'

/** What documents hold, as the rows of the protocol. */

export const toOutboxRow = ({ seq, target_id, event }: OutboxItem): OutboxRow => ({
  seq: Number(seq),
  targetId: target_id ?? null,
  event,
})

export const toSpawnRow = ({ seq, parent_id, child_id, root_path, context }: SpawnItem): SpawnRow => ({
  seq: Number(seq),
  parentId: parent_id,
  childId: child_id,
  rootPath: root_path,
  context: toText(context),
})

export const toTimers = ({ _id, timers = {} }: ExecutionDocument): DueTimer[] =>
  Object.entries(timers).map(([field, fireAt]) => ({
    executionId: _id,
    path: fromField(field),
    fireAt: Number(fireAt),
  }))

type Steps = NonNullable<ExecutionDocument['trace']>

/** @param early the steps that were there before the document; those of the document are counted on from them */
export function toTraceRows(early: Steps, own: Steps): TraceRow[] {
  const first = Number(early.at(-1)?.index ?? -1) + 1
  const toRow = (step: Steps[number], before: number): TraceRow => ({
    index: Number(step.index) + before,
    entry: toText(step),
  })
  return [...early.map((step) => toRow(step, 0)), ...own.map((step) => toRow(step, first))]
}
