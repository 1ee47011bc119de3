import {
  type CheckedListQuery,
  type CheckedQueuePage,
  type CheckedTimerPage,
  CommitTooLarge,
  compareBytes,
  type DefinitionRow,
  type DueTimer,
  type OutboxRow,
  type PreparedCommit,
  prefixEnd,
  Sequence,
  type SpawnRow,
  type StoreBackend,
  type StoreCapabilities,
  type SummaryRows,
  type TraceRow,
  type Verdict,
} from '@harel/store-base'
import { BSON, type ClientSession, Long } from 'mongodb'
import { firstEntries } from './bounded.js'
import { fromBson, toNumber } from './bson.js'
import type { Collections } from './collections.js'
import { type CommitNumbers, commitUpdate, pushTrace } from './commit.js'
import { isDuplicate, MAX_DOCUMENT, reading, toStoreError } from './errors.js'
import { list } from './listing.js'
import type { Settings } from './options.js'
import { fromField, toField } from './paths.js'

export const capabilitiesOf = (dedupe: number): StoreCapabilities => ({
  durable: true,
  shared: true,
  identity: false,
  ordered: true,
  paging: 'key',
  // All of it stands in one document.
  maxCommitWrites: 100_000,
  maxExecutionBytes: MAX_DOCUMENT - 64 * 1024,
  dedupe,
  atomicPurge: false,
  transactions: true,
})

/** A retry after another writer's step got in between the reading of a trace and the commit. */
const TRACE_TRIES = 5

/** The protocol on MongoDB. */
export class MongoBackend implements StoreBackend {
  readonly capabilities: StoreCapabilities
  readonly #collections: Collections
  readonly #settings: Settings
  readonly #outboxNumbers: Sequence
  readonly #spawnNumbers: Sequence
  readonly #session: { session?: ClientSession }
  readonly #end: () => Promise<void>

  /**
   * @param end called by `close`
   * @param session of a caller's transaction
   */
  constructor(collections: Collections, settings: Settings, end: () => Promise<void>, session?: ClientSession) {
    this.capabilities = capabilitiesOf(settings.dedupe)
    this.#collections = collections
    this.#settings = settings
    this.#outboxNumbers = new Sequence((count) => this.#reserve('outbox', count))
    this.#spawnNumbers = new Sequence((count) => this.#reserve('spawn', count))
    this.#end = end
    this.#session = session === undefined ? {} : { session }
  }

  /** The same inside a caller's transaction. */
  within(session: ClientSession): MongoBackend {
    return new MongoBackend(this.#collections, this.#settings, async () => {}, session)
  }

  /** Outside of a caller's transaction: numbers that it gives up are gaps, which are allowed. */
  async #reserve(name: 'outbox' | 'spawn', count: number): Promise<number> {
    const add = { $inc: { n: Long.fromNumber(count) } }
    const options = { upsert: true, returnDocument: 'after' } as const
    return Number((await reading(this.#collections.counters.findOneAndUpdate({ _id: name }, add, options)))?.n)
  }

  get #executions() {
    return this.#collections.executions
  }

  async load(id: string): Promise<string | undefined> {
    const options = { projection: { data: 1 }, ...this.#session }
    return (await reading(this.#executions.findOne({ _id: id }, options)))?.data
  }

  /** One document, and so one snapshot. */
  async loadForEvent(id: string, eventId: string): Promise<{ data: string | undefined; processed: boolean }> {
    const options = { projection: { data: 1, processed: { $elemMatch: { $eq: eventId } } }, ...this.#session }
    const document = await reading(this.#executions.findOne({ _id: id }, options))
    return { data: document?.data, processed: (document?.processed?.length ?? 0) > 0 }
  }

  async commit(commit: PreparedCommit): Promise<Verdict> {
    const { emits, spawns } = commit
    for (let tries = 1; ; tries++) {
      const [outbox, spawn, trace] = await Promise.all([
        emits.length === 0 ? 0 : this.#outboxNumbers.take(emits.length),
        spawns.length === 0 ? 0 : this.#spawnNumbers.take(spawns.length),
        this.#lastStep(commit),
      ])
      const done = await this.#update(commit, { outbox, spawn, trace: (trace?.index ?? -1) + 1 }, trace)
      if (done) return { applied: true, seqs: emits.map((_, index) => outbox + index) }
      const found = await this.#version(commit.id)
      // The version is right, so it was the trace: a step was added beside the commits.
      const again = trace !== undefined && found === commit.expected && tries < TRACE_TRIES
      if (!again) return { applied: false, found }
    }
  }

  async #version(id: string): Promise<number | null> {
    const options = { projection: { version: 1 }, ...this.#session }
    const document = await reading(this.#executions.findOne({ _id: id }, options))
    return document?.version === undefined ? null : Number(document.version)
  }

  /** The index of the newest step and its place in the ring, for a commit that adds one. */
  async #lastStep({ id, trace }: PreparedCommit): Promise<{ index: number; place: number } | undefined> {
    if (trace === undefined) return undefined
    const steps = await this.readTrace(id)
    return { index: steps.at(-1)?.index ?? -1, place: steps.length - 1 }
  }

  /** Whether the document was as expected, and was written. */
  async #update(
    commit: PreparedCommit,
    numbers: CommitNumbers,
    last: { index: number; place: number } | undefined,
  ): Promise<boolean> {
    const update = commitUpdate(commit, numbers, this.#settings)
    const size = BSON.calculateObjectSize(update)
    if (size > MAX_DOCUMENT) throw new CommitTooLarge('bytes', size, MAX_DOCUMENT)
    // Steps of an execution that did not exist are kept elsewhere, and so tell nothing about the document.
    const unmoved =
      last === undefined || last.place < 0 || commit.expected === 0
        ? {}
        : { [`trace.${last.place}.index`]: last.index, [`trace.${last.place + 1}`]: { $exists: false } }
    const filter = { _id: commit.id, version: toNumber(commit.expected), ...unmoved }
    try {
      const result = await this.#executions.updateOne(filter as never, update, {
        upsert: commit.expected === 0,
        ...this.#session,
      })
      return result.matchedCount + result.upsertedCount > 0
    } catch (error) {
      if (isDuplicate(error)) return false
      throw toStoreError(error, true)
    }
  }

  async isProcessed(id: string, eventId: string): Promise<boolean> {
    const options = { projection: { _id: 1 }, ...this.#session }
    return (await reading(this.#executions.findOne({ _id: id, processed: eventId }, options))) !== null
  }

  async pendingOutbox({ after, limit }: CheckedQueuePage): Promise<OutboxRow[]> {
    const rows = await firstEntries<OutboxRow>(this.#collections, {
      bound: 'outbox_from',
      fields: { outbox: 1 },
      most: Number.MAX_SAFE_INTEGER,
      limit,
      entriesOf: ({ outbox = [] }) =>
        outbox.map(({ seq, target_id, event }) => {
          const row = { seq: Number(seq), targetId: target_id ?? null, event }
          return { entry: row, rank: row.seq }
        }),
      wanted: ({ rank }) => rank > after,
      compare: (a, b) => a.seq - b.seq,
    })
    const orphans = await reading(
      this.#collections.orphans
        .find({ _id: { $gt: Long.fromNumber(after) } })
        .sort({ _id: 1 })
        .limit(Number.isFinite(limit) ? limit : 0)
        .toArray(),
    )
    // An entry is in both places while its sender is being purged.
    const all = new Map(
      orphans.map((o) => [Number(o._id), { seq: Number(o._id), targetId: o.target_id, event: o.event }]),
    )
    for (const row of rows) all.set(row.seq, row)
    return [...all.values()].sort((a, b) => a.seq - b.seq).slice(0, limit)
  }

  async ackOutbox(seqs: readonly number[]): Promise<void> {
    const numbers = seqs.map((seq) => Long.fromNumber(seq))
    await Promise.all([
      reading(
        this.#executions.updateMany(
          { 'outbox.seq': { $in: numbers } } as never,
          { $pull: { outbox: { seq: { $in: numbers } } } } as never,
          this.#session,
        ),
      ),
      reading(this.#collections.orphans.deleteMany({ _id: { $in: numbers } }, this.#session)),
    ])
  }

  async pendingSpawns({ after, limit }: CheckedQueuePage): Promise<SpawnRow[]> {
    return firstEntries<SpawnRow>(this.#collections, {
      bound: 'spawns_from',
      fields: { spawns: 1 },
      most: Number.MAX_SAFE_INTEGER,
      limit,
      entriesOf: ({ spawns = [] }) =>
        spawns.map((spawn) => {
          const row = {
            seq: Number(spawn.seq),
            parentId: spawn.parent_id,
            childId: spawn.child_id,
            rootPath: spawn.root_path,
            context: JSON.stringify(fromBson(spawn.context)),
          }
          return { entry: row, rank: row.seq }
        }),
      wanted: ({ rank }) => rank > after,
      compare: (a, b) => a.seq - b.seq,
    })
  }

  async ackSpawn(seqs: readonly number[]): Promise<void> {
    const numbers = seqs.map((seq) => Long.fromNumber(seq))
    await reading(
      this.#executions.updateMany(
        { 'spawns.seq': { $in: numbers } } as never,
        { $pull: { spawns: { seq: { $in: numbers } } } } as never,
        this.#session,
      ),
    )
  }

  async dueTimers(now: number, { after, limit }: CheckedTimerPage): Promise<DueTimer[]> {
    const compare = (a: DueTimer, b: DueTimer): number =>
      a.fireAt - b.fireAt || compareBytes(a.executionId, b.executionId) || compareBytes(a.path, b.path)
    return firstEntries<DueTimer>(this.#collections, {
      bound: 'next_fire_at',
      fields: { timers: 1 },
      most: now,
      limit,
      entriesOf: ({ _id, timers = {} }) =>
        Object.entries(timers).map(([field, value]) => {
          const fireAt = Number(value)
          return { entry: { executionId: _id, path: fromField(field), fireAt }, rank: fireAt }
        }),
      wanted: ({ entry }) => entry.fireAt <= now && (after === undefined || compare(entry, after) > 0),
      compare,
    })
  }

  async deleteTimer(id: string, path: string, fireAt: number): Promise<void> {
    const field = `timers.${toField(path)}`
    await reading(
      this.#executions.updateOne({ _id: id, [field]: fireAt } as never, { $unset: { [field]: '' } }, this.#session),
    )
  }

  async readTrace(id: string): Promise<TraceRow[]> {
    const { executions, traces } = this.#collections
    const options = { projection: { trace: 1 }, ...this.#session }
    const [early, document] = await Promise.all([
      reading(traces.findOne({ _id: id }, this.#session)),
      reading(executions.findOne({ _id: id }, options)),
    ])
    const { traceMax } = this.#settings
    const steps = [...(early?.trace ?? []), ...(document?.trace ?? [])].map((step) => {
      const entry = fromBson(step) as { index?: number }
      return { index: Number(entry.index), entry: JSON.stringify(entry) }
    })
    return traceMax > 0 ? steps.slice(-traceMax) : steps
  }

  /** For an execution that does not exist the step is kept beside, since a document without a payload breaks readers. */
  async appendTrace(id: string, entry: string): Promise<void> {
    const { executions, traces } = this.#collections
    const last = (await this.readTrace(id)).at(-1)
    const push = { $push: { trace: pushTrace(entry, (last?.index ?? -1) + 1, this.#settings.traceMax) } } as never
    try {
      const { matchedCount } = await executions.updateOne({ _id: id }, push, this.#session)
      if (matchedCount === 0) await traces.updateOne({ _id: id }, push, { upsert: true, ...this.#session })
    } catch (error) {
      throw toStoreError(error, true)
    }
  }

  listExecutions(query: CheckedListQuery): Promise<SummaryRows> {
    return list(this.#collections, query)
  }

  async idsWithPrefix(prefix: string): Promise<string[]> {
    const end = prefixEnd(prefix)
    const range = { $gte: prefix, ...(end !== undefined && { $lt: end }) }
    const options = { projection: { _id: 1 }, ...this.#session }
    const documents = await reading(this.#executions.find({ _id: range }, options).sort({ _id: 1 }).toArray())
    return documents.map(({ _id }) => _id)
  }

  async publishDefinition(row: DefinitionRow): Promise<DefinitionRow> {
    const insert = { definition: row.definition, published_at: row.publishedAt }
    const key = { _id: JSON.stringify([row.id, row.version]) }
    try {
      await this.#collections.definitions.updateOne(key, { $setOnInsert: insert }, { upsert: true, ...this.#session })
    } catch (error) {
      if (!isDuplicate(error)) throw toStoreError(error, false)
    }
    return (await this.loadDefinition(row.id, row.version)) ?? row
  }

  async loadDefinition(id: string, version: string): Promise<DefinitionRow | undefined> {
    const key = { _id: JSON.stringify([id, version]) }
    const found = await reading(this.#collections.definitions.findOne(key, this.#session))
    if (found === null) return undefined
    const publishedAt = found.published_at === null ? null : Number(found.published_at)
    return { id, version, definition: found.definition, publishedAt }
  }

  /**
   * Not one step, but in an order in which a crash loses nothing: first the events that it sent to others are copied to
   * where they outlive it, then the document goes, and last what is kept elsewhere. Called again, it goes on.
   */
  async purge(id: string, expectedVersion: number): Promise<boolean> {
    const { executions, orphans, counters, traces } = this.#collections
    const options = { projection: { version: 1, outbox: 1 }, ...this.#session }
    const document = await reading(executions.findOne({ _id: id }, options))
    if (document !== null && Number(document.version) !== expectedVersion) return false
    const kept = (document?.outbox ?? []).filter(({ target_id }) => target_id !== id)
    const copies = kept.map(({ seq, target_id, event }) => ({ _id: Long.fromNumber(Number(seq)), target_id, event }))
    for (const { _id, ...copy } of copies) {
      await reading(orphans.updateOne({ _id }, { $setOnInsert: copy }, { upsert: true, ...this.#session }))
    }
    if (document !== null) {
      const version = toNumber(expectedVersion)
      const { deletedCount } = await reading(executions.deleteOne({ _id: id, version }, this.#session))
      if (deletedCount === 0) {
        await reading(orphans.deleteMany({ _id: { $in: copies.map(({ _id }) => _id) } }, this.#session))
        return false
      }
    }
    await Promise.all([
      reading(counters.deleteOne({ _id: `trace:${id}` }, this.#session)),
      reading(traces.deleteOne({ _id: id }, this.#session)),
      reading(orphans.deleteMany({ target_id: id }, this.#session)),
      reading(
        executions.updateMany(
          { 'outbox.target_id': id } as never,
          { $pull: { outbox: { target_id: id } } } as never,
          this.#session,
        ),
      ),
    ])
    return document !== null
  }

  async close(): Promise<void> {
    await this.#end()
  }
}
