import {
  type CheckedListQuery,
  type CheckedQueuePage,
  type CheckedTimerPage,
  CommitTooLarge,
  CorruptRecord,
  type DefinitionRow,
  type DueTimer,
  InvalidArgument,
  newId,
  type OutboxRow,
  type PreparedCommit,
  type SpawnRow,
  type StoreBackend,
  type StoreCapabilities,
  type SummaryRows,
  type TraceRow,
  type Verdict,
} from '@harel/store-base'
import type { Connection } from './client.js'
import { Commits } from './commits.js'
import { beginsWith, type Keys, timerMember } from './keys.js'
import { Listing, type Reindexed } from './listing.js'
import { HEAD_BYTES } from './lua.js'
import type { Settings } from './options.js'
import { CHANGED, PURGE } from './purge-script.js'
import { Queue } from './queue.js'
import { beginnings, toOutboxRow, toSpawnRow, toTimers, toTraceRow, versionOf } from './rows.js'
import { ADD_TRACE, DELETE_TIMER, DUE_TIMERS } from './scripts.js'

const MEBIBYTE = 1024 * 1024

const capabilities: StoreCapabilities = {
  durable: true,
  shared: true,
  identity: false,
  ordered: true,
  paging: 'key',
  // A request may have a million arguments, and none of these needs more than two.
  maxCommitWrites: 500_000,
  // The driver makes one string of a request, and Node's strings end at 512 Mi characters.
  maxExecutionBytes: 256 * MEBIBYTE,
  dedupe: 'forever',
  atomicPurge: true,
  transactions: false,
}

/** The protocol on Redis. */
export class RedisBackend implements StoreBackend {
  readonly capabilities = capabilities
  readonly #connection: Connection
  readonly #keys: Keys
  readonly #traceMax: number
  readonly #commits: Commits
  readonly #outbox: Queue
  readonly #spawns: Queue
  readonly #listing: Listing
  readonly #end: () => Promise<void>

  /** @param end called by `close` */
  constructor(connection: Connection, keys: Keys, { traceMax, filterIndex }: Settings, end: () => Promise<void>) {
    this.#connection = connection
    this.#keys = keys
    this.#traceMax = traceMax
    this.#commits = new Commits(connection, keys, traceMax)
    this.#outbox = new Queue(connection, keys.outbox, keys.outboxCounter)
    this.#spawns = new Queue(connection, keys.spawns, keys.spawnCounter)
    this.#listing = new Listing(connection, keys, filterIndex)
    this.#end = end
  }

  /** Resolves when the server can be worked with. */
  open(): Promise<void> {
    return this.#connection.open()
  }

  async load(id: string): Promise<string | undefined> {
    return (await this.#connection.read((client) => client.get(this.#keys.execution(id)))) ?? undefined
  }

  /** The state first and the mark second: the mark is never the older one. */
  async loadForEvent(id: string, eventId: string): Promise<{ data: string | undefined; processed: boolean }> {
    const keys = this.#keys
    const [data, mark] = await this.#connection.readAll((pipeline) =>
      pipeline.get(keys.execution(id)).sismember(keys.processed(id), eventId),
    )
    return { data: typeof data === 'string' ? data : undefined, processed: Number(mark) === 1 }
  }

  async commit(commit: PreparedCommit): Promise<Verdict> {
    if (commit.trace !== undefined) checkTraceId(commit.id)
    return this.#commits.add(commit, sizeOf(commit))
  }

  async isProcessed(id: string, eventId: string): Promise<boolean> {
    const answer = await this.#connection.read((client) => client.sismember(this.#keys.processed(id), eventId))
    return Number(answer) === 1
  }

  async pendingOutbox(page: CheckedQueuePage): Promise<OutboxRow[]> {
    return (await this.#outbox.page(page)).map(toOutboxRow)
  }

  ackOutbox(seqs: readonly number[]): Promise<void> {
    return this.#outbox.remove(seqs)
  }

  async pendingSpawns(page: CheckedQueuePage): Promise<SpawnRow[]> {
    return (await this.#spawns.page(page)).map(toSpawnRow)
  }

  ackSpawn(seqs: readonly number[]): Promise<void> {
    return this.#spawns.remove(seqs)
  }

  async dueTimers(now: number, { after, limit }: CheckedTimerPage): Promise<DueTimer[]> {
    const args = [now, Number.isFinite(limit) ? limit : -1]
    const behind = after === undefined ? [] : [after.fireAt, timerMember(after.executionId, after.path)]
    const answer = await this.#connection.evaluate(DUE_TIMERS, [this.#keys.timers], [...args, ...behind])
    return toTimers(answer as string[])
  }

  async deleteTimer(id: string, path: string, fireAt: number): Promise<void> {
    const keys = [this.#keys.timers, this.#keys.timerPaths(id)]
    await this.#connection.evaluate(DELETE_TIMER, keys, [timerMember(id, path), fireAt, path])
  }

  async readTrace(id: string): Promise<TraceRow[]> {
    const key = this.#keys.trace(id)
    try {
      return (await this.#connection.read((client) => client.lrange(key, 0, -1))).map(toTraceRow)
    } catch (error) {
      // It is the counter of another trace: this execution has none.
      if (error instanceof CorruptRecord && collides(id)) return []
      throw error
    }
  }

  async appendTrace(id: string, entry: string): Promise<void> {
    checkTraceId(id)
    const keys = [this.#keys.trace(id), this.#keys.traceCounter(id), this.#keys.result(newId())]
    await this.#connection.write(ADD_TRACE, keys, [entry, this.#traceMax])
  }

  listExecutions(query: CheckedListQuery): Promise<SummaryRows> {
    return this.#listing.page(query)
  }

  idsWithPrefix(prefix: string): Promise<string[]> {
    return this.#listing.idsWithPrefix(prefix)
  }

  reindex(): Promise<Reindexed> {
    return this.#listing.rebuild()
  }

  async publishDefinition(row: DefinitionRow): Promise<DefinitionRow> {
    const { definitions } = this.#keys
    const value = JSON.stringify([row.definition, row.publishedAt])
    await this.#connection.read((client) => client.hsetnx(definitions, definitionField(row.id, row.version), value))
    return (await this.loadDefinition(row.id, row.version)) ?? row
  }

  async loadDefinition(id: string, version: string): Promise<DefinitionRow | undefined> {
    const { definitions } = this.#keys
    const value = await this.#connection.read((client) => client.hget(definitions, definitionField(id, version)))
    if (value === null) return undefined
    const [definition, publishedAt] = JSON.parse(value) as [string, number | null]
    return { id, version, definition, publishedAt }
  }

  /**
   * One script, after what belongs to the execution was looked for: other writers feed no index of ours. The script
   * refuses when another execution stands there meanwhile, and looks itself at what was sent to it meanwhile.
   */
  async purge(id: string, expectedVersion: number): Promise<boolean> {
    const keys = this.#keys
    const own = [keys.execution(id), keys.processed(id), keys.outbox, keys.outboxCounter, keys.spawns, keys.timers]
    own.push(keys.timerPaths(id), keys.trace(id), keys.traceCounter(id), keys.ids, keys.mixed, keys.result(newId()))
    own.push(keys.filters, keys.places)
    const addressed = beginnings('t', id)
    for (;;) {
      const { last } = await this.#outbox.extent()
      const [head, mixed] = await this.#connection.readAll((pipeline) =>
        pipeline.getrange(keys.execution(id), 0, HEAD_BYTES - 1).sismember(keys.mixed, id),
      )
      const version = versionOf(String(head))
      if (version !== undefined && version !== expectedVersion) return false
      const [sent, issued, paths] = await Promise.all([
        this.#outbox.find(...addressed),
        this.#spawns.find(...beginnings('p', id)),
        version === undefined || Number(mixed) === 1 ? this.#timerPaths(id) : [],
      ])
      const seen = version === undefined && head !== '' ? '*' : String(head)
      const counts = [addressed.length, sent.length, issued.length]
      const args = [id, expectedVersion, seen, last, ...counts, ...addressed, ...sent, ...issued, ...paths]
      const { answer } = await this.#connection.write(PURGE, own, args)
      if (Number(answer) !== CHANGED) return Number(answer) === 1
    }
  }

  /** The paths of the execution's timers, whoever has armed them. */
  async #timerPaths(id: string): Promise<string[]> {
    const beginning = timerMember(id, '')
    const paths = new Set<string>()
    let cursor = '0'
    do {
      const [next, found] = await this.#connection.read((client) =>
        client.zscan(this.#keys.timers, cursor, 'MATCH', beginsWith(beginning), 'COUNT', 1000),
      )
      for (let index = 0; index < found.length; index += 2) paths.add((found[index] ?? '').slice(beginning.length))
      cursor = String(next)
    } while (cursor !== '0')
    return [...paths]
  }

  close(): Promise<void> {
    this.#commits.send()
    return this.#end()
  }
}

/** In the layout of Python harel the trace of `seq:x` and the counter of the trace of `x` are one key. */
const collides = (id: string): boolean => id.startsWith('seq:')

function checkTraceId(id: string): void {
  if (collides(id))
    throw new InvalidArgument('id', id, 'one that does not begin with "seq:", for it is to have a trace')
}

/** The length of the texts of a commit and the number of its writes. @throws CommitTooLarge */
function sizeOf({ data, emits, spawns, timers, trace = '' }: PreparedCommit): number {
  const texts = [data, trace, ...emits.map(({ event }) => event), ...spawns.map(({ context }) => context)]
  const units = texts.reduce((sum, { length }) => sum + length, 0)
  const { maxExecutionBytes } = capabilities
  // A unit of a string is at most three bytes, so these need not be counted but where they are many.
  const bytes = units * 3 <= maxExecutionBytes ? 0 : texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0)
  if (bytes > maxExecutionBytes) throw new CommitTooLarge('bytes', bytes, maxExecutionBytes)
  return units + texts.length + timers.length
}

const definitionField = (id: string, version: string): string => JSON.stringify([id, version])
