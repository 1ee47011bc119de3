export {
  checkCount,
  checkFlag,
  checkFunction,
  checkKey,
  checkMembers,
  checkObject,
  checkTime,
  isKey,
  MAX_KEY_BYTES,
} from './arguments.js'
export { AsyncStore, asyncStore } from './async-store.js'
export type * from './backend.js'
export { CheckedStore, checkStoreOptions, type StoreOptions, SyncCheckedStore } from './checked-store.js'
export { Coalescer, type CoalescerOptions } from './coalescer.js'
export { copyExecution } from './copy-execution.js'
export { decodeKey, decodeOffset, encodeKey, encodeOffset } from './cursor.js'
export { decodeEvent, decodeExecution, decodeJson, decodeObject } from './decode.js'
export { describe } from './describe.js'
export { encodeEvent, encodeExecution, encodeJson } from './encode.js'
export * from './errors.js'
export { executions, outbox, spawns, timers } from './iterate.js'
export { validateSerializable } from './json.js'
export { keepVersions } from './keep-versions.js'
export { lazyBackend } from './lazy-backend.js'
export {
  type CheckedListQuery,
  compareBytes,
  type ListFilter,
  likePrefix,
  listingPage,
  MAX_LIMIT,
  matches,
  prefixEnd,
} from './listing.js'
export { Names } from './names.js'
export type { Numbers, OnWarning, ReadOptions } from './numbers.js'
export { observeStore } from './observe-store.js'
export {
  type PreparedCommit,
  type PreparedEmit,
  type PreparedSpawn,
  prepareCommit,
  type SummaryColumns,
  textLength,
} from './prepare.js'
export type * from './protocol.js'
export type { CheckedQueuePage, CheckedTimerPage } from './queues.js'
export * from './records.js'
export { summaryOfPayload } from './rows.js'
export { Sequence } from './sequence.js'
export { MAX_DELAY, TimeLimit } from './time-limit.js'
