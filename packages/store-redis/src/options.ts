import { checkCount, checkFlag, checkStoreOptions, Names, type StoreOptions } from '@harel/store-base'

export interface RedisOptions extends StoreOptions {
  /** Before the names of the keys. Default: `harel`. */
  prefix?: string
  /**
   * Put the prefix in braces, so that all keys are in one slot of a Redis Cluster. Python harel does not find keys named
   * so. Default: false.
   */
  hashTag?: boolean
  /**
   * List by status, definition and root through an index instead of a look at every execution. The first filtered listing
   * builds it, and from then on all stores of the prefix keep it. Only where no other program writes: Python harel does
   * not feed it. Default: false.
   */
  filterIndex?: boolean
  /** How many steps of a trace are kept; 0: all. Default: 200. */
  traceMax?: number
}

export type Settings = Required<Omit<RedisOptions, 'onWarning' | 'numbers'>>

/** @throws InvalidPrefix, InvalidArgument */
export function checkOptions(options: RedisOptions): Settings {
  checkStoreOptions(options, ['prefix', 'hashTag', 'filterIndex', 'traceMax'])
  const { prefix = 'harel', hashTag = false, filterIndex = false, traceMax = 200 } = options
  Names(prefix)
  return {
    prefix,
    hashTag: checkFlag('hashTag', hashTag),
    filterIndex: checkFlag('filterIndex', filterIndex),
    traceMax: checkCount('traceMax', traceMax),
  }
}
