import type { Contract } from '../contract.js'
import { commitContract } from './commit.js'
import { cursorContract } from './cursors.js'
import { dedupeContract } from './dedupe.js'
import { definitionContract } from './definitions.js'
import { idsWithPrefixContract } from './ids-with-prefix.js'
import { listingContract } from './listing.js'
import { outboxContract } from './outbox.js'
import { purgeContract } from './purge.js'
import { spawnContract } from './spawns.js'
import { timerContract } from './timers.js'
import { traceContract } from './trace.js'

export { assertCommit } from './commit.js'
export { assertCursors } from './cursors.js'
export { assertDedupe } from './dedupe.js'
export { assertDefinitions } from './definitions.js'
export { assertIdsWithPrefix } from './ids-with-prefix.js'
export { assertListing } from './listing.js'
export { assertOutbox } from './outbox.js'
export { assertPurge } from './purge.js'
export { assertSpawns } from './spawns.js'
export { assertTimers } from './timers.js'
export { assertTrace } from './trace.js'

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
]
