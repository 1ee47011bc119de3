import { CheckedStore, InvalidArgument, lazyBackend, type OnWarning } from '@harel/store-base'
import { type RedisOptions as ClientOptions, Redis } from 'ioredis'
import { capabilities, RedisBackend } from './backend.js'
import { type Client, reading } from './client.js'
import { checkOptions, type RedisOptions } from './options.js'

/** The clients that were opened here and so are ended with their store; a caller's are the caller's to end. */
const opened = new WeakSet<Client>()

/**
 * Keeps executions in Redis 7 or newer, or Valkey. A commit of any shape is one script. What a commit promises after a
 * crash of the server is what its settings promise: with `appendfsync always`, that nothing acknowledged is lost.
 */
export class RedisStore extends CheckedStore {
  readonly #opened: () => Promise<RedisBackend>

  /**
   * A store on a client of the caller's, who also ends it.
   *
   * @throws InvalidPrefix, InvalidArgument
   */
  constructor(client: Client, options: RedisOptions = {}) {
    const settings = checkOptions(options)
    const { onWarning = console.warn } = options
    const end = async () => {
      if (opened.has(client)) await client.quit().catch(() => client.disconnect())
    }
    const { backend, opened: ready } = lazyBackend(capabilities, async () => {
      await warnOfEviction(client, onWarning)
      return new RedisBackend(client, settings, end)
    })
    super(backend, options)
    this.#opened = ready
  }

  /**
   * Connects. `close` ends the connection.
   *
   * @param options those of the store, and in `client` those of ioredis
   * @throws InvalidPrefix, InvalidArgument, StoreUnavailable
   */
  static async connect(
    url: string,
    { client, ...options }: RedisOptions & { client?: ClientOptions } = {},
  ): Promise<RedisStore> {
    checkOptions(options)
    if (typeof url !== 'string' || !URL.canParse(url)) throw new InvalidArgument('url', '(not shown)', 'a URL of Redis')
    const redis = new Redis(url, { ...client, replyMapping: 'legacy' })
    opened.add(redis)
    // Without a listener, ioredis prints connection errors; each call reports its own.
    redis.on('error', () => {})
    try {
      const store = new RedisStore(redis, options)
      await store.#opened()
      return store
    } catch (error) {
      redis.disconnect()
      throw error
    }
  }
}

/** A server that evicts keys when its memory is full loses executions. Who may not ask is not warned. */
async function warnOfEviction(client: Client, onWarning: OnWarning): Promise<void> {
  const info = await reading(
    client.info('memory').catch((error: Error) => {
      if (error.name === 'ReplyError') return ''
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
