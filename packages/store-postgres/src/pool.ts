import { InvalidArgument } from '@harel/store-base'
import postgres, { type Options, type Sql, type TransactionSql } from 'postgres'
import { Gate } from './gate.js'
import { untilClosed } from './pause.js'

export type ClientOptions = Options<Record<string, never>>

/** Where statements are sent. */
export interface Source<Handle extends Sql | TransactionSql = Sql | TransactionSql> {
  /** What a statement has to pass. */
  readonly gate: Pick<Gate, 'pass'>
  /** A handle that is good to use now. */
  handle(): Handle | Promise<Handle>
  /** To be told when a connection of this handle is of no use any more. */
  broke(handle: Handle): void
}

/** A source whose statements are transactions of their own. */
export interface Pool extends Source<Sql> {
  readonly prepare: boolean
  /** Where transactions begin. */
  readonly transactions: Source<Sql>
  /** Called once, with nothing under way. */
  end(): Promise<void>
}

const open: Source['gate'] = { pass: (work) => work() }

/** Transactions of the caller's, whose statements are one after the other. */
export const within = (tx: TransactionSql): Source => ({ gate: open, handle: () => tx, broke: () => {} })

/** Of the pools of callers: several stores may share one. */
const gates = new WeakMap<Sql, Gate>()

/**
 * A pool of the caller's, who also ends it.
 *
 * The driver (3.4) goes on using a connection that has failed until its socket is closed, and what it sends there in
 * between gets no answer, ever. So nothing is sent in between.
 *
 * And it does not keep a connection for a transaction whose BEGIN reaches `max_pipeline`: what others send there follows,
 * and is never committed. So no more than that is under way at once.
 *
 * @throws InvalidArgument
 */
export function callersPool(sql: Sql): Pool {
  const { prepare, max_pipeline: pipeline } = sql.options as { prepare?: boolean; max_pipeline?: number }
  if (pipeline === undefined || pipeline < 1) {
    throw new InvalidArgument(
      'sql.options.max_pipeline',
      pipeline,
      'at least 1: with less, transactions are not kept apart',
    )
  }
  const gate = gates.get(sql) ?? new Gate(pipeline)
  gates.set(sql, gate)
  let breaking: Promise<void> | undefined
  const source: Source<Sql> = {
    gate,
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
  }
  return { ...source, prepare: prepare !== false, transactions: source, async end() {} }
}

/**
 * A pool of our own, and one for transactions: there each connection is idle when one begins.
 *
 * @param timeout how long it waits at its end for what is under way, in milliseconds
 * @throws InvalidArgument
 */
export function ownPool(url: string, timeout: number, options: ClientOptions = {}): Pool {
  const statements = replaceable(() => openPool(url, options), timeout)
  const transactions = replaceable(() => openPool(url, { ...options, ...PIPELINE }), timeout)
  return {
    ...statements,
    prepare: options.prepare !== false,
    transactions,
    async end() {
      await Promise.all([statements.end(), transactions.end()])
    },
  }
}

/** The driver's default, which is not among its types. */
const PIPELINE = { max_pipeline: 100 }

/** For how long a pool is kept that has a successor, for what is still under way there, in milliseconds. */
const REPLACED_FOR = 1000

/**
 * A pool that is replaced when one of its connections is of no use any more. Broken: the driver (3.4) may have kept a part
 * of a message, and then never again gets through to the server with that connection. Without writes: the primary may by
 * now be elsewhere.
 */
function replaceable(openAnother: () => Sql, timeout: number): Source<Sql> & { end(): Promise<void> } {
  let sql = openAnother()
  const replaced = new Map<Sql, NodeJS.Timeout>()
  // Not in order: the driver waits in vain for a connection that has broken in a statement.
  const discard = async (handle: Sql) => {
    clearTimeout(replaced.get(handle))
    replaced.delete(handle)
    await handle.end({ timeout: 0 })
  }
  return {
    gate: open,
    handle: () => sql,
    broke(handle) {
      if (handle !== sql) return
      sql = openAnother()
      replaced.set(handle, setTimeout(discard, REPLACED_FOR, handle))
    },
    async end() {
      await Promise.all([sql.end({ timeout: timeout / 1000 }), ...[...replaced.keys()].map(discard)])
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
