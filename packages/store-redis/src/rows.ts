import {
  type DueTimer,
  type OutboxRow,
  type PreparedCommit,
  type PreparedEmit,
  type PreparedSpawn,
  type SpawnRow,
  type SummaryRow,
  summaryOfPayload,
  type TraceRow,
} from '@harel/store-base'
import type { Argument } from './client.js'
import { placeOf } from './filters.js'
import type { QueueEntry } from './queue.js'

/** Adds what the script of commits has to know of a commit. */
export function addCommit(args: Argument[], commit: PreparedCommit): void {
  const { id, data, expected, processedEventId = '', emits, spawns, timers, trace = '' } = commit
  args.push(id, data, expected, placeOf(commit), processedEventId, trace, emits.length)
  for (const emit of emits) args.push(fromEmit(emit))
  args.push(spawns.length)
  for (const spawn of spawns) args.push(fromSpawn(id, spawn))
  args.push(timers.length)
  for (const op of timers) args.push(op.path, op.action === 'schedule' ? op.fireAt : '')
}

/** How an outbox entry stands in its hash: the target, and the event as the text of its text. */
const fromEmit = ({ targetId, event }: PreparedEmit): string => JSON.stringify({ t: targetId, e: event })

/** How a spawn stands in its hash. The context is a text already. */
const fromSpawn = (id: string, { childId, rootPath, context }: PreparedSpawn): string =>
  `${JSON.stringify({ p: id, c: childId, r: rootPath }).slice(0, -1)},"x":${context}}`

/** The texts with which entries begin whose first member has this value: as they are written here, and by Python. */
export function beginnings(member: 't' | 'p', value: string): [ours: string, pythons: string] {
  const text = JSON.stringify(value)
  const ascii = text.replace(/[\u0080-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
  return [`{"${member}":${text},`, `{"${member}": ${ascii},`]
}

/** Where the entry is none, its event is not the text of one either, and who reads it is told. */
export function toOutboxRow({ seq, value }: QueueEntry): OutboxRow {
  const { t, e } = parse(value)
  return { seq, targetId: typeof t === 'string' ? t : null, event: typeof e === 'string' ? e : value }
}

/** As `toOutboxRow`. */
export function toSpawnRow({ seq, value }: QueueEntry): SpawnRow {
  const { p, c, r } = parse(value)
  const text = (member: unknown): string => (typeof member === 'string' ? member : '')
  return { seq, parentId: text(p), childId: text(c), rootPath: text(r), context: contextOf(value) }
}

/** The text of the context, which is the last member, as it was written: numbers and all. */
function contextOf(value: string): string {
  const start = /^\{"p": ?"(?:[^"\\]|\\.)*", ?"c": ?"(?:[^"\\]|\\.)*", ?"r": ?"(?:[^"\\]|\\.)*", ?"x": ?/.exec(
    value,
  )?.[0]
  return start === undefined ? '' : value.slice(start.length, -1)
}

function parse(value: string): Record<string, unknown> {
  try {
    const parsed: unknown = JSON.parse(value)
    return typeof parsed === 'object' && parsed !== null ? (parsed as Record<string, unknown>) : {}
  } catch {
    return {}
  }
}

/** The index is the last member of the step. */
export const toTraceRow = (entry: string): TraceRow => ({
  index: Number(/"index": ?(\d+)\}$/.exec(entry)?.[1] ?? -1),
  entry,
})

/** @param reply members and scores in turn */
export function toTimers(reply: readonly string[]): DueTimer[] {
  const timers: DueTimer[] = []
  for (let index = 0; index < reply.length; index += 2) {
    const [member = '', score] = reply.slice(index, index + 2)
    const end = member.indexOf('\0')
    timers.push({ executionId: member.slice(0, end), path: member.slice(end + 1), fireAt: Number(score) })
  }
  return timers
}

/** The version in front of a payload of ours. */
export function versionOf(payload: string): number | undefined {
  const version = /^\{"version":(\d+)[,}]/.exec(payload)?.[1]
  return version === undefined ? undefined : Number(version)
}

/**
 * The summary in the first part of a payload of ours, in which the scalar fields come first; undefined when the part is
 * too short, or the payload another writer's.
 */
export function summaryOfPart(id: string, part: string): SummaryRow | undefined {
  // Within a string the quotes would have backslashes in front.
  const end = versionOf(part) === undefined ? -1 : part.indexOf(',"history":')
  return end < 0 ? undefined : summaryOfPayload(id, `${part.slice(0, end)}}`)
}
