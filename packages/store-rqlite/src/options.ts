import {
  checkCount,
  checkFlag,
  checkStoreOptions,
  InvalidArgument,
  MAX_DELAY,
  Names,
  type StoreOptions,
} from '@harel/store-base'
import type { Credentials } from './hosts.js'

/**
 * Both see every acknowledged write. `strong`: a read is an entry of the Raft log, as a write is. `linearizable`: the
 * leader asks its followers whether it still leads; from rqlite 8.33 on.
 */
export type ReadLevel = 'strong' | 'linearizable'

export interface RqliteOptions extends StoreOptions, Credentials {
  /** Before the names of the tables. Default: `harel`. */
  prefix?: string
  /** Create what is missing. Default: true; false: nothing is created, and missing tables are an error. */
  createSchema?: boolean
  /** How many steps of a trace are kept; 0: all. Default: 200. */
  traceMax?: number
  /** Write concurrent commits in one request. Default: true. */
  groupCommit?: boolean
  /** The consistency of reads. Default: `strong`. */
  level?: ReadLevel
  /** How long to wait for a reply, in milliseconds. Default: 10000. */
  timeout?: number
  /** How long to look for a node that takes requests, in milliseconds. Default: 10000. */
  failoverTimeout?: number
}

export type Settings = Required<Omit<RqliteOptions, keyof StoreOptions | keyof Credentials>>

/** @throws InvalidPrefix, InvalidArgument */
export function checkOptions(options: RqliteOptions): Settings {
  checkStoreOptions(options, [
    'prefix',
    'createSchema',
    'traceMax',
    'groupCommit',
    'level',
    'timeout',
    'failoverTimeout',
    'username',
    'password',
  ])
  const { prefix = 'harel', createSchema = true, traceMax = 200, groupCommit = true, level = 'strong' } = options
  Names(prefix)
  if (level !== 'strong' && level !== 'linearizable') {
    throw new InvalidArgument('level', level, "'strong' or 'linearizable'")
  }
  return {
    prefix,
    createSchema: checkFlag('createSchema', createSchema),
    traceMax: checkCount('traceMax', traceMax),
    groupCommit: checkFlag('groupCommit', groupCommit),
    level,
    timeout: checkCount('timeout', options.timeout ?? 10_000, 1, MAX_DELAY),
    failoverTimeout: checkCount('failoverTimeout', options.failoverTimeout ?? 10_000),
  }
}
