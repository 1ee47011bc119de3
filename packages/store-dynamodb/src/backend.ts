import { DeleteItemCommand, PutItemCommand, TransactGetItemsCommand } from '@aws-sdk/client-dynamodb'
import {
  type CheckedListQuery,
  type CheckedQueuePage,
  type CheckedTimerPage,
  compareBytes,
  type DefinitionRow,
  type DueTimer,
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
import { commitWrites, MAX_ITEM, MAX_WRITES } from './commit.js'
import { PURGED, queryExecutions, scanExecutions } from './listing.js'
import type { Settings } from './options.js'
import { purge } from './purge.js'
import { Queue } from './queue.js'
import type { Tables } from './tables.js'
import { queryTimers, scanTimers } from './timers.js'
import { Trace } from './trace.js'
import {
  doubleOrNull,
  type Item,
  N,
  number,
  S,
  text,
  textOrNull,
  time,
  timeAttributes,
  toDoubleOrNull,
} from './values.js'

export const capabilitiesOf = ({ gsi }: Settings): StoreCapabilities => ({
  durable: true,
  shared: true,
  identity: false,
  ordered: gsi,
  paging: 'key',
  maxCommitWrites: MAX_WRITES,
  // Beside the payload, an item has keys and what listings show.
  maxExecutionBytes: MAX_ITEM - 8 * 1024,
  dedupe: 'forever',
  atomicPurge: false,
  transactions: false,
})

/** The protocol on DynamoDB. */
export class DynamoBackend implements StoreBackend {
  readonly capabilities: StoreCapabilities
  readonly #connection: Connection
  readonly #tables: Tables
  readonly #outbox: Queue
  readonly #spawns: Queue
  readonly #trace: Trace
  readonly #gsi: boolean
  readonly #end: () => Promise<void>

  /** @param end called by `close` */
  constructor(connection: Connection, tables: Tables, settings: Settings, end: () => Promise<void>) {
    this.capabilities = capabilitiesOf(settings)
    this.#connection = connection
    this.#tables = tables
    this.#outbox = new Queue(connection, tables.outbox, { TableName: tables.counters, id: 'outbox' })
    this.#spawns = new Queue(connection, tables.spawns, { TableName: tables.counters, id: 'spawn' })
    this.#trace = new Trace(connection, tables, settings)
    this.#gsi = settings.gsi
    this.#end = end
  }

  async load(id: string): Promise<string | undefined> {
    return payloadOf(await this.#connection.get(this.#tables.executions, { id: S(id) }))
  }

  /** A transaction, because the items of a batch are not of one moment. */
  async loadForEvent(id: string, eventId: string): Promise<{ data: string | undefined; processed: boolean }> {
    const { executions, processed } = this.#tables
    const command = new TransactGetItemsCommand({
      TransactItems: [
        { Get: { TableName: executions, Key: { id: S(id) } } },
        { Get: { TableName: processed, Key: { execution_id: S(id), event_id: S(eventId) } } },
      ],
    })
    const { Responses: [execution, mark] = [] } = await this.#connection.ask((client) => client.send(command))
    return { data: payloadOf(execution?.Item), processed: Object.keys(mark?.Item ?? {}).length > 0 }
  }

  async commit(commit: PreparedCommit): Promise<Verdict> {
    const { id, expected, token, emits, spawns, trace } = commit
    const { room, numbered } = commitWrites(commit, this.#tables)
    let [outbox, spawn, place] = await Promise.all([
      this.#outbox.take(emits.length),
      this.#spawns.take(spawns.length),
      trace === undefined ? undefined : this.#trace.placeFor(commit),
    ])
    const writes = numbered({ outbox, spawn })
    const applied: Verdict = { applied: true, seqs: emits.map((_, index) => outbox + index) }
    for (;;) {
      const step = trace === undefined || place === undefined ? undefined : this.#trace.writes(id, trace, place, room)
      const refusal = await this.#connection.transact([...writes, ...(step?.writes ?? [])], newId())
      if (refusal === undefined) {
        this.#trace.remember(commit, step?.place)
        return applied
      }
      const [execution] = refusal
      if (execution?.met === false) {
        const found = versionOf(execution.stored)
        // Sent again after the service has forgotten it, it is refused by what it has written itself.
        if (text(execution.stored?.data).includes(token)) return applied
        if (found !== PURGED) return { applied: false, found }
        if (expected !== 0) return { applied: false, found: null }
        // A purge is under way, or broke off: this life begins when that one has ended.
        await this.purge(id, PURGED)
      }
      // Somebody else has added to the trace, or it went with the life before.
      if (trace !== undefined) place = await this.#trace.look(id)
    }
  }

  async isProcessed(id: string, eventId: string): Promise<boolean> {
    const key = { execution_id: S(id), event_id: S(eventId) }
    return (await this.#connection.get(this.#tables.processed, key)) !== undefined
  }

  async pendingOutbox(page: CheckedQueuePage): Promise<OutboxRow[]> {
    return (await this.#outbox.page(page)).map((item) => ({
      seq: number(item.seq),
      targetId: textOrNull(item.target_id),
      event: text(item.event),
    }))
  }

  async pendingSpawns(page: CheckedQueuePage): Promise<SpawnRow[]> {
    return (await this.#spawns.page(page)).map((item) => ({
      seq: number(item.seq),
      parentId: text(item.parent_id),
      childId: text(item.child_id),
      rootPath: text(item.root_path),
      context: text(item.context),
    }))
  }

  ackOutbox(seqs: readonly number[]): Promise<void> {
    return this.#outbox.remove(seqs)
  }

  ackSpawn(seqs: readonly number[]): Promise<void> {
    return this.#spawns.remove(seqs)
  }

  async dueTimers(now: number, page: CheckedTimerPage): Promise<DueTimer[]> {
    if (page.after !== undefined && page.after.fireAt > now) return []
    const read = this.#gsi ? queryTimers : scanTimers
    return read(this.#connection, this.#tables.timers, now, page)
  }

  async deleteTimer(id: string, path: string, fireAt: number): Promise<void> {
    const { exact } = timeAttributes(fireAt)
    const command = new DeleteItemCommand({
      TableName: this.#tables.timers,
      Key: { execution_id: S(id), path: S(path) },
      ConditionExpression: `fire_at = :at AND ${exact ? 'exact = :exact' : 'attribute_not_exists(exact)'}`,
      ExpressionAttributeValues: { ':at': time(fireAt), ...(exact && { ':exact': exact }) },
    })
    await this.#connection.askIf((client) => client.send(command))
  }

  readTrace(id: string): Promise<TraceRow[]> {
    return this.#trace.read(id)
  }

  appendTrace(id: string, entry: string): Promise<void> {
    return this.#trace.append(id, entry)
  }

  listExecutions(query: CheckedListQuery): Promise<SummaryRows> {
    const read = this.#gsi ? queryExecutions : scanExecutions
    return read(this.#connection, this.#tables.executions, query)
  }

  async idsWithPrefix(prefix: string): Promise<string[]> {
    const ids: string[] = []
    const pages = this.#connection.scan({
      TableName: this.#tables.executions,
      ProjectionExpression: 'id',
      FilterExpression: `version <> :purged${prefix === '' ? '' : ' AND begins_with(id, :prefix)'}`,
      ExpressionAttributeValues: { ':purged': N(PURGED), ...(prefix !== '' && { ':prefix': S(prefix) }) },
    })
    for await (const { items } of pages) ids.push(...items.map(({ id }) => text(id)))
    return ids.sort(compareBytes)
  }

  async publishDefinition(row: DefinitionRow): Promise<DefinitionRow> {
    const command = new PutItemCommand({
      TableName: this.#tables.definitions,
      Item: {
        id: S(row.id),
        version: S(row.version),
        definition: S(row.definition),
        published_at: doubleOrNull(row.publishedAt),
      },
      ConditionExpression: 'attribute_not_exists(id)',
    })
    await this.#connection.askIf((client) => client.send(command))
    return (await this.loadDefinition(row.id, row.version)) ?? row
  }

  async loadDefinition(id: string, version: string): Promise<DefinitionRow | undefined> {
    const item = await this.#connection.get(this.#tables.definitions, { id: S(id), version: S(version) })
    return item && { id, version, definition: text(item.definition), publishedAt: toDoubleOrNull(item.published_at) }
  }

  purge(id: string, expectedVersion: number): Promise<boolean> {
    this.#trace.forget(id)
    return purge(this.#connection, this.#tables, id, expectedVersion)
  }

  close(): Promise<void> {
    return this.#end()
  }
}

/** What is being purged is gone. */
const payloadOf = (item: Item | undefined): string | undefined =>
  item === undefined || versionOf(item) === PURGED ? undefined : item.data?.S

const versionOf = (item: Item | undefined): number | null => (item?.version === undefined ? null : number(item.version))
