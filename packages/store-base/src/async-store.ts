import type {
  Awaitable,
  CommitChanges,
  ExecutionStore,
  ListQuery,
  QueuePage,
  SyncExecutionStore,
  TimerPage,
} from './protocol.js'
import type { DefinitionRecord, Execution, TraceStep } from './records.js'

/** A store whose methods return promises and reject, made of one whose methods may return values and throw. */
export class AsyncStore implements ExecutionStore {
  readonly #store: Awaitable<ExecutionStore>

  constructor(store: Awaitable<ExecutionStore>) {
    this.#store = store
  }

  get capabilities() {
    return this.#store.capabilities
  }

  async load(id: string) {
    return this.#store.load(id)
  }

  async loadForEvent(id: string, eventId: string) {
    return this.#store.loadForEvent(id, eventId)
  }

  async save(execution: Execution) {
    return this.#store.save(execution)
  }

  async commit(execution: Execution, changes?: CommitChanges) {
    return this.#store.commit(execution, changes)
  }

  async isProcessed(id: string, eventId: string) {
    return this.#store.isProcessed(id, eventId)
  }

  async pendingOutbox(page?: QueuePage) {
    return this.#store.pendingOutbox(page)
  }

  async ackOutbox(seqs: number | readonly number[]) {
    return this.#store.ackOutbox(seqs)
  }

  async pendingSpawns(page?: QueuePage) {
    return this.#store.pendingSpawns(page)
  }

  async ackSpawn(seqs: number | readonly number[]) {
    return this.#store.ackSpawn(seqs)
  }

  async dueTimers(now: number, page?: TimerPage) {
    return this.#store.dueTimers(now, page)
  }

  async deleteTimer(id: string, path: string, fireAt: number) {
    return this.#store.deleteTimer(id, path, fireAt)
  }

  async readTrace(id: string) {
    return this.#store.readTrace(id)
  }

  async appendTrace(id: string, step: TraceStep) {
    return this.#store.appendTrace(id, step)
  }

  async listExecutions(query?: ListQuery) {
    return this.#store.listExecutions(query)
  }

  async idsWithPrefix(prefix: string) {
    return this.#store.idsWithPrefix(prefix)
  }

  async publishDefinition(record: DefinitionRecord) {
    return this.#store.publishDefinition(record)
  }

  async loadDefinition(id: string, version: string) {
    return this.#store.loadDefinition(id, version)
  }

  async purge(id: string, expectedVersion: number) {
    return this.#store.purge(id, expectedVersion)
  }

  async close() {
    return this.#store.close()
  }

  async [Symbol.asyncDispose]() {
    await this.close()
  }
}

/** The asynchronous face of a synchronous store: what it throws becomes a rejection. */
export const asyncStore = (store: SyncExecutionStore): ExecutionStore => new AsyncStore(store)
