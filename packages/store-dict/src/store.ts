import {
  AsyncStore,
  checkCount,
  checkFlag,
  checkStoreOptions,
  type StoreOptions,
  SyncCheckedStore,
} from '@harel/store-base'
import { DictBackend } from './backend.js'

export interface DictStoreOptions extends StoreOptions {
  /**
   * Keep copies, as every other store does: nothing is shared with the caller's objects. Use this to test other code.
   * Default: false, the store holds the very object it was given and `load` returns it.
   */
  copy?: boolean
  /** How many steps of a trace are kept; 0: all. Default: 200. */
  traceMax?: number
}

/**
 * Keeps executions in memory, for as long as the object lives.
 *
 * Without `copy`, only executions are shared with the caller; events, contexts of spawns, trace steps and definitions
 * are copied. Listings show what was last committed, not what the shared object holds now.
 */
export class DictStore extends SyncCheckedStore {
  constructor(options: DictStoreOptions = {}) {
    checkStoreOptions(options, ['copy', 'traceMax'])
    const { copy = false, traceMax = 200 } = options
    checkFlag('copy', copy)
    checkCount('traceMax', traceMax)
    const capabilities = {
      durable: false,
      shared: false,
      identity: !copy,
      ordered: true,
      paging: 'offset',
      maxCommitWrites: Number.POSITIVE_INFINITY,
      maxExecutionBytes: Number.POSITIVE_INFINITY,
      dedupe: 'forever',
      atomicPurge: true,
      transactions: false,
    } as const
    super(new DictBackend(capabilities, traceMax), options)
  }
}

/** `DictStore` behind promises. */
export class AsyncDictStore extends AsyncStore {
  constructor(options?: DictStoreOptions) {
    super(new DictStore(options))
  }
}
