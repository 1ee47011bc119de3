import {
  CheckedStore,
  checkMembers,
  InvalidArgument,
  type OnWarning,
  StoreUnavailable,
  TimeLimit,
} from '@harel/store-base'
import { type RedisOptions as ClientOptions, Redis } from 'ioredis'
import { RedisBackend } from './backend.js'
import { type Client, Connection, checkClient } from './client.js'
import { isForbidden, needsHashTag } from './errors.js'
import { Keys } from './keys.js'
import type { Reindexed } from './listing.js'
import { checkOptions, type RedisOptions } from './options.js'
import { MISSING_RIGHTS } from './scripts.js'

/**
 * The clients that were opened here and so are ended with their store; a caller's are the caller's to end. And how long
 * they wait for an answer, unless they were told by options of their own.
 */
const opened = new WeakMap<Client, TimeLimit | undefined>()

/** How long a call waits for its answer at most, in milliseconds. The driver's `commandTimeout` is a timer for each. */
const LONGEST_WAIT = 60_000

/** How long is waited for a server that is gone, or says nothing: see `connect`. */
const PATIENCE: ClientOptions = {
  connectTimeout: 5000,
  socketTimeout: 10_000,
  maxRetriesPerRequest: 10,
  retryStrategy: (attempt) => Math.min(100 * attempt, 1000),
}

/**
 * Keeps executions in Redis 7 or newer, or Valkey. A commit of any shape is one script, which commits of the same turn of
 * the event loop share. What a commit promises after a crash of the server is what its settings promise: with
 * `appendfsync always`, that nothing acknowledged is lost.
 */
export class RedisStore extends CheckedStore {
  readonly #backend: RedisBackend

  /**
   * A store on a client of the caller's, who also ends it. How long a call waits for a server that cannot be reached is
   * what the client's options say (`maxRetriesPerRequest`).
   *
   * @throws InvalidPrefix, InvalidArgument
   */
  constructor(client: Client, options: RedisOptions = {}) {
    checkClient(client)
    const settings = checkOptions(options)
    const { onWarning = console.warn } = options
    const keys = new Keys(settings)
    const check = async (unchecked: Connection) => {
      checkCluster(unchecked, settings.hashTag)
      await checkRights(unchecked, keys)
      await warnOfEviction(unchecked, onWarning)
    }
    const connection = new Connection(client, check, opened.get(client))
    const backend = new RedisBackend(connection, keys, settings, async () => {
      connection.release()
      if (opened.has(client)) await end(client)
    })
    super(backend, options)
    this.#backend = backend
  }

  /**
   * Connects to one server, not to a cluster; `close` ends the connection. A call waits for a server that is gone until ten
   * attempts to reach it have failed, which takes five seconds where it refuses, and never for more than a minute, unless
   * `client` has other options.
   *
   * @param url `redis://…` or `rediss://…`
   * @param options those of the store, and in `client` those of ioredis
   * @throws InvalidPrefix, InvalidArgument, StoreUnavailable
   */
  static async connect(url: string, options: RedisOptions & { client?: ClientOptions } = {}): Promise<RedisStore> {
    // Taken apart as it is, what is no object would become {}.
    const { client, ...own } = checkMembers('options', options) as typeof options
    checkOptions(own)
    if (typeof url !== 'string' || !/^rediss?:$/.test(URL.parse(url)?.protocol ?? '')) {
      throw new InvalidArgument('url', '(not shown)', 'redis://… or rediss://…')
    }
    const redis = new Redis(url, { ...PATIENCE, ...client, replyMapping: 'legacy' })
    opened.set(redis, client?.commandTimeout === undefined ? new TimeLimit(LONGEST_WAIT) : undefined)
    // Without a listener, ioredis prints errors of the connection; each call reports its own.
    redis.on('error', () => {})
    try {
      const store = new RedisStore(redis, own)
      await store.#backend.open()
      return store
    } catch (error) {
      redis.disconnect()
      throw error
    }
  }

  /**
   * Compares the index of ids, by which executions are listed, with the executions that are there, and sets it right. Needed
   * only where another program, such as Python harel, creates or purges executions under the same prefix. Walks through
   * all keys of the database without stopping it.
   */
  reindex(): Promise<Reindexed> {
    return this.#backend.reindex()
  }
}

/** Says good-bye, where there is anybody. */
async function end(client: Client): Promise<void> {
  if (client.status === 'ready') await client.quit().catch(() => {})
  client.disconnect()
}

/** @throws InvalidArgument */
function checkCluster({ cluster, keyPrefix }: Connection, hashTag: boolean): void {
  if (cluster === undefined) return
  if (!hashTag && !/\{[^}]+\}/.test(keyPrefix)) throw needsHashTag()
  const { scaleReads } = cluster.options
  if (scaleReads !== 'master') {
    throw new InvalidArgument('client.options.scaleReads', scaleReads, '"master", for replicas lag behind')
  }
}

/** @throws StoreUnavailable */
async function checkRights(connection: Connection, { ids }: Keys): Promise<void> {
  const missing = await connection.ask((client) => client.eval(MISSING_RIGHTS, 1, ids))
  if (Array.isArray(missing) && missing.length > 0) {
    const reason = `the user of Redis lacks the rights +${missing.join(' +')}`
    throw new StoreUnavailable(reason, undefined, { retryable: false })
  }
}

/** A server that evicts keys when its memory is full loses executions. Who may not ask is not warned. */
async function warnOfEviction(connection: Connection, onWarning: OnWarning): Promise<void> {
  const info = await connection.ask((client) =>
    client.info('memory').catch((error: unknown) => {
      if (isForbidden(error)) return ''
      throw error
    }),
  )
  const policy = /^maxmemory_policy:(\S+)/m.exec(info)?.[1] ?? 'noeviction'
  if (policy !== 'noeviction') {
    onWarning(
      `Redis evicts keys when its memory is full (maxmemory-policy ${policy}); set it to noeviction, or executions will be lost`,
    )
  }
}
