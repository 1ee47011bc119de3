import { commitMutants } from './commits.js'
import { cursorMutants } from './cursors.js'
import { dedupeMutants } from './dedupe.js'
import { definitionMutants } from './definitions.js'
import { prefixSearchMutants } from './ids-with-prefix.js'
import { lifecycleMutants } from './lifecycle.js'
import { listingMutants } from './listing.js'
import type { Mutant } from './mutant.js'
import { payloadMutants } from './payloads.js'
import { pictureMutants } from './picture.js'
import { capabilityMutants, prefixMutants } from './prefixes-capabilities.js'
import { purgeMutants } from './purge.js'
import { queueMutants } from './queues.js'
import { timerMutants } from './timers.js'
import { traceMutants } from './trace.js'
import { transactionMutants } from './transactions.js'
import { argumentMutants, idMutants, valueMutants } from './values.js'

/** Every wrong store. */
export const mutants: readonly Mutant[] = [
  ...commitMutants,
  ...queueMutants,
  ...dedupeMutants,
  ...timerMutants,
  ...traceMutants,
  ...purgeMutants,
  ...listingMutants,
  ...cursorMutants,
  ...prefixSearchMutants,
  ...definitionMutants,
  ...valueMutants,
  ...idMutants,
  ...pictureMutants,
  ...argumentMutants,
  ...lifecycleMutants,
  ...payloadMutants,
  ...transactionMutants,
  ...prefixMutants,
  ...capabilityMutants,
]
