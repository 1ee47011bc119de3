import { InvalidArgument, OutcomeUnknown, StoreClosed, StoreUnavailable, type TimeLimit } from '@harel/store-base'
import type { ChainableCommander, Cluster, Redis } from 'ioredis'
import { isUnknownScript, toStoreError } from './errors.js'
import type { Script } from './lua.js'

/** A client of ioredis, whatever its options. */
export type Client = Redis | Redis<'resp3'> | Cluster | Cluster<'resp3'>

export type Argument = string | number

/**
 * The way to the server. Nothing is asked whose answer has another shape under another protocol or mapping of replies,
 * but that integers may come as texts.
 */
export class Connection {
  readonly #client: Redis
  readonly #cluster: Cluster | undefined
  readonly #check: (connection: Connection) => Promise<void>
  readonly #limit: TimeLimit | undefined
  readonly #resends: boolean
  readonly #unanswered = new Set<(error: Error) => void>()
  #state: 'new' | 'checked' | 'closed' = 'new'

  /**
   * @param check called before anything is asked, until it has succeeded once
   * @param limit how long to wait for an answer; absent: as long as the client does
   */
  constructor(client: Client, check: (connection: Connection) => Promise<void>, limit?: TimeLimit) {
    // Their methods differ in the types of answers that are not asked for here.
    this.#client = client as Redis
    this.#cluster = client.isCluster ? (client as Cluster) : undefined
    this.#check = check
    this.#limit = limit
    this.#resends = this.#cluster !== undefined || this.#client.options.autoResendUnfulfilledCommands !== false
    if (!this.#resends) this.#client.on('close', this.#giveUp)
  }

  /** The client, where it is one of a cluster. */
  get cluster(): Cluster | undefined {
    return this.#cluster
  }

  /** What the client puts in front of keys, but not in front of patterns. */
  get keyPrefix(): string {
    return String(this.#client.options.keyPrefix ?? '')
  }

  /** The servers that have a part of the keys. */
  nodes(): Redis[] {
    return this.#cluster === undefined ? [this.#client] : this.#cluster.nodes('master')
  }

  /** Resolves when the check has succeeded; as `read` otherwise. */
  async open(): Promise<void> {
    if (this.#state === 'new') await this.#check(this)
    if (this.#state === 'closed') throw new StoreClosed()
    this.#state = 'checked'
  }

  /** As `read`, for the check itself. */
  async ask<T>(question: (client: Redis) => Promise<T>): Promise<T> {
    try {
      return await this.#answered(question(this.#client))
    } catch (error) {
      throw toStoreError(error, StoreUnavailable)
    }
  }

  /**
   * What a command answers that changes nothing, or the same when it is sent twice.
   *
   * @throws StoreUnavailable, CorruptRecord, StoreClosed
   */
  async read<T>(question: (client: Redis) => Promise<T>): Promise<T> {
    if (this.#state !== 'checked') await this.open()
    return this.ask(question)
  }

  /** As `read`: what several commands answer, sent together. */
  async readAll(queue: (pipeline: ChainableCommander) => unknown): Promise<unknown[]> {
    const results = await this.read((client) => {
      const pipeline = client.pipeline()
      queue(pipeline)
      return pipeline.exec()
    })
    return (results ?? []).map(([error, result]) => {
      if (error !== null) throw toStoreError(error, StoreUnavailable)
      return result
    })
  }

  /** As `read`: what a script answers. */
  async evaluate(script: Script, keys: readonly string[], args: readonly Argument[]): Promise<unknown> {
    return this.read(() => this.#run(script, keys, args))
  }

  /**
   * What a script answers that changes something, and whether it may have run twice: the client sends again what had no
   * answer when a connection broke.
   *
   * @throws OutcomeUnknown when there was no answer; StoreUnavailable, CorruptRecord, StoreClosed when it has not run
   */
  async write(
    script: Script,
    keys: readonly string[],
    args: readonly Argument[],
  ): Promise<{ answer: unknown; repeated: boolean }> {
    if (this.#state !== 'checked') await this.open()
    // Once it waits in the client, nobody can tell whether it was sent.
    if (this.#client.status !== 'ready') await this.ask((client) => client.ping())
    const sockets = this.nodes().map(({ stream }) => stream)
    // One that has not been used yet has no socket.
    const isRepeated = () => sockets.some((socket) => socket?.destroyed)
    try {
      const answer = await this.#answered(this.#run(script, keys, args))
      return { answer, repeated: isRepeated() }
    } catch (error) {
      const refusal = toStoreError(error, OutcomeUnknown)
      throw isRepeated() ? new OutcomeUnknown('the connection broke before there was an answer', refusal) : refusal
    }
  }

  /** In arrays: there may be more arguments than a function takes. */
  async #run({ text, digest }: Script, keys: readonly string[], args: readonly Argument[]): Promise<unknown> {
    try {
      return await this.#client.call('evalsha', [digest, keys.length, ...keys, ...args])
    } catch (error) {
      if (!isUnknownScript(error)) throw error
    }
    return this.#client.call('eval', [text, keys.length, ...keys, ...args])
  }

  #answered<T>(command: Promise<T>): Promise<T> {
    const answer = this.#limit?.within(command) ?? command
    return this.#resends ? answer : this.#orGivenUp(answer)
  }

  /** A client that sends nothing again forgets what had no answer. */
  #orGivenUp<T>(answer: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#unanswered.add(reject)
      answer.then(resolve, reject).finally(() => this.#unanswered.delete(reject))
    })
  }

  readonly #giveUp = (): void => {
    for (const reject of this.#unanswered) reject(new Error('the connection closed before there was an answer'))
  }

  /** Lets go of the client; later calls reject with `StoreClosed`. */
  release(): void {
    this.#state = 'closed'
    this.#client.off('close', this.#giveUp)
  }
}

/** @throws InvalidArgument */
export function checkClient(client: unknown): void {
  if (typeof client === 'object' && client !== null && 'sendCommand' in client) return
  throw new InvalidArgument('client', client, 'a Redis or a Cluster of ioredis')
}
