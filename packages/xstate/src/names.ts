/** What the actors and the delayed events of a machine are called in its execution. */
import { type Execution, InvalidArgument, MAX_KEY_BYTES } from '@harel/store-base'
import { RESERVED_PREFIX } from './reserved.js'

/** How often something of this name has been numbered; kept in the record. */
export function count(execution: Execution, name: string): number {
  const { invokeSeq } = execution
  const n = (Object.hasOwn(invokeSeq, name) ? (invokeSeq[name] ?? 0) : 0) + 1
  execution.invokeSeq = { ...invokeSeq, [name]: n }
  return n
}

/** A name for what its machine has not named, which it cannot give to anything else. */
export function unnamed(execution: Execution, kind: 'actor' | 'timer'): string {
  const name = `${RESERVED_PREFIX}${kind}`
  return `${name}.${count(execution, name)}`
}

/** @throws InvalidArgument for what belongs to this package, and for the one name that no member of an object can have */
export function checkName({ id }: Execution, kind: 'actor' | 'timer', name: string): string {
  if (name !== '__proto__' && !name.startsWith(RESERVED_PREFIX)) return name
  const allowed = `a name other than __proto__ that does not begin with ${RESERVED_PREFIX}`
  throw new InvalidArgument(`the id of the ${kind} of ${JSON.stringify(id)}`, name, allowed)
}

/** The id of the execution of an actor. @throws InvalidArgument where it is too long for one */
export function checkChildId({ id }: Execution, actorId: string, childId: string): string {
  const bytes = Buffer.byteLength(childId)
  if (bytes <= MAX_KEY_BYTES) return childId
  const allowed = `so short that it and the id of its parent have at most ${MAX_KEY_BYTES} UTF-8 bytes together`
  const argument = `the id of the actor ${JSON.stringify(actorId.slice(0, 60))} of ${JSON.stringify(id.slice(0, 60))}`
  throw new InvalidArgument(argument, childId, allowed, `${bytes}`)
}
