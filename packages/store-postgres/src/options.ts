import { checkCount, checkFlag, checkStoreOptions, InvalidArgument, Names, type StoreOptions } from '@harel/store-base'

export interface PostgresOptions extends StoreOptions {
  /** Before the names of tables and functions; the server folds it to lower case. Default: `harel`. */
  prefix?: string
  /** The schema of the tables. Default: where the search path finds them, else the first schema of it. */
  schema?: string
  /** Create what is missing. Default: true; false: nothing is created, and what is missing is an error. */
  createSchema?: boolean
  /** How many steps of a trace are kept; 0: all. Default: 200. */
  traceMax?: number
  /** How long to wait for another transaction that holds an execution, in milliseconds. Default: 5000. */
  lockTimeout?: number
  /** Write concurrent commits together. Default: true. */
  groupCommit?: boolean
  /** How long to wait for a reply, in milliseconds; not in `migrate` and `transaction`. Default: 30000. */
  timeout?: number
}

export type Settings = Required<Omit<PostgresOptions, 'schema' | 'onWarning' | 'numbers'>> & {
  schema: string | undefined
}

/** The largest INT of the server. */
const MAX_INT = 2 ** 31 - 1

/** Longer identifiers are cut by the server, so that two of them may become one. */
function checkSchema(value: unknown): string | undefined {
  if (value === undefined) return undefined
  const valid =
    typeof value === 'string' &&
    value !== '' &&
    !value.includes('\0') &&
    value.isWellFormed() &&
    Buffer.byteLength(value) <= 63
  if (!valid) throw new InvalidArgument('schema', value, 'a name of 1 to 63 bytes without NUL')
  return value
}

/** @throws InvalidPrefix, InvalidArgument */
export function checkOptions(options: PostgresOptions): Settings {
  checkStoreOptions(options, ['prefix', 'schema', 'createSchema', 'traceMax', 'lockTimeout', 'groupCommit', 'timeout'])
  const { prefix = 'harel', createSchema = true, traceMax = 200, lockTimeout = 5000, groupCommit = true } = options
  Names(prefix)
  return {
    // As the server does with names that are not quoted, which those of Python harel are not.
    prefix: prefix.toLowerCase(),
    schema: checkSchema(options.schema),
    createSchema: checkFlag('createSchema', createSchema),
    traceMax: checkCount('traceMax', traceMax, 0, MAX_INT),
    lockTimeout: checkCount('lockTimeout', lockTimeout, 0, MAX_INT),
    groupCommit: checkFlag('groupCommit', groupCommit),
    timeout: checkCount('timeout', options.timeout ?? 30_000, 1, MAX_INT),
  }
}
