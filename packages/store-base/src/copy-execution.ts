import { copyRounded } from './numbers.js'
import type { Execution } from './records.js'
import { copyUnknownFields } from './unknown-fields.js'

/**
 * A copy whose fields may be given new values, for whoever must leave the loaded object as it is. It is committed as
 * that one would be, whatever its context is then: with the fields that only another program knows, and not at all if
 * it was loaded with a number that JavaScript does not hold exactly.
 */
export function copyExecution(execution: Execution): Execution {
  const copy = { ...execution }
  copyUnknownFields(execution, copy)
  copyRounded(execution, copy)
  return copy
}
