import { describe, isPlain, kindOf } from './describe.js'
import { InvalidArgument, StoreError } from './errors.js'
import { throwingPlace } from './json.js'
import { STATUSES, type Status, type TimerOp } from './records.js'

/** The longest key, in UTF-8 bytes. */
export const MAX_KEY_BYTES = 1024

const KEY = `a string of 1 to ${MAX_KEY_BYTES} UTF-8 bytes without NUL and without lone surrogates`
const utf8 = new TextEncoder()

export const utf8Length = (text: string): number => utf8.encode(text).length

/**
 * Refuses what cannot be a key (an execution or child id, event id, timer path, definition id or version).
 *
 * @returns the key
 */
export function checkKey(argument: string, value: unknown): string {
  if (!isKey(value)) throw new InvalidArgument(argument, value, KEY)
  return value
}

/** Whether it can be an id, an event id, a timer path, or an id or version of a definition. */
export const isKey = (value: unknown): value is string =>
  typeof value === 'string' &&
  value !== '' &&
  !value.includes('\0') &&
  value.isWellFormed() &&
  // A UTF-16 unit takes at most three bytes.
  (value.length * 3 <= MAX_KEY_BYTES || (value.length <= MAX_KEY_BYTES && utf8Length(value) <= MAX_KEY_BYTES))

/** As `checkKey`, for what may be empty: the root path and the prefix of ids. */
export const checkKeyOrEmpty = (argument: string, value: unknown): string =>
  value === '' ? '' : checkKey(argument, value)

/** As `checkKey`, for what may be null: the target of an event, the parent of an execution. */
export const checkKeyOrNull = (argument: string, value: unknown): string | null =>
  value === null ? null : checkKey(argument, value)

export function checkInteger(argument: string, value: unknown, least: number, most: number): number {
  if (typeof value !== 'number' || !Number.isInteger(value) || value < least || value > most) {
    throw new InvalidArgument(argument, value, `an integer from ${least} to ${most}`)
  }
  return value
}

/** Refuses what is no whole number from `least` on, up to `most` where that is given. */
export function checkCount(argument: string, value: unknown, least = 0, most = Number.POSITIVE_INFINITY): number {
  if (typeof value !== 'number' || !Number.isInteger(value) || value < least || value > most) {
    const upTo = Number.isFinite(most) ? ` to ${most}` : ''
    throw new InvalidArgument(argument, value, `an integer from ${least}${upTo}`)
  }
  return value
}

export function checkFlag(argument: string, value: unknown): boolean {
  if (typeof value !== 'boolean') throw new InvalidArgument(argument, value, 'true or false')
  return value
}

/** Refuses what is there but no function. */
export function checkFunction<T>(argument: string, value: T): T {
  if (value === undefined || typeof value === 'function') return value
  throw new InvalidArgument(argument, value, 'a function')
}

/** Refuses what is no version that a commit can go on from. */
export const checkVersion = (argument: string, value: unknown): number =>
  checkInteger(argument, value, 0, Number.MAX_SAFE_INTEGER - 1)

/** Refuses what is no time in epoch seconds. */
export function checkTime(argument: string, value: unknown): number {
  if (typeof value !== 'number' || !Number.isFinite(value)) {
    throw new InvalidArgument(argument, value, 'a finite number of epoch seconds')
  }
  return value
}

export const isStatus = (value: unknown): value is Status => STATUSES.includes(value as Status)

export function checkStatus(argument: string, value: unknown): Status {
  if (!isStatus(value)) throw new InvalidArgument(argument, value, `one of ${STATUSES.join(', ')}`)
  return value
}

/**
 * What `read` makes of the argument. Getters and proxies may throw anything: it becomes the cause of an error that says
 * where in the argument they stand.
 *
 * @throws InvalidArgument
 */
export function readArgument<T, R>(argument: string, value: T, read: (value: T) => R): R {
  try {
    return read(value)
  } catch (error) {
    if (error instanceof StoreError) throw error
    const { path, cause } = throwingPlace(value, argument) ?? { path: argument, cause: error }
    throw new InvalidArgument(path, value, 'readable', 'what throws when it is read; the cause says why', cause)
  }
}

/** Refuses what is no object with members (arrays and null are none). */
export function checkObject(argument: string, value: unknown): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new InvalidArgument(argument, value, 'an object', kindOf(value))
  }
  return value as Record<string, unknown>
}

/** Refuses what is no plain object: the members of a Map or of a class instance may stand where nobody looks. */
export function checkPlain(argument: string, value: unknown): Record<string, unknown> {
  const object = checkObject(argument, value)
  if (!isPlain(object)) throw new InvalidArgument(argument, object, 'a plain object')
  return object
}

/**
 * Refuses what is no plain object, and one with a member that nobody would look at: a misspelt filter must not match
 * everything.
 *
 * @param allowed the names of the members; any when absent
 * @returns a copy, for which each member was read once
 */
export function checkMembers(argument: string, value: unknown, allowed?: readonly string[]): Record<string, unknown> {
  return readArgument(argument, value, () => {
    const object = checkPlain(argument, value)
    // `__proto__` among them becomes a member like any other.
    return Object.fromEntries(
      Object.getOwnPropertyNames(object).map((key) => {
        if (allowed?.includes(key) === false) {
          const others = `a plain object with no other members than ${allowed.join(', ')}`
          throw new InvalidArgument(argument, object, `${others} (has ${describe(key)})`)
        }
        return [key, object[key]]
      }),
    )
  })
}

/** A copy of the array, in which holes have become members that are undefined: `map` would pass over holes. */
export function checkArray(argument: string, value: unknown): unknown[] {
  if (!Array.isArray(value)) throw new InvalidArgument(argument, value, 'an array', kindOf(value))
  return [...value]
}

/** The seqs to acknowledge. Any integer is allowed: unknown ones are no error. */
export function checkSeqs(argument: string, value: unknown): number[] {
  if (!Array.isArray(value)) return [checkInteger(argument, value, 0, Number.MAX_SAFE_INTEGER)]
  return checkArray(argument, value).map((seq, index) =>
    checkInteger(`${argument}[${index}]`, seq, 0, Number.MAX_SAFE_INTEGER),
  )
}

/** The timers of a commit with the last entry per path, as copies. */
export function foldTimers(argument: string, value: unknown): TimerOp[] {
  const last = new Map<string, TimerOp>()
  for (const [index, op] of checkArray(argument, value).entries()) {
    const where = `${argument}[${index}]`
    const { action, path, fireAt } = checkObject(where, op)
    const key = checkKey(`${where}.path`, path)
    if (action === 'cancel') last.set(key, { action, path: key })
    else if (action === 'schedule') last.set(key, { action, path: key, fireAt: checkTime(`${where}.fireAt`, fireAt) })
    else throw new InvalidArgument(`${where}.action`, action, "'schedule' or 'cancel'")
  }
  return [...last.values()]
}
