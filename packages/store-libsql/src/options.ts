import { checkCount, checkFlag, checkStoreOptions, MAX_DELAY, Names, type StoreOptions } from '@harel/store-base'

export interface LibsqlOptions extends StoreOptions {
  /** Before the names of the tables. Default: `harel`. */
  prefix?: string
  /** Create what is missing. Default: true; false: nothing is created, and missing tables are an error. */
  createSchema?: boolean
  /** How many steps of a trace are kept; 0: all. Default: 200. */
  traceMax?: number
  /** Write concurrent commits together. Default: true. */
  groupCommit?: boolean
  /** How long to wait for other writers of a file, in milliseconds. Default: 5000. */
  lockTimeout?: number
  /** How long to wait for a reply of a server, in milliseconds. Default: 10000. */
  timeout?: number
}

export type Settings = Required<Omit<LibsqlOptions, 'onWarning' | 'numbers'>>

/** @throws InvalidPrefix, InvalidArgument */
export function checkOptions(options: LibsqlOptions): Settings {
  checkStoreOptions(options, ['prefix', 'createSchema', 'traceMax', 'groupCommit', 'lockTimeout', 'timeout'])
  const { prefix = 'harel', createSchema = true, traceMax = 200, groupCommit = true, lockTimeout = 5000 } = options
  Names(prefix)
  return {
    prefix,
    createSchema: checkFlag('createSchema', createSchema),
    traceMax: checkCount('traceMax', traceMax),
    groupCommit: checkFlag('groupCommit', groupCommit),
    lockTimeout: checkCount('lockTimeout', lockTimeout),
    timeout: checkCount('timeout', options.timeout ?? 10_000, 1, MAX_DELAY),
  }
}
