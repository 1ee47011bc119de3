import {
  type CheckedListQuery,
  type CheckedQueuePage,
  type CheckedTimerPage,
  CommitTooLarge,
  compareBytes,
  type DefinitionRow,
  type DueTimer,
  type OutboxRow,
  OutcomeUnknown,
  type PreparedCommit,
  prefixEnd,
  Sequence,
  type SpawnRow,
  type StoreBackend,
  type StoreCapabilities,
  StoreUnavailable,
  type SummaryRows,
  type TraceRow,
  type Verdict,
} from '@harel/store-base'
import { BSON, type Document, Long } from 'mongodb'
import { toNumber } from './bson.js'
import { type ExecutionDocument, FOREIGN } from './collections.js'
import type { Connection } from './connection.js'
import { isDuplicate, MAX_DOCUMENT, retriedOnce } from './errors.js'
import { list } from './listing.js'
import type { Settings } from './options.js'
import { toField } from './paths.js'
import { purge } from './purge.js'
import { firstEntries } from './queue.js'
import { toOutboxRow, toSpawnRow, toTimers, toTraceRows } from './rows.js'
import { commitUpdate, largest, timerUpdate, traceUpdate } from './update.js'

export const capabilitiesOf = (dedupe: number): StoreCapabilities => ({
  durable: true,
  shared: true,
  identity: false,
  ordered: true,
  paging: 'key',
  // All of them stand in one document, so that only its bytes count.
  maxCommitWrites: Number.POSITIVE_INFINITY,
  maxExecutionBytes: MAX_DOCUMENT - 64 * 1024,
  dedupe,
  atomicPurge: false,
  transactions: true,
})

/** The protocol on MongoDB. */
export class MongoBackend implements StoreBackend {
  readonly capabilities: StoreCapabilities
  readonly #connection: Connection
  readonly #settings: Settings
  readonly #numbers: Record<'outbox' | 'spawn', Sequence>
  readonly #end: () => Promise<void>

  /** @param end called by `close` */
  constructor(connection: Connection, settings: Settings, end: () => Promise<void>, numbers = numbersOf(connection)) {
    this.capabilities = capabilitiesOf(settings.dedupe)
    this.#connection = connection
    this.#settings = settings
    this.#numbers = numbers
    this.#end = end
  }

  /** The same in a transaction of the caller's. Numbers are taken outside of it: those it gives up are gaps. */
  within(connection: Connection): MongoBackend {
    return new MongoBackend(connection, this.#settings, async () => {}, this.#numbers)
  }

  async load(id: string): Promise<string | undefined> {
    return (await this.#find(id, { data: 1 }))?.data
  }

  /** One document, and so one snapshot. */
  async loadForEvent(id: string, eventId: string): Promise<{ data: string | undefined; processed: boolean }> {
    const document = await this.#find(id, { data: 1, processed: { $elemMatch: { $eq: eventId } } })
    return { data: document?.data, processed: document?.processed !== undefined }
  }

  #find(id: string, projection: Document): Promise<ExecutionDocument | null> {
    return this.#connection.read(({ executions }, options) =>
      executions.findOne({ _id: id }, { projection, ...options }),
    )
  }

  async commit(commit: PreparedCommit): Promise<Verdict> {
    const { id, expected, emits, spawns } = commit
    // A duplicate key would end the caller's transaction.
    if (this.#connection.isTransaction && expected === 0) {
      const found = await this.#version(id)
      if (found !== null && found > 0) return { applied: false, found }
    }
    const [outbox, spawn] = await Promise.all([
      emits.length === 0 ? 0 : this.#numbers.outbox.take(emits.length),
      spawns.length === 0 ? 0 : this.#numbers.spawn.take(spawns.length),
    ])
    const update = commitUpdate(commit, { outbox, spawn }, this.#settings)
    checkSize(update)
    if (!(await this.#update(commit, update))) return { applied: false, found: await this.#version(id) }
    return { applied: true, seqs: emits.map((_, index) => outbox + index) }
  }

  /** Whether the document was as expected, and was written. */
  async #update({ id, expected }: PreparedCommit, update: Document[]): Promise<boolean> {
    // Without a version: no document, or one in which Python harel has begun a trace; and others may have stored a 0.
    const filter = { _id: id, version: expected === 0 ? { $in: [null, 0] } : toNumber(expected) } as object
    const attempt = () =>
      this.#connection.write(async ({ executions }, options) => {
        try {
          const result = await executions.updateOne(filter, update, { upsert: expected === 0, ...options })
          return result.matchedCount + result.upsertedCount > 0
        } catch (error) {
          if (isDuplicate(error)) return false
          throw error
        }
      })
    try {
      return await attempt()
    } catch (error) {
      if (!(error instanceof OutcomeUnknown)) throw error
    }
    // The first attempt may be under way still. Only one of the two can find the version that is expected.
    const written = await attempt().catch((error: unknown) => {
      throw new OutcomeUnknown('MongoDB did not reply to a commit, nor when it was sent again', error, { untold: true })
    })
    if (!written) throw new OutcomeUnknown('MongoDB did not reply to a commit, and refused it when it was sent again')
    return true
  }

  /** As it is now, also if a majority does not know of it yet. */
  async #version(id: string): Promise<number | null> {
    const local = { projection: { version: 1 }, readConcern: 'local' } as const
    const document = await this.#connection.read(({ executions }, options) =>
      executions.findOne({ _id: id }, { ...local, ...options }),
    )
    return document?.version === undefined ? null : Number(document.version)
  }

  async isProcessed(id: string, eventId: string): Promise<boolean> {
    return (await this.loadForEvent(id, eventId)).processed
  }

  async pendingOutbox({ after, limit }: CheckedQueuePage): Promise<OutboxRow[]> {
    const rows = await this.#queued('outbox', { after, limit }, ({ outbox = [] }) => outbox.map(toOutboxRow))
    const orphans = await this.#connection.read(({ orphans }, options) =>
      orphans
        .find({ _id: { $gt: after } }, options)
        .sort({ _id: 1 })
        .limit(Number.isFinite(limit) ? limit : 0)
        .toArray(),
    )
    // While a sender is being purged, its entries are in both places.
    const all = new Map(orphans.map(({ _id, ...entry }) => [Number(_id), toOutboxRow({ seq: _id, ...entry })]))
    for (const row of rows) all.set(row.seq, row)
    return [...all.values()].sort(bySeq).slice(0, limit)
  }

  /** First where entries are moved from, then where they are moved to. */
  async ackOutbox(seqs: readonly number[]): Promise<void> {
    await this.#acknowledge('outbox', seqs)
    const numbers = { $in: seqs.map((seq) => Long.fromNumber(seq)) }
    await this.#connection.read(({ orphans }, options) => orphans.deleteMany({ _id: numbers }, options))
  }

  pendingSpawns(page: CheckedQueuePage): Promise<SpawnRow[]> {
    return this.#queued('spawns', page, ({ spawns = [] }) => spawns.map(toSpawnRow))
  }

  ackSpawn(seqs: readonly number[]): Promise<void> {
    return this.#acknowledge('spawns', seqs)
  }

  #queued<Row extends { seq: number }>(
    queue: 'outbox' | 'spawns',
    { after, limit }: CheckedQueuePage,
    rowsOf: (document: ExecutionDocument) => Row[],
  ): Promise<Row[]> {
    const seq = `${queue}.seq`
    // As an expression, the second part does not keep the index from giving the order.
    const filter = { [seq]: { $exists: true }, ...(after >= 0 && { $expr: { $gt: [largest(queue, 'seq'), after] } }) }
    return this.#connection.read(({ executions }, options) =>
      firstEntries(executions.find(filter, { projection: { [queue]: 1 }, ...options }).sort({ [seq]: 1 }), {
        limit,
        entriesOf: (document) => rowsOf(document).filter((row) => row.seq > after),
        compare: bySeq,
        isBehind: (document, last) => rowsOf(document).every((row) => row.seq > last.seq),
      }),
    )
  }

  async #acknowledge(queue: 'outbox' | 'spawns', seqs: readonly number[]): Promise<void> {
    const numbers = { $in: seqs.map((seq) => Long.fromNumber(seq)) }
    await this.#connection.read(({ executions }, options) =>
      executions.updateMany({ [`${queue}.seq`]: numbers }, { $pull: { [queue]: { seq: numbers } } } as object, options),
    )
  }

  async dueTimers(now: number, { after, limit }: CheckedTimerPage): Promise<DueTimer[]> {
    const isDue = (timer: DueTimer) => timer.fireAt <= now && (after === undefined || byTime(timer, after) > 0)
    const entriesOf = (document: ExecutionDocument) => toTimers(document).filter(isDue)
    return this.#connection.read(async ({ executions }, options) => {
      const found = { projection: { timers: 1, next_fire_at: 1 }, ...options }
      const foreign = await executions.find(FOREIGN, found).toArray()
      const seen = new Set(foreign.map(({ _id }) => _id))
      const ours = executions.find({ next_fire_at: { $lte: now } }, found).sort({ next_fire_at: 1 })
      const order = {
        limit,
        entriesOf: (document: ExecutionDocument) => (seen.has(document._id) ? [] : entriesOf(document)),
        compare: byTime,
        isBehind: ({ next_fire_at }: ExecutionDocument, last: DueTimer) => Number(next_fire_at) > last.fireAt,
      }
      return firstEntries(ours, order, foreign.flatMap(entriesOf))
    })
  }

  async deleteTimer(id: string, path: string, fireAt: number): Promise<void> {
    const filter = { _id: id, [`timers.${toField(path)}`]: fireAt } as object
    await this.#connection.read(({ executions }, options) => executions.updateOne(filter, timerUpdate(path), options))
  }

  async readTrace(id: string): Promise<TraceRow[]> {
    const [early, document] = await Promise.all([
      this.#connection.read(({ traces }, options) => traces.findOne({ _id: id }, options)),
      this.#find(id, { trace: 1 }),
    ])
    const rows = toTraceRows(early?.trace ?? [], document?.trace ?? [])
    const { traceMax } = this.#settings
    return traceMax > 0 ? rows.slice(-traceMax) : rows
  }

  /** For an execution that does not exist the step is kept beside, where it stays; its commits count on from there. */
  async appendTrace(id: string, entry: string): Promise<void> {
    const update = traceUpdate(entry, this.#settings)
    const isStored = await this.#connection.write(async ({ executions }, options) => {
      const { matchedCount } = await executions.updateOne({ _id: id }, update, options)
      return matchedCount > 0
    })
    if (isStored) return
    await this.#connection.write(({ traces }, options) =>
      retriedOnce(() => traces.updateOne({ _id: id }, update, { upsert: true, ...options })),
    )
  }

  listExecutions(query: CheckedListQuery): Promise<SummaryRows> {
    return list(this.#connection, query)
  }

  async idsWithPrefix(prefix: string): Promise<string[]> {
    const end = prefixEnd(prefix)
    const range = { $gte: prefix, ...(end !== undefined && { $lt: end }) }
    const documents = await this.#connection.read(({ executions }, options) =>
      executions
        .find({ _id: range }, { projection: { _id: 1 }, ...options })
        .sort({ _id: 1 })
        .toArray(),
    )
    return documents.map(({ _id }) => _id)
  }

  async publishDefinition(row: DefinitionRow): Promise<DefinitionRow> {
    const insert = { $setOnInsert: { definition: row.definition, published_at: row.publishedAt } }
    const key = { _id: definitionKey(row.id, row.version) }
    await this.#connection.read(({ definitions }, options) =>
      retriedOnce(() => definitions.updateOne(key, insert, { upsert: true, ...options })),
    )
    return (await this.loadDefinition(row.id, row.version)) ?? row
  }

  async loadDefinition(id: string, version: string): Promise<DefinitionRow | undefined> {
    const found = await this.#connection.read(({ definitions }, options) =>
      definitions.findOne({ _id: definitionKey(id, version) }, options),
    )
    if (found === null) return undefined
    const publishedAt = found.published_at === null ? null : Number(found.published_at)
    return { id, version, definition: found.definition, publishedAt }
  }

  purge(id: string, expectedVersion: number): Promise<boolean> {
    return purge(this.#connection, id, expectedVersion, (seqs) => this.ackOutbox(seqs))
  }

  async close(): Promise<void> {
    await this.#connection.close()
    await this.#end()
  }
}

/** The numbers of the queues, from the counters that Python harel takes them from, too. */
function numbersOf(connection: Connection): Record<'outbox' | 'spawn', Sequence> {
  const reserve = (counter: 'outbox' | 'spawn') => async (count: number) => {
    const add = { $inc: { n: Long.fromNumber(count) } }
    const take = () =>
      connection.read(({ counters }) =>
        retriedOnce(() => counters.findOneAndUpdate({ _id: counter }, add, { upsert: true, returnDocument: 'after' })),
      )
    // Among many who make the counter at once, a server may show some of them the document as it was not yet.
    const document = (await take()) ?? (await take())
    if (document === null) throw new StoreUnavailable('MongoDB gave no number for the entries of a commit')
    return Number(document.n)
  }
  return { outbox: new Sequence(reserve('outbox')), spawn: new Sequence(reserve('spawn')) }
}

/** @throws CommitTooLarge */
function checkSize(update: Document[]): void {
  const size = BSON.calculateObjectSize(update)
  if (size > MAX_DOCUMENT) throw new CommitTooLarge('bytes', size, MAX_DOCUMENT)
}

const bySeq = (a: { seq: number }, b: { seq: number }): number => a.seq - b.seq

const byTime = (a: DueTimer, b: DueTimer): number =>
  a.fireAt - b.fireAt || compareBytes(a.executionId, b.executionId) || compareBytes(a.path, b.path)

const definitionKey = (id: string, version: string): string => JSON.stringify([id, version])
