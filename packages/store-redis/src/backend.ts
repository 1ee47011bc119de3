import {
  type CheckedListQuery,
  type CheckedQueuePage,
  type CheckedTimerPage,
  type DefinitionRow,
  type DueTimer,
  InvalidArgument,
  listingPage,
  matches,
  type OutboxRow,
  type PreparedCommit,
  prefixEnd,
  type SpawnRow,
  type StoreBackend,
  type StoreCapabilities,
  type SummaryRow,
  type SummaryRows,
  type TraceRow,
  type Verdict,
} from '@harel/store-base'
import { type Client, reading, runScript, toStoreError } from './client.js'
import { Keys, timerMember, toTimers } from './keys.js'
import type { Settings } from './options.js'
import { Queue } from './queue.js'
import {
  fromEmit,
  fromSpawn,
  fromSummary,
  summaryOfPayload,
  toOutboxRow,
  toSpawnRow,
  toSummaryRow,
  toTraceRow,
  versionOf,
} from './rows.js'
import { ADD_TRACE, COMMIT, DELETE_TIMER, PURGE, TIMERS_AFTER } from './scripts.js'

export const capabilities: StoreCapabilities = {
  durable: true,
  shared: true,
  identity: false,
  ordered: true,
  paging: 'key',
  maxCommitWrites: Number.POSITIVE_INFINITY,
  // The server's own limit of a string (proto-max-bulk-len).
  maxExecutionBytes: 512 * 1024 * 1024,
  dedupe: 'forever',
  atomicPurge: true,
  transactions: false,
}

/** Ids looked at together while a listing searches. */
const SEARCHED = 500

/** What an expected failure of one command in a pipeline is. */
function replies<T>(results: [error: Error | null, result: unknown][] | null): T[] {
  return (results ?? []).map(([error, result]) => {
    if (error !== null) throw toStoreError(error, false)
    return result as T
  })
}

/** The protocol on Redis. */
export class RedisBackend implements StoreBackend {
  readonly capabilities = capabilities
  readonly #client: Client
  readonly #keys: Keys
  readonly #traceMax: number
  readonly #outbox: Queue
  readonly #spawns: Queue
  readonly #end: () => Promise<void>

  /** @param end called by `close` */
  constructor(client: Client, settings: Settings, end: () => Promise<void>) {
    this.#client = client
    this.#keys = new Keys(settings)
    this.#traceMax = settings.traceMax
    this.#outbox = new Queue(client, this.#keys.outbox, this.#keys.outboxCounter)
    this.#spawns = new Queue(client, this.#keys.spawns, this.#keys.spawnCounter)
    this.#end = end
  }

  async load(id: string): Promise<string | undefined> {
    return (await reading(this.#client.get(this.#keys.execution(id)))) ?? undefined
  }

  /** The state first and the mark second: the mark is never the older one. */
  async loadForEvent(id: string, eventId: string): Promise<{ data: string | undefined; processed: boolean }> {
    const { execution, processed } = { execution: this.#keys.execution(id), processed: this.#keys.processed(id) }
    const results = await reading(this.#client.pipeline().get(execution).sismember(processed, eventId).exec())
    const [data, mark] = replies<string | number | null>(results)
    return { data: typeof data === 'string' ? data : undefined, processed: mark === 1 }
  }

  async commit(commit: PreparedCommit): Promise<Verdict> {
    const { id, emits, spawns, timers, trace } = commit
    if (trace !== undefined) checkTraceId(id)
    const keys = this.#keys
    const reply = (await runScript(
      this.#client,
      COMMIT,
      [
        ...[keys.execution(id), keys.processed(id), keys.outbox, keys.outboxCounter, keys.spawns, keys.spawnCounter],
        ...[keys.timers, keys.trace(id), keys.traceCounter(id), keys.ids, keys.summaries, keys.timerPaths(id)],
      ],
      [
        ...[id, commit.data, String(commit.expected), fromSummary(commit), commit.processedEventId ?? ''],
        ...[this.#traceMax, trace ?? '', emits.length, spawns.length, timers.length],
        ...emits.map(fromEmit),
        ...spawns.map((spawn) => fromSpawn(id, spawn)),
        ...timers.flatMap((op) => [op.path, op.action === 'schedule' ? String(op.fireAt) : '']),
      ],
    )) as [applied: number, detail: string | number]
    const [applied, detail] = reply
    if (applied === 0) return { applied: false, found: detail === '' ? null : Number(detail) }
    return { applied: true, seqs: emits.map((_, index) => Number(detail) + index) }
  }

  async isProcessed(id: string, eventId: string): Promise<boolean> {
    return (await reading(this.#client.sismember(this.#keys.processed(id), eventId))) === 1
  }

  async pendingOutbox(page: CheckedQueuePage): Promise<OutboxRow[]> {
    return (await this.#outbox.page(page)).map(({ seq, value }) => toOutboxRow(seq, value))
  }

  async ackOutbox(seqs: readonly number[]): Promise<void> {
    await this.#outbox.remove(seqs)
  }

  async pendingSpawns(page: CheckedQueuePage): Promise<SpawnRow[]> {
    return (await this.#spawns.page(page)).map(({ seq, value }) => toSpawnRow(seq, value))
  }

  async ackSpawn(seqs: readonly number[]): Promise<void> {
    await this.#spawns.remove(seqs)
  }

  async dueTimers(now: number, { after, limit }: CheckedTimerPage): Promise<DueTimer[]> {
    const { timers } = this.#keys
    const count = Number.isFinite(limit) ? limit : -1
    if (after === undefined) {
      return toTimers(await reading(this.#client.zrangebyscore(timers, '-inf', now, 'WITHSCORES', 'LIMIT', 0, count)))
    }
    const member = timerMember(after.executionId, after.path)
    const reply = await runScript(this.#client, TIMERS_AFTER, [timers], [now, after.fireAt, member, count])
    return toTimers(reply as string[])
  }

  async deleteTimer(id: string, path: string, fireAt: number): Promise<void> {
    const keys = [this.#keys.timers, this.#keys.timerPaths(id)]
    await runScript(this.#client, DELETE_TIMER, keys, [timerMember(id, path), fireAt, path])
  }

  async readTrace(id: string): Promise<TraceRow[]> {
    checkTraceId(id)
    return (await reading(this.#client.lrange(this.#keys.trace(id), 0, -1))).map(toTraceRow)
  }

  async appendTrace(id: string, entry: string): Promise<void> {
    checkTraceId(id)
    const keys = [this.#keys.trace(id), this.#keys.traceCounter(id)]
    await runScript(this.#client, ADD_TRACE, keys, [entry, this.#traceMax])
  }

  async listExecutions(query: CheckedListQuery): Promise<SummaryRows> {
    const found: SummaryRow[] = []
    const unfiltered = query.statuses === undefined && query.definitionId === undefined && !query.rootsOnly
    const step = unfiltered ? query.limit + 1 : SEARCHED
    let from = query.position === null ? '-' : `(${query.position}`
    for (;;) {
      const ids = await reading(this.#client.zrangebylex(this.#keys.ids, from, '+', 'LIMIT', 0, step))
      const rows = await this.#summaries(ids)
      // An unreadable one is left in, so that it is reported.
      found.push(...rows.filter((row) => row.status === null || matches(row as never, query)))
      if (found.length > query.limit || ids.length < step) return listingPage(found, query.limit)
      from = `(${ids.at(-1)}`
    }
  }

  /** Summaries of those that exist: from the hash where it is up to date, else from the payload. */
  async #summaries(ids: readonly string[]): Promise<SummaryRow[]> {
    if (ids.length === 0) return []
    const pipeline = this.#client.pipeline().hmget(this.#keys.summaries, ...ids)
    for (const id of ids) pipeline.getrange(this.#keys.execution(id), 0, 47)
    const [entries, ...heads] = replies<unknown>(await reading(pipeline.exec())) as [(string | null)[], ...string[]]
    const rows: SummaryRow[] = []
    for (const [index, id] of ids.entries()) {
      const head = heads[index] ?? ''
      if (head === '') continue
      const row = toSummaryRow(id, versionOf(head) ?? -1, entries[index] ?? null)
      if (row !== undefined) rows.push(row)
      else {
        const data = await this.load(id)
        if (data !== undefined) rows.push(summaryOfPayload(id, data))
      }
    }
    return rows
  }

  async idsWithPrefix(prefix: string): Promise<string[]> {
    const end = prefixEnd(prefix)
    const from = prefix === '' ? '-' : `[${prefix}`
    return reading(this.#client.zrangebylex(this.#keys.ids, from, end === undefined ? '+' : `(${end}`))
  }

  async publishDefinition(row: DefinitionRow): Promise<DefinitionRow> {
    const field = JSON.stringify([row.id, row.version])
    const value = JSON.stringify([row.definition, row.publishedAt])
    try {
      await this.#client.hsetnx(this.#keys.definitions, field, value)
    } catch (error) {
      throw toStoreError(error, false)
    }
    return (await this.loadDefinition(row.id, row.version)) ?? row
  }

  async loadDefinition(id: string, version: string): Promise<DefinitionRow | undefined> {
    const value = await reading(this.#client.hget(this.#keys.definitions, JSON.stringify([id, version])))
    if (value === null) return undefined
    const [definition, publishedAt] = JSON.parse(value) as [string, number | null]
    return { id, version, definition, publishedAt }
  }

  /**
   * One script, after its entries in the queues were looked for: they are found by reading, because Python's writes feed
   * no index. Timers are looked for in the same way only where Python has had its hands on the execution.
   */
  async purge(id: string, expectedVersion: number): Promise<boolean> {
    const isMine = (member: string) => (value: string) => {
      const parsed: unknown = JSON.parse(value)
      return typeof parsed === 'object' && parsed !== null && Reflect.get(parsed, member) === id
    }
    const sent = await this.#outbox.find(quietly(isMine('t')))
    const issued = await this.#spawns.find(quietly(isMine('p')))
    const first = await this.#purge(id, expectedVersion, '?', sent, issued, [])
    if (first !== -2) return first === 1
    return (await this.#purge(id, expectedVersion, '', sent, issued, await this.#timerPaths(id))) === 1
  }

  async #purge(
    id: string,
    version: number,
    mode: '?' | '',
    sent: readonly number[],
    issued: readonly number[],
    paths: readonly string[],
  ): Promise<unknown> {
    const keys = this.#keys
    return runScript(
      this.#client,
      PURGE,
      [
        ...[keys.execution(id), keys.processed(id), keys.outbox, keys.spawns, keys.timers],
        ...[keys.trace(id), keys.traceCounter(id), keys.ids, keys.summaries, keys.timerPaths(id)],
      ],
      [id, String(version), sent.length, issued.length, mode, ...sent, ...issued, ...paths],
    )
  }

  async #timerPaths(id: string): Promise<string[]> {
    const paths = new Set<string>()
    const pattern = `${timerMember(id, '').replace(/[\\*?[\]]/g, '\\$&')}*`
    let cursor = '0'
    do {
      const [next, members] = await reading(
        this.#client.zscan(this.#keys.timers, cursor, 'MATCH', pattern, 'COUNT', 1000),
      )
      for (let index = 0; index < members.length; index += 2) paths.add((members[index] ?? '').slice(id.length + 1))
      cursor = next
    } while (cursor !== '0')
    return [...paths]
  }

  async close(): Promise<void> {
    await this.#end()
  }
}

/** In the layout of Python harel the trace of `seq:x` is the counter of the trace of `x`. */
function checkTraceId(id: string): void {
  if (id.startsWith('seq:'))
    throw new InvalidArgument('id', id, 'one that does not begin with "seq:", where there is a trace')
}

/** What cannot be parsed does not match. */
const quietly =
  (matches: (value: string) => boolean) =>
  (value: string): boolean => {
    try {
      return matches(value)
    } catch {
      return false
    }
  }
