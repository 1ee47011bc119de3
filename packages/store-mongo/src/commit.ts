import type { JsonObject, PreparedCommit } from '@harel/store-base'
import { Double, Int32, Long, type UpdateFilter } from 'mongodb'
import { type BsonValue, toBson, toNumber } from './bson.js'
import type { ExecutionDocument } from './collections.js'
import { toField } from './paths.js'

/** What was found out before the write. */
export interface CommitNumbers {
  /** The number of the first emit, and of the first spawn. */
  readonly outbox: number
  readonly spawn: number
  /** The index of the trace step. */
  readonly trace: number
}

/** The summary that listings go by. */
const summaryOf = (c: PreparedCommit) => ({
  version: toNumber(c.version),
  definition_id: c.definitionId,
  status: c.status,
  outcome: c.outcome,
  active_path: c.activePath,
  parent_id: c.parentId,
  finished_at: c.finishedAt === null ? null : new Double(c.finishedAt),
  root: c.parentId === null,
})

/**
 * The commit as one update of the document. With it the lower bounds, by which queues and timers are found: they are only
 * ever lowered here, and raised again by whoever finds them too low.
 *
 * @throws NotSerializable for what BSON cannot hold
 */
export function commitUpdate(
  commit: PreparedCommit,
  numbers: CommitNumbers,
  limits: { traceMax: number; dedupe: number },
): UpdateFilter<ExecutionDocument> {
  const { id, expected, emits, spawns, timers, trace, processedEventId } = commit
  const scheduled = timers.flatMap((op) => (op.action === 'schedule' ? [op] : []))
  const cancelled = timers.filter(({ action }) => action === 'cancel')
  const push: Record<string, unknown> = {}
  if (emits.length > 0) {
    push.outbox = {
      $each: emits.map(({ targetId, event }, index) => ({
        seq: Long.fromNumber(numbers.outbox + index),
        target_id: targetId,
        event,
      })),
    }
  }
  if (spawns.length > 0) {
    push.spawns = {
      $each: spawns.map(({ childId, rootPath, context }, index) => ({
        seq: Long.fromNumber(numbers.spawn + index),
        parent_id: id,
        child_id: childId,
        root_path: rootPath,
        context: toBson(JSON.parse(context), 'changes.spawns[].context'),
      })),
    }
  }
  if (trace !== undefined) push.trace = pushTrace(trace, numbers.trace, limits.traceMax)
  if (processedEventId !== undefined) push.processed = { $each: [processedEventId], $slice: -limits.dedupe }

  // Readers of Python harel's expect the arrays and the timers of every document.
  const absent = Object.fromEntries(
    ['outbox', 'spawns', 'trace', 'processed'].filter((name) => !(name in push)).map((name) => [name, []]),
  )
  const lowest = {
    ...(emits.length > 0 && { outbox_from: Long.fromNumber(numbers.outbox) }),
    ...(spawns.length > 0 && { spawns_from: Long.fromNumber(numbers.spawn) }),
    ...(scheduled.length > 0 && { next_fire_at: new Double(Math.min(...scheduled.map(({ fireAt }) => fireAt))) }),
  }
  const inserts = { ...absent, ...(scheduled.length === 0 && { timers: {} }) }
  const set = {
    data: commit.data,
    version: toNumber(commit.version),
    definition_id: commit.definitionId,
    summary: summaryOf(commit),
    ...Object.fromEntries(scheduled.map(({ path, fireAt }) => [`timers.${toField(path)}`, new Double(fireAt)])),
  }
  // On a first commit there is nothing to cancel, and unsetting would clash with making the field.
  const unset = expected === 0 ? [] : cancelled.map(({ path }) => [`timers.${toField(path)}`, ''])
  return {
    $set: set,
    ...(Object.keys(push).length > 0 && { $push: push }),
    ...(unset.length > 0 && { $unset: Object.fromEntries(unset) }),
    ...(Object.keys(lowest).length > 0 && { $min: lowest }),
    ...(expected === 0 && Object.keys(inserts).length > 0 && { $setOnInsert: inserts }),
  } as UpdateFilter<ExecutionDocument>
}

/** The step at the end of a ring; the index is its last member. */
export function pushTrace(entry: string, index: number, traceMax: number): { $each: BsonValue[]; $slice?: number } {
  const step = toBson(JSON.parse(entry) as JsonObject, 'trace') as Map<string, BsonValue>
  const numbered = new Map([...step, ['index', new Int32(index)] as const])
  return { $each: [numbered], ...(traceMax > 0 && { $slice: -traceMax }) }
}
