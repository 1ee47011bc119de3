import type { Contract } from '../contract.js'
import { commitContract } from './commit.js'
import { outboxContract } from './outbox.js'

export { assertCommit } from './commit.js'
export { assertOutbox } from './outbox.js'

/** All contracts, in the order in which they are run. */
export const contracts: readonly Contract[] = [commitContract, outboxContract]
