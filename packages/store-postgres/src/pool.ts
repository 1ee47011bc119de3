import { InvalidArgument } from '@harel/store-base'
import postgres, { type Options, type Sql, type TransactionSql } from 'postgres'
import { untilClosed } from './pause.js'

export type ClientOptions = Options<Record<string, never>>

/** Where statements are sent. */
export interface Source<Handle extends Sql | TransactionSql = Sql | TransactionSql> {
  /** A handle that is good to use now. */
  handle(): Promise<Handle>
  /** To be told when a connection of this handle is of no use any more. */
  broke(handle: Handle): void
}

/** A source whose statements are transactions of their own. */
export interface Pool extends Source<Sql> {
  readonly prepare: boolean
  /** Called once, with nothing under way. */
  end(): Promise<void>
}

/**
 * A pool of the caller's, who also ends it.
 *
 * The driver (3.4) goes on using a connection that has failed until its socket is closed, and what it sends there in
 * between gets no answer, ever. So nothing is sent in between.
 */
export function callersPool(sql: Sql): Pool {
  let breaking: Promise<void> | undefined
  return {
    prepare: sql.options.prepare !== false,
    async handle() {
      for (let seen: Promise<void> | undefined; seen !== breaking; ) {
        seen = breaking
        await seen
      }
      return sql
    },
    broke() {
      breaking = untilClosed()
    },
    async end() {},
  }
}

/** For how long a pool is kept that has a successor, for what is still under way there, in milliseconds. */
const REPLACED_FOR = 1000

/**
 * A pool of our own. It is replaced when one of its connections is of no use any more. Broken: the driver (3.4) may have
 * kept a part of a message, and then never again gets through to the server with that connection. Without writes: the
 * primary may by now be elsewhere.
 *
 * @throws InvalidArgument
 */
export function ownPool(url: string, options: ClientOptions = {}): Pool {
  let sql = openPool(url, options)
  const replaced = new Map<Sql, NodeJS.Timeout>()
  // Not in order: the driver waits in vain for a connection that has broken in a statement.
  const discard = async (handle: Sql) => {
    clearTimeout(replaced.get(handle))
    replaced.delete(handle)
    await handle.end({ timeout: 0 })
  }
  return {
    prepare: options.prepare !== false,
    async handle() {
      return sql
    },
    broke(handle) {
      if (handle !== sql) return
      sql = openPool(url, options)
      replaced.set(handle, setTimeout(discard, REPLACED_FOR, handle))
    },
    async end() {
      await Promise.all([sql.end(), ...[...replaced.keys()].map(discard)])
    },
  }
}

function openPool(url: string, options: ClientOptions): Sql {
  try {
    return postgres(url, {
      // Notices of "already exists" are not worth a line.
      onnotice: () => {},
      // Not wanted here, and an error while the driver fetches them ends the process.
      fetch_types: false,
      // Seconds until the next attempt to connect: the driver's own 20 are too long for a server that is back.
      backoff: (attempts) => Math.random() * Math.min(2 ** attempts / 100, 1),
      ...options,
    })
  } catch (cause) {
    // The cause may show the URL, and with it the password.
    throw new InvalidArgument('url', '(not shown)', `a connection URL of PostgreSQL (${(cause as Error).name})`)
  }
}
