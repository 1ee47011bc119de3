/** Checks of what `migrate` returns: what is stored wrongly would be found out only when it is needed. */
import { checkFlag, checkKey, checkObject, checkTime, InvalidArgument } from '@harel/store-base'
import type { PersistedMachine } from './snapshot.js'

const RESULT = 'the result of migrate'

/** A part of it, as messages name it. */
const at = (...path: string[]): string => [RESULT, ...path].join(' → ')

type Check = (argument: string, value: unknown) => void

const ofType =
  (type: 'string' | 'number', allowed: string): Check =>
  (argument, value) => {
    if (typeof value !== type || Number.isNaN(value)) throw new InvalidArgument(argument, value, allowed)
  }

const text = ofType('string', 'a string')

const optional =
  (check: Check): Check =>
  (argument, value) => {
    if (value !== undefined) check(argument, value)
  }

/** The members of each entry. */
const records =
  (checks: { readonly [member: string]: Check }) =>
  (part: string, value: unknown): void => {
    for (const [name, entry] of Object.entries(checkObject(at(part), value))) {
      const members = checkObject(at(part, name), entry)
      for (const [member, check] of Object.entries(checks)) check(at(part, name, member), members[member])
    }
  }

const checkChildren = records({
  id: checkKey,
  src: text,
  systemId: optional(text),
  sync: optional(checkFlag),
  finished: optional(checkFlag),
})
const checkTimers = records({ at: checkTime, type: text, data: checkObject, to: optional(checkKey) })

function checkHistory(history: unknown): void {
  for (const [node, ids] of Object.entries(checkObject(at('history'), history))) {
    if (Array.isArray(ids) && ids.every((id) => typeof id === 'string')) continue
    throw new InvalidArgument(at('history', node), ids, 'an array of ids of states')
  }
}

/** As XState writes it. */
function checkValue(argument: string, value: unknown): void {
  if (typeof value === 'string' && value !== '') return
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new InvalidArgument(argument, value, 'the name of a state, or an object with what is active in each state')
  }
  for (const [state, inner] of Object.entries(value)) checkValue(`${argument} → ${state}`, inner)
}

/** @throws InvalidArgument with the part that is wrong, what it is and what is allowed */
export function checkMigrated(moved: PersistedMachine, before: PersistedMachine): void {
  const { value, context, children, timers, history, actorId, sync, suspendedBy, cancelling, command } = checkObject(
    RESULT,
    moved,
  )
  if (before.value !== undefined || value !== undefined) checkValue(at('value'), value)
  checkObject(at('context'), context)
  checkChildren('children', children)
  checkTimers('timers', timers)
  checkHistory(history)
  optional(text)(at('actorId'), actorId)
  optional(checkFlag)(at('sync'), sync)
  optional(checkFlag)(at('cancelling'), cancelling)
  const number = ofType('number', 'a number')
  optional(number)(at('command'), command)
  if (suspendedBy !== null) optional(number)(at('suspendedBy'), suspendedBy)
}
