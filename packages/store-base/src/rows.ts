import { isKey, isStatus } from './arguments.js'
import type { DefinitionRow, OutboxRow, SpawnRow, SummaryRow, TraceRow } from './backend.js'
import { decodeEvent, decodeExecution, decodeJson, decodeObject } from './decode.js'
import { quote } from './describe.js'
import { CorruptRecord } from './errors.js'
import type { ReadOptions } from './numbers.js'
import type { OnUnreadable } from './protocol.js'
import type {
  DefinitionRecord,
  DueTimer,
  ExecutionSummary,
  JsonValue,
  OutboxEntry,
  SpawnEntry,
  TraceStep,
} from './records.js'

/** The rows that can be read; the others are reported and stay where they are, so that one never stops a queue. */
function readable<Row, Record>(
  rows: readonly Row[],
  read: (row: Row) => Record,
  report: (error: CorruptRecord, row: Row) => void,
): Record[] {
  const records: Record[] = []
  for (const row of rows) {
    try {
      records.push(read(row))
    } catch (error) {
      if (!(error instanceof CorruptRecord)) throw error
      report(error, row)
    }
  }
  return records
}

const warning =
  ({ onWarning }: ReadOptions) =>
  ({ message }: CorruptRecord): void =>
    onWarning?.(message)

/** Tells whoever has asked, or else everybody. */
const unreadable = (options: ReadOptions, onUnreadable: OnUnreadable | undefined) =>
  onUnreadable === undefined
    ? warning(options)
    : (error: CorruptRecord, { seq }: { seq: number }): void => onUnreadable(seq, error)

export const toOutbox = (
  rows: readonly OutboxRow[],
  options: ReadOptions,
  onUnreadable: OnUnreadable | undefined,
): OutboxEntry[] =>
  readable(
    rows,
    ({ seq, targetId, event }) => ({ seq, targetId, event: decodeEvent(event, `outbox entry ${seq}`, options) }),
    unreadable(options, onUnreadable),
  )

export const toSpawns = (
  rows: readonly SpawnRow[],
  options: ReadOptions,
  onUnreadable: OnUnreadable | undefined,
): SpawnEntry[] =>
  readable(
    rows,
    ({ seq, parentId, childId, rootPath, context }) => ({
      seq,
      parentId,
      childId,
      rootPath,
      context: decodeObject(context, `spawn ${seq}`, options),
    }),
    unreadable(options, onUnreadable),
  )

/** Those that the other methods for timers take; whatever else another writer has stored is left to him. */
export const toTimers = (rows: readonly DueTimer[], options: ReadOptions): DueTimer[] =>
  readable(
    rows,
    ({ executionId, path, fireAt }) => {
      if (isKey(executionId) && isKey(path) && Number.isFinite(fireAt)) return { executionId, path, fireAt }
      throw new CorruptRecord(
        `timer ${quote(path)} of execution ${quote(executionId)}`,
        'its id, path or time is none that a store takes',
      )
    },
    warning(options),
  )

export const toTrace = (rows: readonly TraceRow[], id: string, options: ReadOptions): TraceStep[] =>
  readable(
    rows,
    ({ index, entry }) => {
      const step = decodeObject(entry, `trace step ${index} of ${JSON.stringify(id)}`, options)
      step.index = index
      return step
    },
    warning(options),
  )

export const toSummaries = (rows: readonly SummaryRow[], options: ReadOptions): ExecutionSummary[] =>
  readable(
    rows,
    ({ id, definitionId, status, outcome, activePath, version, parentId, finishedAt }) => {
      if (!isStatus(status)) throw new CorruptRecord(`execution ${JSON.stringify(id)}`, 'its status cannot be told')
      return { id, definitionId, status, outcome, activePath, version, parentId, finishedAt }
    },
    warning(options),
  )

/** The summary row of a payload, where none is kept beside it; without a status when the payload cannot be read. */
export function summaryOfPayload(id: string, payload: string): SummaryRow {
  try {
    return decodeExecution(payload, id, { numbers: 'lossy' })
  } catch {
    const unknown = { outcome: null, activePath: null, parentId: null, finishedAt: null }
    return { id, definitionId: '', version: 0, status: null, ...unknown }
  }
}

export function toDefinition(
  { id, version, definition, publishedAt }: DefinitionRow,
  options: ReadOptions,
): DefinitionRecord {
  const value = decodeJson(
    definition,
    `definition ${JSON.stringify(id)} ${JSON.stringify(version)}`,
    options,
  ) as JsonValue
  return publishedAt === null ? { id, version, definition: value } : { id, version, definition: value, publishedAt }
}
