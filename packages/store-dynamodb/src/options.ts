import { checkCount, checkFlag, checkStoreOptions, Names, type StoreOptions } from '@harel/store-base'

export interface DynamoOptions extends StoreOptions {
  /** Before the names of the tables. Default: `harel`. */
  prefix?: string
  /** Create the tables that are missing, and wait until they can be used. Default: true. */
  createSchema?: boolean
  /** How many steps of a trace are kept; 0: all. Default: 200. */
  traceMax?: number
  /**
   * Find due timers and list by global secondary indexes instead of scans. Only for tables that nobody else writes:
   * Python harel does not feed them. Default: false.
   */
  gsi?: boolean
}

export type Settings = Required<Omit<DynamoOptions, 'onWarning' | 'numbers'>>

/** @throws InvalidPrefix, InvalidArgument */
export function checkOptions(options: DynamoOptions): Settings {
  checkStoreOptions(options, ['prefix', 'createSchema', 'traceMax', 'gsi'])
  const { prefix = 'harel', createSchema = true, traceMax = 200, gsi = false } = options
  Names(prefix)
  return {
    prefix,
    createSchema: checkFlag('createSchema', createSchema),
    traceMax: checkCount('traceMax', traceMax),
    gsi: checkFlag('gsi', gsi),
  }
}
