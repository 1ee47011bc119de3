import {
  ConditionalCheckFailedException,
  DeleteItemCommand,
  type DynamoDBClient,
  GetItemCommand,
  PutItemCommand,
  QueryCommand,
  type QueryCommandInput,
  ScanCommand,
  type ScanCommandInput,
  TransactGetItemsCommand,
  type TransactWriteItem,
  TransactWriteItemsCommand,
  UpdateItemCommand,
} from '@aws-sdk/client-dynamodb'
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
  Sequence,
  type SpawnRow,
  type StoreBackend,
  type StoreCapabilities,
  type SummaryRows,
  type TraceRow,
  type Verdict,
} from '@harel/store-base'
import { commitItems, foundVersion, MAX_ITEM, MAX_WRITES } from './commit.js'
import { patiently, reasonsOf, toStoreError } from './errors.js'
import { list } from './listing.js'
import type { Settings } from './options.js'
import { BY_DUE, type Tables } from './tables.js'
import { type Item, N, number, numberOrNull, S, text, textOrNull, time } from './values.js'

export const capabilitiesOf = ({ gsi }: Settings): StoreCapabilities => ({
  durable: true,
  shared: true,
  identity: false,
  ordered: gsi,
  paging: 'key',
  maxCommitWrites: MAX_WRITES,
  // With its other attributes an execution must fit into an item.
  maxExecutionBytes: MAX_ITEM - 16 * 1024,
  dedupe: 'forever',
  atomicPurge: false,
  transactions: false,
})

/** Tries after a step was added to the trace beside the commits. */
const TRACE_TRIES = 5
/** Executions whose next trace index is remembered. */
const REMEMBERED = 10_000
const compareTimers = (a: DueTimer, b: DueTimer): number =>
  a.fireAt - b.fireAt || compareBytes(a.executionId, b.executionId) || compareBytes(a.path, b.path)

/** The protocol on DynamoDB. Every read is consistent. */
export class DynamoBackend implements StoreBackend {
  readonly capabilities: StoreCapabilities
  readonly #client: DynamoDBClient
  readonly #tables: Tables
  readonly #settings: Settings
  readonly #outboxNumbers: Sequence
  readonly #spawnNumbers: Sequence
  readonly #nextTrace = new Map<string, { version: number; index: number }>()
  readonly #end: () => void

  /** @param end called by `close` */
  constructor(client: DynamoDBClient, tables: Tables, settings: Settings, end: () => void) {
    this.capabilities = capabilitiesOf(settings)
    this.#client = client
    this.#tables = tables
    this.#settings = settings
    this.#outboxNumbers = new Sequence((count) => this.#reserve('outbox', count))
    this.#spawnNumbers = new Sequence((count) => this.#reserve('spawn', count))
    this.#end = end
  }

  async #reserve(name: 'outbox' | 'spawn', count: number): Promise<number> {
    const command = new UpdateItemCommand({
      TableName: this.#tables.counters,
      Key: { id: S(name) },
      UpdateExpression: 'ADD n :count',
      ExpressionAttributeValues: { ':count': N(count) },
      ReturnValues: 'UPDATED_NEW',
    })
    return number((await patiently(() => this.#client.send(command), false)).Attributes?.n)
  }

  async #get(TableName: string, Key: Item): Promise<Item | undefined> {
    const command = new GetItemCommand({ TableName, Key, ConsistentRead: true })
    return (await patiently(() => this.#client.send(command), false)).Item
  }

  /** All items of a query, page by page. */
  async #query(input: Omit<QueryCommandInput, 'ExclusiveStartKey'>): Promise<Item[]> {
    const items: Item[] = []
    let from: Item | undefined
    do {
      const command = new QueryCommand({ ...input, ExclusiveStartKey: from })
      const page = await patiently(() => this.#client.send(command), false)
      items.push(...(page.Items ?? []))
      from = page.LastEvaluatedKey
    } while (from !== undefined && !(input.Limit !== undefined && items.length >= input.Limit))
    return items
  }

  async #scan(input: Omit<ScanCommandInput, 'ExclusiveStartKey' | 'ConsistentRead'>): Promise<Item[]> {
    const items: Item[] = []
    let from: Item | undefined
    do {
      const command = new ScanCommand({ ...input, ConsistentRead: true, ExclusiveStartKey: from })
      const page = await patiently(() => this.#client.send(command), false)
      items.push(...(page.Items ?? []))
      from = page.LastEvaluatedKey
    } while (from !== undefined)
    return items
  }

  async load(id: string): Promise<string | undefined> {
    return payloadOf(await this.#get(this.#tables.executions, { id: S(id) }))
  }

  /** A transaction, because items of a batch are not of one moment. */
  async loadForEvent(id: string, eventId: string): Promise<{ data: string | undefined; processed: boolean }> {
    const { executions, processed } = this.#tables
    const command = new TransactGetItemsCommand({
      TransactItems: [
        { Get: { TableName: executions, Key: { id: S(id) } } },
        { Get: { TableName: processed, Key: { execution_id: S(id), event_id: S(eventId) } } },
      ],
    })
    const { Responses = [] } = await patiently(() => this.#client.send(command), false)
    const [execution, mark] = Responses.map(({ Item }) => Item)
    return { data: payloadOf(execution), processed: mark !== undefined && Object.keys(mark).length > 0 }
  }

  async commit(commit: PreparedCommit): Promise<Verdict> {
    const { emits, spawns } = commit
    const numbersNeeded = { outbox: 0, spawn: 0, trace: 0 }
    // Refuses what is too large before anything is sent.
    commitItems(commit, numbersNeeded, this.#tables, this.#settings)
    const [outbox, spawn, index] = await Promise.all([
      emits.length === 0 ? 0 : this.#outboxNumbers.take(emits.length),
      spawns.length === 0 ? 0 : this.#spawnNumbers.take(spawns.length),
      commit.trace === undefined ? 0 : this.#nextTraceIndex(commit),
    ])
    let trace = index
    for (let tries = 1; ; tries++) {
      const items = commitItems(commit, { outbox, spawn, trace }, this.#tables, this.#settings)
      const refusal = await this.#transact(items, tries === 1 ? commit.token : newId())
      if (refusal === undefined) {
        if (commit.trace !== undefined) this.#rememberTrace(commit.id, commit.version, trace + 1)
        return { applied: true, seqs: emits.map((_, place) => outbox + place) }
      }
      if (refusal.execution !== undefined) return { applied: false, found: refusal.execution.found }
      // Only the index of the trace step was taken.
      if (tries === TRACE_TRIES) throw toStoreError(refusal.error, false)
      trace = await this.#readNextTraceIndex(commit.id)
    }
  }

  /** Undefined when it was written; else whether the execution was not as expected. */
  async #transact(
    TransactItems: TransactWriteItem[],
    ClientRequestToken: string,
  ): Promise<{ execution: { found: number | null } | undefined; error: unknown } | undefined> {
    // Sent again with the same token, it is done once: the service remembers the token for ten minutes.
    const command = new TransactWriteItemsCommand({ TransactItems, ClientRequestToken })
    try {
      await patiently(() => this.#client.send(command), true)
      return undefined
    } catch (error) {
      const reasons = reasonsOf(error)
      if (reasons[0]?.Code === 'ConditionalCheckFailed')
        return { execution: { found: foundVersion(reasons[0].Item) }, error }
      if (reasons.some(({ Code }) => Code === 'ConditionalCheckFailed')) return { execution: undefined, error }
      throw toStoreError(error, true)
    }
  }

  async #nextTraceIndex({ id, expected }: PreparedCommit): Promise<number> {
    const known = this.#nextTrace.get(id)
    return known?.version === expected ? known.index : this.#readNextTraceIndex(id)
  }

  async #readNextTraceIndex(id: string): Promise<number> {
    const [last] = await this.#query({ ...this.#partition(this.#tables.trace, id), ScanIndexForward: false, Limit: 1 })
    return last === undefined ? 0 : number(last.idx) + 1
  }

  #rememberTrace(id: string, version: number, index: number): void {
    if (this.#nextTrace.size >= REMEMBERED) this.#nextTrace.clear()
    this.#nextTrace.set(id, { version, index })
  }

  /** A query for what stands under an execution. */
  #partition(TableName: string, id: string) {
    return {
      TableName,
      ConsistentRead: true,
      KeyConditionExpression: 'execution_id = :id',
      ExpressionAttributeValues: { ':id': S(id) },
    }
  }

  async isProcessed(id: string, eventId: string): Promise<boolean> {
    return (await this.#get(this.#tables.processed, { execution_id: S(id), event_id: S(eventId) })) !== undefined
  }

  async pendingOutbox(page: CheckedQueuePage): Promise<OutboxRow[]> {
    const items = await this.#queue(this.#tables.outbox, page)
    return items.map((item) => ({
      seq: number(item.seq),
      targetId: textOrNull(item.target_id),
      event: text(item.event),
    }))
  }

  async pendingSpawns(page: CheckedQueuePage): Promise<SpawnRow[]> {
    const items = await this.#queue(this.#tables.spawns, page)
    return items.map((item) => ({
      seq: number(item.seq),
      parentId: text(item.parent_id),
      childId: text(item.child_id),
      rootPath: text(item.root_path),
      context: text(item.context),
    }))
  }

  /** A table by number has no order, so that it is read as a whole. */
  async #queue(TableName: string, { after, limit }: CheckedQueuePage): Promise<Item[]> {
    const items = await this.#scan({
      TableName,
      FilterExpression: 'seq > :after',
      ExpressionAttributeValues: { ':after': N(after) },
    })
    return items.sort((a, b) => number(a.seq) - number(b.seq)).slice(0, limit)
  }

  ackOutbox(seqs: readonly number[]): Promise<void> {
    return this.#delete(seqs.map((seq) => [this.#tables.outbox, { seq: N(seq) }]))
  }

  ackSpawn(seqs: readonly number[]): Promise<void> {
    return this.#delete(seqs.map((seq) => [this.#tables.spawns, { seq: N(seq) }]))
  }

  /** Deletes items, some at a time; those that are not there are no error. */
  async #delete(keys: readonly (readonly [table: string, key: Item])[]): Promise<void> {
    for (let start = 0; start < keys.length; start += 25) {
      await Promise.all(
        keys.slice(start, start + 25).map(([TableName, Key]) => {
          const command = new DeleteItemCommand({ TableName, Key })
          return patiently(() => this.#client.send(command), false)
        }),
      )
    }
  }

  async dueTimers(now: number, { after, limit }: CheckedTimerPage): Promise<DueTimer[]> {
    const values = { ':now': time(now) }
    const { timers: TableName } = this.#tables
    const items = this.#settings.gsi
      ? await this.#query({
          TableName,
          IndexName: BY_DUE,
          KeyConditionExpression: '#all = :all AND fire_at BETWEEN :from AND :now',
          ExpressionAttributeNames: { '#all': 'all' },
          ExpressionAttributeValues: { ...values, ':all': S('timers'), ':from': time(after?.fireAt ?? -9e125) },
        })
      : await this.#scan({ TableName, FilterExpression: 'fire_at <= :now', ExpressionAttributeValues: values })
    return items
      .map((item) => ({ executionId: text(item.execution_id), path: text(item.path), fireAt: number(item.fire_at) }))
      .filter((timer) => after === undefined || compareTimers(timer, after) > 0)
      .sort(compareTimers)
      .slice(0, limit)
  }

  async deleteTimer(id: string, path: string, fireAt: number): Promise<void> {
    const command = new DeleteItemCommand({
      TableName: this.#tables.timers,
      Key: { execution_id: S(id), path: S(path) },
      ConditionExpression: 'fire_at = :at',
      ExpressionAttributeValues: { ':at': time(fireAt) },
    })
    await patiently(() => this.#client.send(command).catch(ignoreUnmet), false)
  }

  async readTrace(id: string): Promise<TraceRow[]> {
    const { traceMax } = this.#settings
    const limit = traceMax === 0 ? {} : { Limit: traceMax }
    const items = await this.#query({ ...this.#partition(this.#tables.trace, id), ScanIndexForward: false, ...limit })
    const newest = traceMax === 0 ? items : items.slice(0, traceMax)
    return newest.reverse().map((item) => ({ index: number(item.idx), entry: text(item.entry) }))
  }

  async appendTrace(id: string, entry: string): Promise<void> {
    const { traceMax } = this.#settings
    for (;;) {
      const index = await this.#readNextTraceIndex(id)
      const command = new PutItemCommand({
        TableName: this.#tables.trace,
        Item: { execution_id: S(id), idx: N(index), entry: S(entry) },
        ConditionExpression: 'attribute_not_exists(execution_id)',
      })
      const added = await patiently(() => this.#client.send(command).catch(ignoreUnmet), true)
      if (added === undefined) continue
      if (traceMax > 0 && index >= traceMax) {
        await this.#delete([[this.#tables.trace, { execution_id: S(id), idx: N(index - traceMax) }]])
      }
      return
    }
  }

  listExecutions(query: CheckedListQuery): Promise<SummaryRows> {
    const load = (id: string) => this.load(id)
    return list(this.#client, this.#tables.executions, query, this.#settings.gsi, load)
  }

  async idsWithPrefix(prefix: string): Promise<string[]> {
    const filter =
      prefix === ''
        ? {}
        : { FilterExpression: 'begins_with(id, :prefix)', ExpressionAttributeValues: { ':prefix': S(prefix) } }
    const items = await this.#scan({ TableName: this.#tables.executions, ProjectionExpression: 'id', ...filter })
    return items.map(({ id }) => text(id)).sort(compareBytes)
  }

  async publishDefinition(row: DefinitionRow): Promise<DefinitionRow> {
    const command = new PutItemCommand({
      TableName: this.#tables.definitions,
      Item: {
        id: S(row.id),
        version: S(row.version),
        definition: S(row.definition),
        published_at: row.publishedAt === null ? { NULL: true } : N(row.publishedAt),
      },
      ConditionExpression: 'attribute_not_exists(id)',
    })
    await patiently(() => this.#client.send(command).catch(ignoreUnmet), false)
    return (await this.loadDefinition(row.id, row.version)) ?? row
  }

  async loadDefinition(id: string, version: string): Promise<DefinitionRow | undefined> {
    const item = await this.#get(this.#tables.definitions, { id: S(id), version: S(version) })
    return item && { id, version, definition: text(item.definition), publishedAt: numberOrNull(item.published_at) }
  }

  /**
   * One transaction where it fits into one. Where there is more under the execution, it is first put at version -1, which
   * no commit expects, so that nobody goes on from it or is born in its place until everything of it is gone; a purge
   * that broke off there goes on when it is called again.
   */
  async purge(id: string, expectedVersion: number): Promise<boolean> {
    this.#nextTrace.delete(id)
    const { executions } = this.#tables
    const stored = await this.#get(executions, { id: S(id) })
    const version = foundVersion(stored)
    const interrupted = version === -1 && numberOrNull(stored?.purged_version) === expectedVersion
    if (version !== null && version !== expectedVersion && !interrupted) return false
    const companions = await this.#companions(id)
    if (version === null) {
      await this.#delete(companions)
      return false
    }
    const condition = {
      ConditionExpression: 'version = :version',
      ExpressionAttributeValues: { ':version': N(version) },
    }
    const last = { TableName: executions, Key: { id: S(id) }, ...condition }
    if (companions.length < MAX_WRITES) {
      const deletes = companions.map(([TableName, Key]) => ({ Delete: { TableName, Key } }))
      return (await this.#transact([{ Delete: last }, ...deletes], newId())) === undefined
    }
    const mark = new UpdateItemCommand({
      ...last,
      UpdateExpression: 'SET version = :purging, purged_version = :expected',
      ExpressionAttributeValues: { ':version': N(version), ':purging': N(-1), ':expected': N(expectedVersion) },
    })
    const marked = await patiently(() => this.#client.send(mark).catch(ignoreUnmet), true)
    if (marked === undefined) return false
    await this.#delete([...companions, [executions, { id: S(id) }]])
    return true
  }

  /** The keys of what goes with an execution. */
  async #companions(id: string): Promise<[table: string, key: Item][]> {
    const { processed, timers, trace, outbox, spawns } = this.#tables
    const partition = async (table: string, range: string): Promise<[string, Item][]> => {
      const items = await this.#query(this.#partition(table, id))
      return items.map((item) => [table, { execution_id: S(id), [range]: item[range] ?? S('') }])
    }
    const queue = async (table: string, attribute: string): Promise<[string, Item][]> => {
      const items = await this.#scan({
        TableName: table,
        FilterExpression: `${attribute} = :id`,
        ExpressionAttributeValues: { ':id': S(id) },
        ProjectionExpression: 'seq',
      })
      return items.map(({ seq }) => [table, { seq: seq ?? N(0) }])
    }
    const all = await Promise.all([
      partition(processed, 'event_id'),
      partition(timers, 'path'),
      partition(trace, 'idx'),
      queue(outbox, 'target_id'),
      queue(spawns, 'parent_id'),
    ])
    return all.flat()
  }

  async close(): Promise<void> {
    this.#end()
  }
}

/** One at version -1 is being purged. */
const payloadOf = (item: Item | undefined): string | undefined =>
  item?.version?.N === '-1' ? undefined : item?.data?.S

const ignoreUnmet = (error: unknown): undefined => {
  if (!(error instanceof ConditionalCheckFailedException)) throw error
}
