import { checkCount, checkFlag, checkStoreOptions, Names, type StoreOptions } from '@harel/store-base'

export interface MongoOptions extends StoreOptions {
  /** Before the names of the collections. Default: `harel`. */
  prefix?: string
  /** Create the indexes that are missing. Default: true. */
  createIndexes?: boolean
  /** How many steps of a trace are kept; 0: all, as far as the document holds them. Default: 200. */
  traceMax?: number
  /**
   * How many processed event ids an execution remembers, the newest. They stand in its document, which has at most
   * 16 MiB. Default: 10000.
   */
  dedupe?: number
}

export type Settings = Required<Omit<MongoOptions, 'onWarning' | 'numbers'>>

/** The largest `$slice`. */
const MAX_INT32 = 2 ** 31 - 1

/** @throws InvalidPrefix, InvalidArgument */
export function checkOptions(options: MongoOptions): Settings {
  checkStoreOptions(options, ['prefix', 'createIndexes', 'traceMax', 'dedupe'])
  const { prefix = 'harel', createIndexes = true, traceMax = 200, dedupe = 10_000 } = options
  Names(prefix)
  return {
    prefix,
    createIndexes: checkFlag('createIndexes', createIndexes),
    traceMax: checkCount('traceMax', traceMax, 0, MAX_INT32),
    dedupe: checkCount('dedupe', dedupe, 1, MAX_INT32),
  }
}
