/** The driver alone: an allocation of numbers, and an update that looks at the version. */
import { type Db, type Document, Double, Int32, Long } from 'mongodb'
import { type Actions, PAGE } from '../contender.ts'
import { KEPT, nextEventId, type Subject, wireEvent, wireFull } from '../subjects.ts'
import { sequence } from './gather.ts'

const DEDUPE = 10_000

interface Execution {
  _id: string
  version: number
  data: string
  outbox?: { seq: number; event: string }[]
  processed?: string[]
  timers?: Record<string, number>
}

const literal = (value: unknown) => ({ $literal: value })
const literals = (fields: object) =>
  Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, literal(value)]))
const appended = (field: string, items: unknown) => ({ $concatArrays: [{ $ifNull: [`$${field}`, []] }, items] })
const each = (array: unknown, field: string) => ({ $map: { input: array, in: `$$this.${field}` } })
const newest = (array: object, count: number) => ({ $slice: [array, -count] })

/** The execution at its next version. */
function stateOf({ execution, wire }: Subject) {
  wire.version = execution.version + 1
  const version = new Int32(wire.version)
  const { definition_id, status, outcome, active_path, parent_id, finished_at } = wire
  const summary = {
    ...{ version, definition_id, status, outcome, active_path, parent_id, root: parent_id === null },
    finished_at: finished_at === null ? null : new Double(Number(finished_at)),
  }
  return { data: JSON.stringify(wire), version, definition_id, summary }
}

function collectionsOf(db: Db) {
  const options = {
    writeConcern: { w: 'majority', journal: true },
    readConcern: { level: 'majority' },
    readPreference: 'primary',
  } as const
  return {
    executions: db.collection<Execution>('harel_executions', options),
    orphans: db.collection<{ _id: number; event: string }>('harel_orphaned_outbox', options),
    counters: db.collection<{ _id: string; n: number }>('harel_counters', options),
  }
}

type Collections = ReturnType<typeof collectionsOf>

function writerOf({ executions, counters }: Collections) {
  const numbers = (_id: string) =>
    sequence(async (count) => {
      const add = { $inc: { n: Long.fromNumber(count) } }
      const counter = await counters.findOneAndUpdate({ _id }, add, { upsert: true, returnDocument: 'after' })
      return counter?.n ?? 0
    })
  const outbox = numbers('outbox')
  return {
    spawn: numbers('spawn'),
    /** The entries of so many events to the execution itself. */
    async entriesOf({ execution: { id } }: Subject, events: readonly string[]) {
      const first = await outbox(events.length)
      return events.map((event, index) => ({ seq: Long.fromNumber(first + index), target_id: id, event }))
    },
    async write({ execution }: Subject, update: Document | Document[]) {
      const { id, version } = execution
      const { matchedCount } = await executions.updateOne({ _id: id, version }, update)
      if (matchedCount !== 1) throw new Error(`version ${version} of ${id} is not stored`)
      execution.version += 1
    },
  }
}

/** Appends by `$push`, which cannot number the steps of a trace. */
export function pushesByHand(db: Db): Partial<Actions> {
  const { entriesOf, write } = writerOf(collectionsOf(db))
  return {
    state: (subject) => write(subject, { $set: stateOf(subject) }),
    commit: async (subject) => {
      const eventId = nextEventId()
      const state = stateOf(subject)
      const entries = await entriesOf(subject, [JSON.stringify(wireEvent(eventId))])
      const processed = { $each: [eventId], $slice: -DEDUPE }
      await write(subject, { $set: state, $push: { outbox: { $each: entries }, processed } })
    },
  }
}

/** Appends by pipelines. */
export function pipelinesByHand(db: Db): Actions {
  const collections = collectionsOf(db)
  const { spawn, entriesOf, write } = writerOf(collections)
  const emitted = (eventId: string, entries: object[]) => ({
    outbox: appended('outbox', literal(entries)),
    processed: newest(appended('processed', literal([eventId])), DEDUPE),
  })
  return {
    ...readsByHand(collections),
    state: (subject) => write(subject, [{ $set: literals(stateOf(subject)) }]),
    commit: async (subject) => {
      const eventId = nextEventId()
      const state = literals(stateOf(subject))
      const entries = await entriesOf(subject, [JSON.stringify(wireEvent(eventId))])
      await write(subject, [{ $set: { ...state, ...emitted(eventId, entries) } }])
    },
    full: async (subject) => {
      const eventId = nextEventId()
      const { events, timers, spawn: child, trace } = wireFull(eventId)
      const state = literals(stateOf(subject))
      const [entries, seq] = await Promise.all([entriesOf(subject, events), spawn(1)])
      const spawned = {
        ...{ seq: Long.fromNumber(seq), parent_id: subject.execution.id, child_id: child.childId },
        ...{ root_path: child.rootPath, context: JSON.parse(child.context) },
      }
      const armed = timers.map(({ path, fireAt }) => [path.replaceAll('.', '\uff0e'), new Double(fireAt)])
      const index = { $add: [{ $ifNull: [{ $max: each('$trace', 'index') }, -1] }, 1] }
      const step = { $mergeObjects: [literal(JSON.parse(trace)), { index }] }
      const added = {
        ...emitted(eventId, entries),
        spawns: appended('spawns', literal([spawned])),
        timers: { $mergeObjects: ['$timers', literal(Object.fromEntries(armed))] },
        trace: newest(appended('trace', [step]), KEPT),
      }
      const times = each({ $objectToArray: '$timers' }, 'v')
      await write(subject, [{ $set: { ...state, ...added } }, { $set: { next_fire_at: { $min: times } } }])
    },
  }
}

type Due = readonly [executionId: string, path: string, fireAt: number]

const byText = (a: string, b: string): number => (a < b ? -1 : Number(a > b))

/**
 * No more documents are read than a page has entries: each has one at least, and they come in the order of their first.
 * Events of executions that were purged are in a collection of their own.
 */
function readsByHand({ executions, orphans }: Collections) {
  const page = async () => {
    const projection = { version: 1, outbox: { $slice: PAGE } }
    const found = executions.find({ 'outbox.seq': { $exists: true } }, { projection })
    const documents = await found.sort({ 'outbox.seq': 1 }).limit(PAGE).toArray()
    const orphaned = await orphans.find().sort({ _id: 1 }).limit(PAGE).toArray()
    const all = documents.flatMap(({ outbox = [] }) => outbox)
    for (const { _id, event } of orphaned) all.push({ seq: _id, event })
    const first = all.sort((a, b) => a.seq - b.seq).slice(0, PAGE)
    return first.map(({ seq, event }) => ({ seq, event: JSON.parse(event) }))
  }
  return {
    load: async (id: string) => {
      const document = await executions.findOne({ _id: id }, { projection: { data: 1 } })
      return JSON.parse(document?.data ?? '')
    },
    loadForEvent: async (id: string) => {
      const projection = { data: 1, processed: { $elemMatch: { $eq: nextEventId() } } }
      const document = await executions.findOne({ _id: id }, { projection })
      return { execution: JSON.parse(document?.data ?? ''), processed: document?.processed !== undefined }
    },
    page,
    relay: async () => {
      const entries = await page()
      const seqs = { $in: entries.map(({ seq }) => Long.fromNumber(seq)) }
      await executions.updateMany({ 'outbox.seq': seqs }, { $pull: { outbox: { seq: seqs } } } as Document)
      await orphans.deleteMany({ _id: seqs } as Document)
      return entries
    },
    timers: async (now: number) => {
      const found = executions.find({ next_fire_at: { $lte: now } } as Document, { projection: { timers: 1 } })
      const documents = await found.sort({ next_fire_at: 1 }).limit(PAGE).toArray()
      const due = documents.flatMap(({ _id, timers = {} }) =>
        Object.entries(timers).flatMap(([path, fireAt]): Due[] => (fireAt <= now ? [[_id, path, fireAt]] : [])),
      )
      return due.sort((a, b) => a[2] - b[2] || byText(a[0], b[0]) || byText(a[1], b[1])).slice(0, PAGE)
    },
    list: ({ after }: { after: string }) =>
      executions
        .find({ _id: { $gt: after } }, { projection: { version: 1, summary: 1 } })
        .sort({ _id: 1 })
        .limit(PAGE)
        .toArray(),
  }
}
