import {
  decodeExecution,
  type OutboxRow,
  type PreparedCommit,
  type PreparedEmit,
  type PreparedSpawn,
  type SpawnRow,
  type SummaryRow,
  type TraceRow,
} from '@harel/store-base'

/** How an outbox entry stands in its hash: the target, and the event as the text of its text. */
export const fromEmit = ({ targetId, event }: PreparedEmit): string => JSON.stringify({ t: targetId, e: event })

/** How a spawn stands in its hash. The context is a text already. */
export const fromSpawn = (id: string, { childId, rootPath, context }: PreparedSpawn): string =>
  `${JSON.stringify({ p: id, c: childId, r: rootPath }).slice(0, -1)},"x":${context}}`

/** A row whose event is no text of an event, where the entry is none: reading it says so. */
export function toOutboxRow(seq: number, value: string): OutboxRow {
  const { t, e } = parse(value)
  return { seq, targetId: typeof t === 'string' ? t : null, event: typeof e === 'string' ? e : value }
}

export function toSpawnRow(seq: number, value: string): SpawnRow {
  const { p, c, r } = parse(value)
  const text = (member: unknown): string => (typeof member === 'string' ? member : '')
  return { seq, parentId: text(p), childId: text(c), rootPath: text(r), context: contextOf(value) }
}

/** The text of the context as it was written: the last member, which Python writes behind \`"x": \`. */
function contextOf(value: string): string {
  const start = /^\{"p": ?"(?:[^"\\]|\\.)*", ?"c": ?"(?:[^"\\]|\\.)*", ?"r": ?"(?:[^"\\]|\\.)*", ?"x": ?/s.exec(
    value,
  )?.[0]
  return start === undefined ? value : value.slice(start.length, -1)
}

function parse(value: string): Record<string, unknown> {
  try {
    return JSON.parse(value) as Record<string, unknown>
  } catch {
    return {}
  }
}

/** The index is in the step. */
export function toTraceRow(entry: string): TraceRow {
  return { index: Number(/"index": ?(\d+)\}$/.exec(entry)?.[1] ?? -1), entry }
}

/** What the hash of summaries has of an execution, behind version and origin. */
export const fromSummary = (c: PreparedCommit): string =>
  JSON.stringify([c.definitionId, c.status, c.outcome, c.activePath, c.parentId, c.finishedAt])

/** The summary in the hash if it is that of the stored version. */
export function toSummaryRow(id: string, version: number, entry: string | null): SummaryRow | undefined {
  const match = /^(\d+):[01]:(.*)$/s.exec(entry ?? '')
  if (match === null || Number(match[1]) !== version) return undefined
  const [definitionId, status, outcome, activePath, parentId, finishedAt] = JSON.parse(match[2] ?? '')
  return { id, definitionId, version, status, outcome, activePath, parentId, finishedAt }
}

/** The summary of a payload that somebody else wrote; without a status when it cannot be read. */
export function summaryOfPayload(id: string, data: string): SummaryRow {
  try {
    return decodeExecution(data, id, { numbers: 'lossy' })
  } catch {
    const unknown = { outcome: null, activePath: null, parentId: null, finishedAt: null }
    return { id, definitionId: '', version: 0, status: null, ...unknown }
  }
}

/** The version in front of a payload of ours. */
export function versionOf(head: string): number | undefined {
  const version = /^\{"version":(\d+)[,}]/.exec(head)?.[1]
  return version === undefined ? undefined : Number(version)
}
