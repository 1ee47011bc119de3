import type { Contract } from '../contract.js'
import { commitContract } from './commit.js'
import { dedupeContract } from './dedupe.js'
import { outboxContract } from './outbox.js'
import { spawnContract } from './spawns.js'
import { timerContract } from './timers.js'
import { traceContract } from './trace.js'

export { assertCommit } from './commit.js'
export { assertDedupe } from './dedupe.js'
export { assertOutbox } from './outbox.js'
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
]
