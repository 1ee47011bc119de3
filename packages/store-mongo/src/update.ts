import type { PreparedCommit } from '@harel/store-base'
import { type Document, Double, Long } from 'mongodb'
import { toDocument, toNumber } from './bson.js'
import type { OutboxItem, SpawnItem, Summary } from './collections.js'
import type { Settings } from './options.js'
import { toField } from './paths.js'

/*
 * Updates as pipelines: what they write may depend on what is there (the index of a step, the earliest timer), and yet they
 * are one step. Whatever comes from a caller stands in `$literal`, so that none of it is taken for an expression.
 */

/** The first numbers that a commit has taken. */
export interface FirstNumbers {
  readonly outbox: number
  readonly spawn: number
}

const literal = (value: unknown) => ({ $literal: value })

const appended = (field: string, items: unknown) => ({ $concatArrays: [{ $ifNull: [`$${field}`, []] }, items] })

/** @param most 0: all */
const newest = (array: object, most: number) => (most === 0 ? array : { $slice: [array, -most] })

/** A field of every entry of an array. */
const each = (array: unknown, field: string) => ({ $map: { input: array, in: `$$this.${field}` } })

/** The largest number in an array of entries, for the filter of a query. */
export const largest = (array: string, field: string) => ({ $max: each(`$${array}`, field) })

const withStep = (text: string, { traceMax }: Settings) => {
  const step = literal(toDocument(text))
  const index = { $add: [{ $ifNull: [largest('trace', 'index'), -1] }, 1] }
  return newest(appended('trace', [{ $mergeObjects: [step, { index }] }]), traceMax)
}

/** No timer is due before `next_fire_at`, whoever armed or cancelled the last one; without timers there is none. */
const NEXT_FIRE_AT = {
  $set: { next_fire_at: { $ifNull: [{ $min: each({ $objectToArray: '$timers' }, 'v') }, '$$REMOVE'] } },
}

const withoutTimers = (paths: readonly string[]) =>
  paths.length === 0 ? [] : [{ $unset: paths.map((path) => `timers.${toField(path)}`) }]

const outboxOf = ({ emits }: PreparedCommit, first: number): OutboxItem[] =>
  emits.map(({ targetId, event }, index) => ({ seq: Long.fromNumber(first + index), target_id: targetId, event }))

const spawnsOf = ({ id, spawns }: PreparedCommit, first: number): SpawnItem[] =>
  spawns.map(({ childId, rootPath, context }, index) => ({
    seq: Long.fromNumber(first + index),
    parent_id: id,
    child_id: childId,
    root_path: rootPath,
    context: toDocument(context),
  }))

const summaryOf = (commit: PreparedCommit): Summary => ({
  version: toNumber(commit.version),
  definition_id: commit.definitionId,
  status: commit.status,
  outcome: commit.outcome,
  active_path: commit.activePath,
  parent_id: commit.parentId,
  finished_at: commit.finishedAt === null ? null : new Double(commit.finishedAt),
  root: commit.parentId === null,
})

/** The commit. */
export function commitUpdate(commit: PreparedCommit, first: FirstNumbers, settings: Settings): Document[] {
  const { expected, timers, trace, processedEventId } = commit
  const outbox = outboxOf(commit, first.outbox)
  const spawns = spawnsOf(commit, first.spawn)
  const processed = processedEventId === undefined ? [] : [processedEventId]
  const scheduled = timers.flatMap((op) =>
    op.action === 'schedule' ? [[toField(op.path), new Double(op.fireAt)] as const] : [],
  )
  const cancelled = timers.flatMap((op) => (op.action === 'cancel' ? [op.path] : []))
  // Python harel expects the arrays and the timers in every document.
  const isWritten = (part: readonly unknown[]) => part.length > 0 || expected === 0
  return [
    {
      $set: {
        data: literal(commit.data),
        version: toNumber(commit.version),
        definition_id: literal(commit.definitionId),
        summary: literal(summaryOf(commit)),
        ...(isWritten(outbox) && { outbox: appended('outbox', literal(outbox)) }),
        ...(isWritten(spawns) && { spawns: appended('spawns', literal(spawns)) }),
        ...(isWritten(processed) && {
          processed: newest(appended('processed', literal(processed)), settings.dedupe),
        }),
        ...(isWritten(scheduled) && { timers: { $mergeObjects: ['$timers', literal(new Map(scheduled))] } }),
        ...(trace !== undefined
          ? { trace: withStep(trace, settings) }
          : isWritten([]) && { trace: { $ifNull: ['$trace', []] } }),
      },
    },
    ...withoutTimers(cancelled),
    NEXT_FIRE_AT,
  ]
}

/** A step without a commit. */
export const traceUpdate = (entry: string, settings: Settings): Document[] => [
  { $set: { trace: withStep(entry, settings) } },
]

export const timerUpdate = (path: string): Document[] => [...withoutTimers([path]), NEXT_FIRE_AT]
