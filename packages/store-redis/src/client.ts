import { InvalidArgument, OutcomeUnknown, StoreClosed, StoreUnavailable } from '@harel/store-base'
import type { ChainableCommander, Cluster, Redis } from 'ioredis'
import { isUnknownScript, toStoreError } from './errors.js'
import type { Script } from './scripts.js'

/** A client of ioredis, whatever its options. */
export type Client = Redis | Redis<'resp3'> | Cluster | Cluster<'resp3'>

type Argument = string | number

/**
 * The way to the server. Nothing is asked whose answer has another shape under another protocol or mapping of replies,
 * but that integers may come as texts.
 */
export class Connection {
  readonly #client: Redis
  readonly #cluster: Cluster | undefined
  readonly #resends: boolean
  readonly #unanswered = new Set<(error: Error) => void>()
  #breaks = 0
  #closed = false

  constructor(client: Client) {
    // Their methods differ in the types of answers that are not asked for here.
    this.#client = client as Redis
    this.#cluster = client.isCluster ? (client as Cluster) : undefined
    this.#resends = this.#cluster !== undefined || this.#client.options.autoResendUnfulfilledCommands !== false
    for (const node of this.nodes()) this.#watch(node)
    this.#cluster?.on('+node', this.#watch)
  }

  get isCluster(): boolean {
    return this.#cluster !== undefined
  }

  /** Which nodes of a cluster are read from; undefined: those that are written to. */
  get readsFrom(): unknown {
    const scaleReads = this.#cluster?.options.scaleReads ?? 'master'
    return scaleReads === 'master' ? undefined : scaleReads
  }

  /** What the client puts in front of keys, but not in front of patterns. */
  get keyPrefix(): string {
    return String(this.#client.options.keyPrefix ?? '')
  }

  /** The servers that have a part of the keys. */
  nodes(): Redis[] {
    return this.#cluster === undefined ? [this.#client] : this.#cluster.nodes('master')
  }

  /** @throws StoreUnavailable, CorruptRecord, StoreClosed */
  async read<T>(ask: (client: Redis) => Promise<T>): Promise<T> {
    if (this.#closed) throw new StoreClosed()
    try {
      return await this.#answered(ask(this.#client))
    } catch (error) {
      throw toStoreError(error, StoreUnavailable)
    }
  }

  /** As `read`: the answers to several commands, sent together. */
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

  /** As `read`: what a script answers that does no harm when it runs twice. */
  async evaluate(script: Script, keys: readonly string[], args: readonly Argument[]): Promise<unknown> {
    return this.read(() => this.#run(script, keys, args))
  }

  /**
   * What a script answers that changes something, and whether it may have run before: the client sends again what had no
   * answer when a connection broke.
   *
   * @throws OutcomeUnknown when there was no answer; StoreUnavailable, CorruptRecord, StoreClosed when it has not run
   */
  async write(
    script: Script,
    keys: readonly string[],
    args: readonly Argument[],
  ): Promise<{ answer: unknown; repeated: boolean }> {
    if (this.#closed) throw new StoreClosed()
    // Once it waits in the client, nobody can tell whether it was sent.
    if (this.#client.status !== 'ready') await this.read((client) => client.ping())
    const breaks = this.#breaks
    try {
      const answer = await this.#answered(this.#run(script, keys, args))
      return { answer, repeated: this.#breaks !== breaks }
    } catch (error) {
      throw toStoreError(error, OutcomeUnknown)
    }
  }

  async #run({ text, digest }: Script, keys: readonly string[], args: readonly Argument[]): Promise<unknown> {
    const rest = [keys.length, ...keys, ...args]
    try {
      return await this.#client.call('evalsha', [digest, ...rest])
    } catch (error) {
      if (!isUnknownScript(error)) throw error
    }
    return this.#client.call('eval', [text, ...rest])
  }

  /** A client that sends nothing again forgets what had no answer. */
  #answered<T>(command: Promise<T>): Promise<T> {
    if (this.#resends) return command
    return new Promise((resolve, reject) => {
      this.#unanswered.add(reject)
      command.then(resolve, reject).finally(() => this.#unanswered.delete(reject))
    })
  }

  readonly #watch = (node: Redis): void => {
    node.on('close', this.#onBreak)
  }

  readonly #onBreak = (): void => {
    this.#breaks += 1
    if (this.#resends) return
    for (const reject of this.#unanswered) reject(new Error('the connection closed before the answer'))
  }

  /** Lets go of the client; later calls reject with `StoreClosed`. */
  release(): void {
    this.#closed = true
    this.#cluster?.off('+node', this.#watch)
    for (const node of this.nodes()) node.off('close', this.#onBreak)
  }
}

/** @throws InvalidArgument */
export function checkClient(client: unknown): void {
  if (typeof client === 'object' && client !== null && 'sendCommand' in client) return
  throw new InvalidArgument('client', client, 'a Redis or a Cluster of ioredis')
}
