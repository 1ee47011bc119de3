import { AsyncLocalStorage } from 'node:async_hooks'
import {
  CheckedStore,
  Coalescer,
  type ExecutionStore,
  InvalidArgument,
  keepVersions,
  OutcomeUnknown,
  type PreparedCommit,
  type StoreBackend,
  StoreClosed,
  StoreUnavailable,
  type Verdict,
} from '@harel/store-base'
import type { Sql } from '@harel/store-base/sql'
import type { RunResult } from 'better-sqlite3'
import { checkOptions, type SqliteOptions } from './schema.js'
import { Thread } from './thread.js'

/** The caller's own statements inside a transaction of an `AsyncSqliteStore`; they reject with the errors of SQLite. */
export interface AsyncTransactionHandle {
  run(sql: string, ...params: Sql['params']): Promise<RunResult>
  get<Row>(sql: string, ...params: Sql['params']): Promise<Row | undefined>
  all<Row>(sql: string, ...params: Sql['params']): Promise<Row[]>
}

/** The methods of a backend, each a call to the worker thread. */
const remote = (call: (method: string, args: readonly unknown[]) => Promise<unknown>): StoreBackend =>
  new Proxy({} as StoreBackend, {
    get:
      (_, method) =>
      (...args: unknown[]) =>
        call(String(method), args),
  })

/** Whether SQLite gave up waiting for another writer: a batch that is split would only wait again. */
const isLockTimeout = (error: unknown): boolean =>
  error instanceof StoreUnavailable && /^SQLITE_(BUSY|LOCKED)/.test(String((error.cause as { code?: unknown })?.code))

/** How many batches may be under way at once: one is made here while the thread writes the other one. */
const IN_FLIGHT = 2

/**
 * Keeps executions in a SQLite file, on a thread of its own: the caller's thread never waits for the disk. Commits that
 * arrive while one is being written are written together, in one transaction; each is acknowledged after that
 * transaction is on the disk.
 */
export class AsyncSqliteStore extends CheckedStore {
  readonly #thread: Thread
  readonly #options: SqliteOptions
  readonly #gate: Gate

  private constructor(thread: Thread, options: SqliteOptions) {
    const gate = new Gate()
    const send = (method: string, args: readonly unknown[]) => gate.pass(() => thread.call('store', method, args))
    const store = remote((method, args) => {
      gate.check()
      return send(method, args)
    })
    const commits = new Coalescer<PreparedCommit, Verdict>({
      run: (batch) => send('commitAll', [batch]) as Promise<Verdict[]>,
      keyOf: ({ id }) => id,
      sizeOf: ({ data }) => data.length,
      mayReplay: (error) => thread.alive && !(error instanceof OutcomeUnknown) && !isLockTimeout(error),
      inFlight: IN_FLIGHT,
    })
    const backend: StoreBackend = Object.assign(Object.create(store), {
      capabilities: thread.capabilities,
      commit: (commit: PreparedCommit) => {
        gate.check()
        return commits.submit(commit)
      },
      close: async () => {
        await commits.drain()
        await gate.pass(() => thread.close())
      },
    })
    super(backend, options)
    this.#thread = thread
    this.#options = options
    this.#gate = gate
  }

  /**
   * Opens the file, or makes it. `':memory:'` is a database of this store alone.
   *
   * @throws InvalidArgument, InvalidPrefix, SchemaMissing, StoreUnavailable
   */
  static async open(path: string, options: SqliteOptions = {}): Promise<AsyncSqliteStore> {
    const settings = checkOptions(options)
    const { onWarning = console.warn } = options
    const thread = await Thread.start({ ...settings, path })
    for (const warning of thread.warnings) onWarning(warning)
    return new AsyncSqliteStore(thread, options)
  }

  /**
   * Commits executions and the caller's own rows together: what `work` does with the store and the handle it is given
   * is written as a whole when it resolves, or not at all when it rejects; then the versions of the executions are what
   * they were. Other calls to this store wait until the transaction has ended; made from inside `work`, they are refused.
   */
  async transaction<T>(work: (store: ExecutionStore, tx: AsyncTransactionHandle) => Promise<T>): Promise<T> {
    return this.#gate.hold(async () => {
      let ended = false
      const call = (target: 'transaction' | 'within', method: string, args: readonly unknown[]) =>
        ended ? Promise.reject(new StoreClosed()) : this.#thread.call(target, method, args)
      const finish = (method: 'commit' | 'rollback') => {
        // What is called after this would not be in the transaction.
        ended = true
        return this.#thread.call('transaction', method, [])
      }
      const within = remote((method, args) => call('within', method, args))
      const backend = Object.assign(Object.create(within), { capabilities: this.capabilities, close: async () => {} })
      const { store, restoreVersions } = keepVersions<ExecutionStore>(new CheckedStore(backend, this.#options))
      const statement =
        (method: string) =>
        (sql: string, ...params: Sql['params']) =>
          call('transaction', method, [{ sql, params }])
      const handle = { run: statement('run'), get: statement('get'), all: statement('all') } as AsyncTransactionHandle
      await call('transaction', 'begin', [])
      try {
        const result = await work(store, handle)
        await finish('commit')
        return result
      } catch (error) {
        // Where that fails, the connection is gone and its transaction with it.
        await finish('rollback').catch(() => undefined)
        restoreVersions()
        throw error
      }
    })
  }

  /** @throws InvalidArgument when called from inside a transaction, for whose end it waits */
  override async close(): Promise<void> {
    this.#gate.check()
    await super.close()
  }

  /** Adds the columns, indexes and triggers that were left out at start-up because a table is large. */
  async migrate(): Promise<void> {
    this.#gate.check()
    await this.#gate.pass(() => this.#thread.call('store', 'migrate', []))
  }
}

/** Lets calls pass, except while a transaction holds it. */
class Gate {
  readonly #holder = new AsyncLocalStorage<{ done: boolean }>()
  #held: Promise<void> | undefined

  /** @throws InvalidArgument for a call from inside the transaction that holds it, which would wait for itself */
  check(): void {
    if (this.#holder.getStore()?.done === false) {
      throw new InvalidArgument('store', 'the outer one', 'the store that the transaction was given')
    }
  }

  async pass<T>(call: () => Promise<T>): Promise<T> {
    while (this.#held !== undefined) await this.#held
    return call()
  }

  async hold<T>(work: () => Promise<T>): Promise<T> {
    this.check()
    while (this.#held !== undefined) await this.#held
    const { promise, resolve } = Promise.withResolvers<void>()
    const transaction = { done: false }
    this.#held = promise
    try {
      return await this.#holder.run(transaction, work)
    } finally {
      transaction.done = true
      this.#held = undefined
      resolve()
    }
  }
}
