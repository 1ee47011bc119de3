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

/** How long, in milliseconds, calls may follow on each other without a turn of the event loop. */
const MOST_WITHOUT_A_TURN = 10

let lastTurn = performance.now()
let turn: Promise<void> | undefined

/**
 * Promises alone keep timers and sockets waiting: a loop of calls that are done at once would stop the process for
 * everything else. Calls that wait for a turn share it, so that who was called together comes back together.
 */
function answer<T>(given: T | Promise<T>): T | Promise<T> {
  if (given instanceof Promise || performance.now() - lastTurn <= MOST_WITHOUT_A_TURN) return given
  turn ??= new Promise<void>((resolve) => setImmediate(resolve)).then(() => {
    lastTurn = performance.now()
    turn = undefined
  })
  return turn.then(() => given)
}

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
    return answer(this.#store.load(id))
  }

  async loadForEvent(id: string, eventId: string) {
    return answer(this.#store.loadForEvent(id, eventId))
  }

  async save(execution: Execution) {
    return answer(this.#store.save(execution))
  }

  async commit(execution: Execution, changes?: CommitChanges) {
    return answer(this.#store.commit(execution, changes))
  }

  async isProcessed(id: string, eventId: string) {
    return answer(this.#store.isProcessed(id, eventId))
  }

  async pendingOutbox(page?: QueuePage) {
    return answer(this.#store.pendingOutbox(page))
  }

  async ackOutbox(seqs: number | readonly number[]) {
    return answer(this.#store.ackOutbox(seqs))
  }

  async pendingSpawns(page?: QueuePage) {
    return answer(this.#store.pendingSpawns(page))
  }

  async ackSpawn(seqs: number | readonly number[]) {
    return answer(this.#store.ackSpawn(seqs))
  }

  async dueTimers(now: number, page?: TimerPage) {
    return answer(this.#store.dueTimers(now, page))
  }

  async deleteTimer(id: string, path: string, fireAt: number) {
    return answer(this.#store.deleteTimer(id, path, fireAt))
  }

  async readTrace(id: string) {
    return answer(this.#store.readTrace(id))
  }

  async appendTrace(id: string, step: TraceStep) {
    return answer(this.#store.appendTrace(id, step))
  }

  async listExecutions(query?: ListQuery) {
    return answer(this.#store.listExecutions(query))
  }

  async idsWithPrefix(prefix: string) {
    return answer(this.#store.idsWithPrefix(prefix))
  }

  async publishDefinition(record: DefinitionRecord) {
    return answer(this.#store.publishDefinition(record))
  }

  async loadDefinition(id: string, version: string) {
    return answer(this.#store.loadDefinition(id, version))
  }

  async purge(id: string, expectedVersion: number) {
    return answer(this.#store.purge(id, expectedVersion))
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
