import { checkCount, checkFlag, checkStoreOptions, Names, type StoreOptions } from '@harel/store-base'

export interface RedisOptions extends StoreOptions {
  /** Before the names of the keys. Default: `harel`. */
  prefix?: string
  /**
   * Put the prefix in braces, so that all keys are in one slot of a Redis Cluster. Python harel does not find keys named
   * so. Default: false.
   */
  hashTag?: boolean
  /** How many steps of a trace are kept; 0: all. Default: 200. */
  traceMax?: number
}

export type Settings = Required<Omit<RedisOptions, 'onWarning' | 'numbers'>>

/** @throws InvalidPrefix, InvalidArgument */
export function checkOptions(options: RedisOptions): Settings {
  checkStoreOptions(options, ['prefix', 'hashTag', 'traceMax'])
  const { prefix = 'harel', hashTag = false, traceMax = 200 } = options
  Names(prefix)
  return { prefix, hashTag: checkFlag('hashTag', hashTag), traceMax: checkCount('traceMax', traceMax) }
}
