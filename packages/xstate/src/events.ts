/** Which events may be sent to a machine from outside, and which it has transitions for. */
import type { AnyStateMachine } from 'xstate'
import { statesOf } from './machines.js'
import { RESERVED_PREFIX } from './reserved.js'

/** Types with this beginning are XState's own: results, errors and steps of actors, and what was delayed. */
const INTERNAL_PREFIX = 'xstate.'

/** Not what others tell machines in the name of XState or of this package. */
export const isFromOutside = (type: string): boolean =>
  !type.startsWith(INTERNAL_PREFIX) && !type.startsWith(RESERVED_PREFIX)

/** What `isFromOutside` asks of a type, as messages say it. */
export const OUTSIDE = `that begins neither with ${INTERNAL_PREFIX} nor with ${RESERVED_PREFIX}`

const descriptors = new WeakMap<AnyStateMachine, readonly string[]>()

/** What the transitions of a machine are for, in any of its states; those that do nothing included. */
export function knownEvents(machine: AnyStateMachine): readonly string[] {
  const known = descriptors.get(machine)
  if (known !== undefined) return known
  const found = [...statesOf(machine).values()].flatMap(({ transitions }) => [...transitions.keys()])
  const distinct = [...new Set(found.filter(isFromOutside))]
  descriptors.set(machine, distinct)
  return distinct
}

/** As XState matches them: `*` is any event, `mouse.*` is `mouse` and whatever begins with `mouse.`. */
export const matches = (descriptor: string, type: string): boolean =>
  descriptor === type ||
  descriptor === '*' ||
  (descriptor.endsWith('.*') && `${type}.`.startsWith(descriptor.slice(0, -1)))
