import { setImmediate as nextTurn } from 'node:timers/promises'
import { CommitTooLarge, OutcomeUnknown, StoreClosed, StoreUnavailable, TimeLimit } from '@harel/store-base'
import type { Sql, SqlExecutor, SqlResult } from '@harel/store-base/sql'
import type { Client, InStatement, ResultSet, Transaction } from '@libsql/client'
import type { Connection } from './client.js'
import { BUSY, codeOf, isSilence, reasonOf, TOO_LARGE, toStoreError } from './errors.js'
import type { Settings } from './options.js'

/** How often a read is sent when no answer comes: a connection that was idle may have been cut long ago. */
const READ_ATTEMPTS = 3

/** What sqld takes of a web socket at once is 16 MiB; a little of it is not ours. */
const LARGEST_MESSAGE = 16_000_000

const toStatement = ({ sql, params }: Sql): InStatement => ({ sql, args: [...params] })

/** The caller's client may be set to give integers as bigints or texts; those read here are all safe as numbers. */
const toResult = ({ rows, columns, rowsAffected, lastInsertRowid }: ResultSet): SqlResult => ({
  rows: rows.map((row) =>
    columns.map((_, index) => {
      const value = row[index]
      return typeof value === 'bigint' ? Number(value) : ((value ?? null) as string | number | null)
    }),
  ),
  changes: rowsAffected,
  lastId: Number(lastInsertRowid ?? 0),
})

/** Commits, on a file as `BEGIN` begins. */
export const commit = (transaction: Transaction, { protocol }: Client): Promise<void> =>
  protocol === 'file' ? transaction.executeMultiple('COMMIT') : transaction.commit()

/** @throws CommitTooLarge for more than a web socket takes: it would be cut */
function checkMessage(batch: readonly InStatement[]): void {
  const size = Buffer.byteLength(JSON.stringify(batch))
  if (size > LARGEST_MESSAGE) throw new CommitTooLarge('bytes in a message', size, LARGEST_MESSAGE)
}

const pause = (milliseconds: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, milliseconds))

/**
 * How a transaction on a file that has begun without a lock gets one. It is run as a script because the driver keeps a
 * statement that has met a lock, and its connection, on which nothing can be committed any more until the garbage is
 * collected.
 */
const BEGIN = {
  read: 'SELECT 1 FROM sqlite_schema LIMIT 1',
  write: 'COMMIT; BEGIN IMMEDIATE',
} as const

interface Read {
  readonly statements: InStatement[]
  resolve(results: ResultSet[]): void
  reject(error: unknown): void
}

/** Statements on a client. A list of writes is one transaction and, over the network, one round trip. */
export class LibsqlExecutor implements SqlExecutor {
  readonly reasonOf = reasonOf
  readonly transact?: SqlExecutor['transact']
  readonly #connection: Connection
  readonly #lockTimeout: number
  readonly #timeout: number
  readonly #limit: TimeLimit
  readonly #underWay = new Set<Promise<unknown>>()
  readonly #reads: Read[] = []
  #lastWrite: Promise<unknown> = Promise.resolve()
  /** The last write has got no reply. */
  #isSilent = false
  #closed = false

  constructor(connection: Connection, { lockTimeout, timeout }: Pick<Settings, 'lockTimeout' | 'timeout'>) {
    this.#connection = connection
    this.#lockTimeout = lockTimeout
    this.#timeout = timeout
    this.#limit = new TimeLimit(timeout)
    if (connection.client.protocol === 'file') {
      this.transact = (work) =>
        this.#inTurn(() =>
          this.#writeFile((transaction) =>
            work(async (statements) => (await transaction.batch(statements.map(toStatement))).map(toResult)),
          ),
        )
    }
  }

  async read(statements: readonly Sql[], from: 'primary' | 'replica' = 'primary'): Promise<SqlResult[]> {
    const batch = statements.map(toStatement)
    const results = await this.#run(async () => {
      const { client, replica: open } = this.#connection
      if (from === 'primary' || open === undefined) return this.#batch(batch, 'read')
      await client.execute('SELECT 1')
      const replica = open()
      await replica.sync()
      const copied: ResultSet[] = []
      // One by one: the driver sends a batch to the primary.
      for (const statement of batch) copied.push(await replica.execute(statement))
      return copied
    })
    return results.map(toResult)
  }

  async write(statements: readonly Sql[]): Promise<SqlResult[]> {
    if (statements.length === 0) return []
    const batch = statements.map(toStatement)
    if (this.#connection.client.protocol === 'ws') checkMessage(batch)
    const results = await this.#inTurn(() => this.#batch(batch, 'write'))
    return results.map(toResult)
  }

  /** One at a time: there is one lock, and where many wait for it at once, sqld stands still for seconds. */
  #inTurn<T>(write: () => Promise<T>): Promise<T> {
    return this.#track(() => {
      const deadline = performance.now() + this.#timeout
      const turn = this.#lastWrite.then(() => {
        // Else each of many would wait for a reply of its own, one after the other.
        if (this.#isSilent && performance.now() >= deadline) {
          throw new StoreUnavailable(`libSQL has not replied for ${this.#timeout} ms to what was written before`)
        }
        return this.#attempt(write, true)
      })
      this.#lastWrite = turn.catch(() => {})
      return turn
    })
  }

  /** Readers of a file do not block its writer, nor he them. */
  async enableWal(): Promise<void> {
    await this.#run(() => this.#connection.client.executeMultiple('PRAGMA journal_mode = WAL'))
  }

  /** A transaction of the caller's that has the write lock from its start. */
  async begin(): Promise<Transaction> {
    let last: Promise<Transaction> | undefined
    try {
      return await this.#run(() => {
        last = this.#begin('write')
        return last
      })
    } catch (error) {
      // One that has begun after all would keep the lock.
      last?.then(
        (transaction) => transaction.close(),
        () => {},
      )
      throw error
    }
  }

  /** What a server replies; a file, the driver has read or written when it returns. @throws `TimeoutError` */
  inTime<T>(reply: Promise<T>): Promise<T> {
    return this.#connection.client.protocol === 'file' ? reply : this.#limit.within(reply)
  }

  async close(): Promise<void> {
    this.#closed = true
    await Promise.allSettled(this.#underWay)
    this.#connection.close()
  }

  async #batch(statements: InStatement[], mode: 'read' | 'write'): Promise<ResultSet[]> {
    const { client } = this.#connection
    if (client.protocol !== 'file') return client.batch(statements, mode)
    if (mode === 'read') return this.#readFile(statements)
    return this.#writeFile((transaction) => transaction.batch(statements))
  }

  /** Reads of the same turn of the event loop share a transaction, which takes longer than most of them do. */
  #readFile(statements: InStatement[]): Promise<ResultSet[]> {
    return new Promise((resolve, reject) => {
      if (this.#reads.push({ statements, resolve, reject }) === 1) void this.#readTogether()
    })
  }

  async #readTogether(): Promise<void> {
    await nextTurn()
    const reads = this.#reads.splice(0)
    try {
      await this.#inTransaction('read', async (transaction) => {
        for (const { statements, resolve, reject } of reads) await transaction.batch(statements).then(resolve, reject)
      })
    } catch (error) {
      // Nothing to those that have their answer.
      for (const { reject } of reads) reject(error)
    }
  }

  /**
   * The driver reads and writes a file in this very thread and takes no turn of the event loop, so one is taken here and for
   * reads: else a loop of calls would keep the rest of the process waiting, and would gather the memory of all its
   * statements, which the driver frees in turns of their own.
   */
  async #writeFile<T>(work: (transaction: Transaction) => Promise<T>): Promise<T> {
    await nextTurn()
    return this.#inTransaction('write', work)
  }

  async #inTransaction<T>(mode: 'read' | 'write', work: (transaction: Transaction) => Promise<T>): Promise<T> {
    const transaction = await this.#begin(mode)
    try {
      const result = await work(transaction)
      await transaction.executeMultiple('COMMIT')
      return result
    } finally {
      transaction.close()
    }
  }

  async #begin(mode: 'read' | 'write'): Promise<Transaction> {
    const { client } = this.#connection
    const onFile = client.protocol === 'file'
    const transaction = await client.transaction(onFile ? 'deferred' : mode)
    try {
      if (onFile) await transaction.executeMultiple(BEGIN[mode])
      // Over the network, the lock is taken with the first statements.
      else await transaction.batch([])
      return transaction
    } catch (error) {
      transaction.close()
      throw error
    }
  }

  /** Work that changes nothing. */
  #run<T>(work: () => Promise<T>): Promise<T> {
    return this.#track(() => this.#attempt(work, false))
  }

  async #track<T>(work: () => Promise<T>): Promise<T> {
    if (this.#closed || this.#connection.client.closed) throw new StoreClosed()
    const running = work()
    this.#underWay.add(running)
    try {
      return await running
    } finally {
      this.#underWay.delete(running)
    }
  }

  /** Tries again while another connection has the lock, and what changes nothing also when its connection was cut. */
  async #attempt<T>(work: () => Promise<T>, writes: boolean): Promise<T> {
    const deadline = performance.now() + this.#lockTimeout
    for (let attempt = 1; ; attempt++) {
      const { client } = this.#connection
      try {
        const result = await this.inTime(work())
        if (writes) this.#isSilent = false
        return result
      } catch (error) {
        // Was waiting in it and was not sent.
        if (codeOf(error) === 'CLIENT_CLOSED' && client !== this.#connection.client) continue
        if (writes) this.#isSilent = isSilence(error)
        if (isSilence(error)) this.#connection.replace?.(client)
        const busy = BUSY.test(codeOf(error))
        if (busy && performance.now() >= deadline) {
          throw new StoreUnavailable(`the database stayed locked for ${this.#lockTimeout} ms`, error)
        }
        const lost = toStoreError(error, true) instanceof OutcomeUnknown && codeOf(error) !== TOO_LARGE
        const mayRepeat = !writes && lost && !isSilence(error) && attempt < READ_ATTEMPTS
        if (!busy && !mayRepeat) throw toStoreError(error, writes)
        await pause(0.2 + Math.random() * 1.5)
      }
    }
  }
}

/** Statements inside a transaction of the caller's. */
export class TransactionExecutor implements SqlExecutor {
  readonly reasonOf = reasonOf
  readonly #transaction: Transaction
  readonly #outer: LibsqlExecutor
  #failure: { readonly error: unknown } | undefined

  constructor(transaction: Transaction, outer: LibsqlExecutor) {
    this.#transaction = transaction
    this.#outer = outer
  }

  /** @throws what a write has failed with: a part of it may be written, so the transaction can only be rolled back */
  check(): void {
    if (this.#failure !== undefined) throw this.#failure.error
  }

  async read(statements: readonly Sql[]): Promise<SqlResult[]> {
    try {
      return (await this.#outer.inTime(this.#transaction.batch(statements.map(toStatement)))).map(toResult)
    } catch (error) {
      throw toStoreError(error, false)
    }
  }

  async write(statements: readonly Sql[]): Promise<SqlResult[]> {
    try {
      return await this.read(statements)
    } catch (error) {
      this.#failure ??= { error }
      throw error
    }
  }

  async close(): Promise<void> {}
}
