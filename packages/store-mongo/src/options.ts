import { checkStoreOptions, InvalidArgument, Names, type StoreOptions } from '@harel/store-base'

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

const checkCount = (argument: string, value: unknown, least: number): number => {
  if (typeof value !== 'number' || !Number.isInteger(value) || value < least || value > 2 ** 31 - 1) {
    throw new InvalidArgument(argument, value, `an integer from ${least} to 2147483647`)
  }
  return value
}

/** @throws InvalidPrefix, InvalidArgument */
export function checkOptions(options: MongoOptions): Settings {
  checkStoreOptions(options, ['prefix', 'createIndexes', 'traceMax', 'dedupe'])
  const { prefix = 'harel', createIndexes = true, traceMax = 200, dedupe = 10_000 } = options
  Names(prefix)
  if (typeof createIndexes !== 'boolean') throw new InvalidArgument('createIndexes', createIndexes, 'true or false')
  return {
    prefix,
    createIndexes,
    traceMax: checkCount('traceMax', traceMax, 0),
    dedupe: checkCount('dedupe', dedupe, 1),
  }
}
