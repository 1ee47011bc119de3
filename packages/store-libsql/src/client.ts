import { InvalidArgument, type StoreCapabilities, StoreUnavailable } from '@harel/store-base'
import { claimFile } from '@harel/store-base/sql'
import { type Client, type Config, createClient } from '@libsql/client'
import { toStoreError } from './errors.js'

/** A client and what a store has to know about it. */
export interface Connection {
  readonly client: Client
  /**
   * A copy of the database in a file, which listings are read from. To be called when the server has just answered: the
   * driver opens and brings up to date a copy with the whole process standing still, for ever if the server says nothing.
   */
  readonly replica?: () => Client
  readonly capabilities: StoreCapabilities
  /** Puts another client in the place of one whose connection is of no use any more, with all that is under way on it. */
  replace?(silent: Client): void
  /**
   * Claims the file of a caller's client until `close`.
   *
   * @throws InvalidArgument while a store of another package has it open
   */
  claim?(file: string): void
  /** Closes what was opened here, and ends the claim; a caller's client is the caller's to close. */
  close(): void
}

const PACKAGE = '@harel/store-libsql'

const inFile: StoreCapabilities = {
  durable: true,
  shared: true,
  identity: false,
  ordered: true,
  paging: 'key',
  maxCommitWrites: Number.POSITIVE_INFINITY,
  // SQLite's own limit of a row (SQLITE_MAX_LENGTH), which holds a little more than the payload.
  maxExecutionBytes: 999_000_000,
  dedupe: 'forever',
  atomicPurge: true,
  transactions: true,
}
/** sqld holds 5,000,000 bytes in a row. */
const onServer: StoreCapabilities = { ...inFile, maxExecutionBytes: 4_990_000 }

const capabilitiesOf = ({ protocol }: Client): StoreCapabilities => (protocol === 'file' ? inFile : onServer)

/** @throws InvalidArgument */
export function checkClient(client: Client): Client {
  if (typeof client?.batch === 'function' && typeof client.transaction === 'function') return client
  throw new InvalidArgument('client', client, 'a client of @libsql/client; LibsqlStore.connect takes a configuration')
}

/** A client of the caller's. */
export function borrow(client: Client): Connection {
  let release = () => {}
  return {
    client,
    capabilities: capabilitiesOf(client),
    claim: (file) => {
      release = claimFile('client', file, PACKAGE)
    },
    close: () => release(),
  }
}

/**
 * A client for the configuration. For an embedded replica two, one for the primary and one for the copy: through the
 * copy alone, the whole process would stand still while the primary writes.
 *
 * @param replyTimeout how long to wait for a reply of a server, in milliseconds
 * @throws InvalidArgument, StoreUnavailable
 */
export function connect(config: Config, replyTimeout: number): Connection {
  if (typeof config !== 'object' || config === null) throw invalidConfig()
  const { url, syncUrl, syncInterval, readYourWrites, offline, encryptionKey, timeout, ...rest } = config
  if (offline === true) throw new InvalidArgument('config.offline', offline, 'left out: the primary decides on commits')
  // Each connection of the client would have a database of its own.
  if (/^file:(\/\/)?$/.test(url)) throw new InvalidArgument('config.url', url, "the path of a file, or ':memory:'")
  // The driver's own waiting for a lock would stop the process; the store tries again by itself.
  const release = claimUrl(url)
  const { fetch = globalThis.fetch } = config
  const primary = {
    ...(syncUrl === undefined ? { ...config, timeout: 0 } : { ...rest, url: syncUrl }),
    // Ends the request itself, with its connection.
    fetch: (request: Request) => fetch(request, { signal: AbortSignal.timeout(replyTimeout) }),
  }
  let client: Client | undefined
  let replica: Client | undefined
  const close = () => {
    client?.close()
    replica?.close()
    release()
  }
  try {
    client = open(primary)
    const connection = {
      client,
      ...(syncUrl !== undefined && {
        replica: () => {
          replica ??= open(config)
          return replica
        },
      }),
      capabilities: memoryOf(url) ?? capabilitiesOf(client),
      close,
    }
    // Over HTTP each request has ended by itself.
    if (client.protocol !== 'ws') return connection
    const replace = (silent: Client) => {
      if (silent !== connection.client) return
      client = open(primary)
      connection.client = client
      silent.close()
    }
    return Object.assign(connection, { replace })
  } catch (error) {
    close()
    throw error
  }
}

/** @returns what ends the claim of the file, if it is one */
function claimUrl(url: string): () => void {
  // As the driver reads it.
  const [, encoded = ''] = /^file:(?:\/\/[^/?#]*)?([^?#]*)/i.exec(url) ?? []
  const path = decode(encoded)
  return path === '' || path === ':memory:' ? () => {} : claimFile('config.url', path, PACKAGE)
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw invalidConfig()
  }
}

/** A database in memory goes with its client; only clients of a shared cache see the same one. */
function memoryOf(url: string): StoreCapabilities | undefined {
  if (!/^(file:)?:memory:/.test(url)) return undefined
  return { ...inFile, durable: false, shared: url.includes('cache=shared') }
}

// No word of the driver's: it may show the URL, and with it a token.
const invalidConfig = () => new InvalidArgument('config', '(not shown)', 'a configuration of @libsql/client')

function open(config: Config): Client {
  try {
    return createClient(config)
  } catch (error) {
    const { code } = error as { code?: unknown }
    if (typeof code !== 'string' || code.startsWith('URL_')) throw invalidConfig()
    if (code !== '') throw toStoreError(error, false)
    const reason = 'libSQL cannot open the file: its folder must be there, and this process must have rights to both'
    throw new StoreUnavailable(reason, error, { retryable: false })
  }
}

/**
 * Whether a client on a file is an embedded replica's: only its writes and transactions go to the primary, and with
 * `offline` not even these. It can be told by nothing but trying.
 */
export const isReplica = (client: Client): Promise<boolean> =>
  client.sync().then(
    () => true,
    (error: unknown) => !String(error).includes('SyncNotSupported'),
  )
