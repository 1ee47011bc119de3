import type { Contract } from '../contract.js'
import { argumentContract } from './arguments.js'
import { capabilityContract } from './capabilities.js'
import { commitContract } from './commit.js'
import { concurrencyContract } from './concurrency.js'
import { cursorContract } from './cursors.js'
import { dedupeContract } from './dedupe.js'
import { definitionContract } from './definitions.js'
import { fidelityContract } from './fidelity.js'
import { foreignRowContract } from './foreign-rows.js'
import { hostileTextContract } from './hostile-text.js'
import { idContract } from './ids.js'
import { idsWithPrefixContract } from './ids-with-prefix.js'
import { isolationContract } from './isolation.js'
import { lifecycleContract } from './lifecycle.js'
import { listingContract } from './listing.js'
import { modelContract } from './model.js'
import { outboxContract } from './outbox.js'
import { pictureContract } from './picture.js'
import { purgeContract } from './purge.js'
import { sizeContract } from './sizes.js'
import { spawnContract } from './spawns.js'
import { storedBytesContract } from './stored-bytes.js'
import { timerContract } from './timers.js'
import { traceContract } from './trace.js'
import { transactionContract } from './transactions.js'

export { assertArguments } from './arguments.js'
export { assertCapabilities } from './capabilities.js'
export { assertCommit } from './commit.js'
export { assertConcurrency } from './concurrency.js'
export { assertCursors } from './cursors.js'
export { assertDedupe } from './dedupe.js'
export { assertDefinitions } from './definitions.js'
export { assertPayloadFidelity } from './fidelity.js'
export { assertForeignRows } from './foreign-rows.js'
export { assertHostileText } from './hostile-text.js'
export { assertIds } from './ids.js'
export { assertIdsWithPrefix } from './ids-with-prefix.js'
export { assertNames } from './isolation.js'
export { assertLifecycle } from './lifecycle.js'
export { assertListing } from './listing.js'
export { assertModel } from './model.js'
export { assertOutbox } from './outbox.js'
export { assertPictureAtCall } from './picture.js'
export { assertPurge } from './purge.js'
export { assertSizes } from './sizes.js'
export { assertSpawns } from './spawns.js'
export { assertStoredBytes } from './stored-bytes.js'
export { assertTimers } from './timers.js'
export { assertTrace } from './trace.js'
export { assertTransactions } from './transactions.js'

/** All contracts, in the order in which they are run. */
export const contracts: readonly Contract[] = [
  commitContract,
  outboxContract,
  spawnContract,
  dedupeContract,
  timerContract,
  traceContract,
  purgeContract,
  listingContract,
  cursorContract,
  idsWithPrefixContract,
  definitionContract,
  fidelityContract,
  sizeContract,
  idContract,
  hostileTextContract,
  pictureContract,
  argumentContract,
  lifecycleContract,
  storedBytesContract,
  foreignRowContract,
  concurrencyContract,
  transactionContract,
  isolationContract,
  capabilityContract,
  modelContract,
]
