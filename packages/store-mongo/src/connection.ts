import { OutcomeUnknown, StoreClosed, StoreUnavailable } from '@harel/store-base'
import type { ClientSession, MongoClient } from 'mongodb'
import type { Collections } from './collections.js'
import { isUnreachable, toStoreError } from './errors.js'

/** What is done with the collections; the options go with every call of the driver. */
type Work<T> = (collections: Collections, options: { session?: ClientSession }) => Promise<T>

/** The way to the collections, outside of transactions or in one of the caller's. */
export class Connection {
  readonly #client: MongoClient
  readonly #collections: Collections
  readonly #transaction: ClientSession | undefined
  readonly #running = new Set<Promise<unknown>>()
  #last: Promise<unknown> = Promise.resolve()
  #closed = false

  constructor(client: MongoClient, collections: Collections, transaction?: ClientSession) {
    this.#client = client
    this.#collections = collections
    this.#transaction = transaction
  }

  within(transaction: ClientSession): Connection {
    return new Connection(this.#client, this.#collections, transaction)
  }

  get isTransaction(): boolean {
    return this.#transaction !== undefined
  }

  /** Work that only reads, or that may be done twice. @throws StoreUnavailable, StoreClosed */
  async read<T>(work: Work<T>): Promise<T> {
    try {
      return await this.#run(work, this.#transaction)
    } catch (error) {
      throw toStoreError(error, StoreUnavailable)
    }
  }

  /** Work that writes. @throws as `read`, and OutcomeUnknown when it may have been done */
  async write<T>(work: Work<T>): Promise<T> {
    // A transaction is committed later, or not at all.
    if (this.#transaction !== undefined) return this.read(work)
    const session = this.#client.startSession({ causalConsistency: false })
    const { serverSession } = session
    // A number for each write that the driver may send again.
    const before = serverSession.txnNumber
    try {
      return await this.#run(work, session)
    } catch (error) {
      // Finding no server is the end of a first attempt, or of a second one.
      const wasSent = !isUnreachable(error) || serverSession.txnNumber !== before
      throw toStoreError(error, wasSent ? OutcomeUnknown : StoreUnavailable)
    } finally {
      await session.endSession()
    }
  }

  /** Waits for what is under way; nothing is begun afterwards. */
  async close(): Promise<void> {
    this.#closed = true
    await Promise.allSettled(this.#running)
  }

  async #run<T>(work: Work<T>, session: ClientSession | undefined): Promise<T> {
    if (this.#closed) throw new StoreClosed()
    const call = () => work(this.#collections, session === undefined ? {} : { session })
    const running = this.#transaction === undefined ? call() : this.#inTurn(call)
    this.#running.add(running)
    try {
      return await running
    } finally {
      this.#running.delete(running)
    }
  }

  /** A transaction takes one call after the other. */
  #inTurn<T>(call: () => Promise<T>): Promise<T> {
    const turn = this.#last.then(call)
    this.#last = turn.catch(() => {})
    return turn
  }
}
