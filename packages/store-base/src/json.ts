import { bracketed } from './describe.js'
import { NotSerializable } from './errors.js'
import type { Numbers } from './numbers.js'
import type { JsonValue } from './records.js'

/** How deep Python nests inside one stored text, the outermost container included: deeper texts cannot be read back. */
export const MAX_NESTING = 200

/** Reports something about a value at a path below it. */
interface Problem {
  reason: string
  /** From the inside out. */
  path: (string | number)[]
  cause?: unknown
}

const problem = (reason: string, cause?: unknown): Problem => ({ reason, path: [], cause })

const isPlain = (value: object): boolean => {
  const prototype: object | null = Object.getPrototypeOf(value)
  return prototype === null || prototype === Object.prototype || isForeignObjectPrototype(prototype)
}

/** Whether it is the `Object.prototype` of another realm, which an object literal made there has. */
const isForeignObjectPrototype = (prototype: object): boolean =>
  Object.getPrototypeOf(prototype) === null && Object.hasOwn(prototype, 'isPrototypeOf')

function find(value: unknown, depth: number, numbers: Numbers): Problem | undefined {
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return undefined
    case 'number':
      return Number.isFinite(value) || numbers === 'lossy'
        ? undefined
        : problem(`is ${value}, which JSON has no text for`)
    case 'object':
      break
    case 'undefined':
      return problem('is undefined, which JSON has no text for')
    default:
      return problem(`is a ${typeof value}, which JSON has no text for`)
  }
  if (value === null) return undefined
  if (depth === 0) return problem(`is nested deeper than ${MAX_NESTING - 1} levels, or contains itself`)
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index++) {
      const found = find(value[index], depth - 1, numbers)
      if (found !== undefined) return at(found, index)
    }
    return undefined
  }
  if (!isPlain(value)) {
    return problem(`is ${kindOf(value)}, which would not come back as one; store plain data instead`)
  }
  if (Object.getOwnPropertySymbols(value).length > 0) return problem('has a member keyed by a symbol, which JSON drops')
  for (const key of Object.keys(value)) {
    let member: unknown
    try {
      member = (value as Record<string, unknown>)[key]
    } catch (cause) {
      return at(problem('has a getter that throws', cause), key)
    }
    if (member === undefined) continue
    const found = find(member, depth - 1, numbers)
    if (found !== undefined) return at(found, key)
  }
  return undefined
}

const at = (found: Problem, key: string | number): Problem => {
  found.path.push(key)
  return found
}

const kindOf = (value: object): string => {
  const name: unknown = value.constructor?.name
  return typeof name === 'string' && name !== '' ? `an object of class ${name.slice(0, 60)}` : 'no plain object'
}

const identifier = /^[A-Za-z_$][\w$]*$/

const pathText = (root: string, insideOut: readonly (string | number)[]): string => {
  let text = root
  for (const key of insideOut.toReversed()) {
    if (typeof key === 'number') text += `[${key}]`
    else text += identifier.test(key) ? `.${key}` : bracketed(key)
    if (text.length > 300) return `${text.slice(0, 300)}…`
  }
  return text
}

/**
 * Refuses what JSON does not carry exactly, with the path to it: NaN, Infinity, bigint, function, symbol, `undefined`
 * in an array, any object that is neither plain nor an array (Map, Date, class instances), and nesting deeper than
 * 199 levels, which cyclic values are; members keyed by a symbol and getters that throw. Members that are `undefined`
 * are dropped by JSON, and -0 becomes 0. Lone surrogates are refused by `toJson`.
 *
 * @param name how messages call the value
 * @param options `enclosing`: how many containers the value will stand in; `numbers`: `lossy` lets NaN and Infinity
 *   pass, which become null
 */
export function validateSerializable(
  value: unknown,
  name: string,
  options: { enclosing?: number; numbers?: Numbers } = {},
): asserts value is JsonValue {
  const found = find(value, MAX_NESTING - (options.enclosing ?? 1), options.numbers ?? 'exact')
  if (found !== undefined) throw new NotSerializable(pathText(name, found.path), found.reason, found.cause)
}

/**
 * The JSON text of a value that `validateSerializable` has passed.
 *
 * A lone surrogate is refused: JSON can escape it, but neither Python nor most databases can read it back.
 */
export function toJson(value: unknown, name: string): string {
  const text = JSON.stringify(value)
  if (hasLoneSurrogate(text)) throw new NotSerializable(surrogatePath(value, name), 'has a lone surrogate')
  return text
}

// JSON.stringify escapes lone surrogates and nothing else above U+001F.
const maybeSurrogate = /\\u[dD][89a-fA-F]/
const escapedSurrogate =
  /\\(?:u[dD][89abAB][0-9a-fA-F]{2}(?:\\u[dD][c-fC-F][0-9a-fA-F]{2})?|u[dD][c-fC-F][0-9a-fA-F]{2}|.)/gs

/** Whether a JSON text holds half of a surrogate pair, escaped. Unescaped halves cannot stand in UTF-8. */
export function hasLoneSurrogate(text: string): boolean {
  if (!maybeSurrogate.test(text)) return false
  for (const [sequence] of text.matchAll(escapedSurrogate)) {
    if (sequence.length === 6 && maybeSurrogate.test(sequence)) return true
  }
  return false
}

function surrogatePath(value: unknown, name: string): string {
  const search = (inner: unknown): Problem | undefined => {
    if (typeof inner === 'string') return inner.isWellFormed() ? undefined : problem('')
    if (typeof inner !== 'object' || inner === null) return undefined
    for (const [key, member] of Object.entries(inner)) {
      if (!key.isWellFormed()) return at(problem(''), key.toWellFormed())
      const found = search(member)
      if (found !== undefined) return at(found, Array.isArray(inner) ? Number(key) : key)
    }
    return undefined
  }
  return pathText(name, search(value)?.path ?? [])
}

/** A parsed text, and the first number in it that a JavaScript number does not hold exactly. */
export interface Parsed {
  value: unknown
  lossy: string | undefined
}

const bareNumber = /"(?:[^"\\]|\\.)*"|-?(?:NaN|Infinity)|-?\d[\d.eE+-]*/gs
// Only where a value can begin, so that hexadecimal ids do not count.
const longNumber = /[:,[]\s*-?(?:\d{16}|\d[\d.]*[eE]\+?\d{3}|NaN|Infinity)/

/**
 * Parses JSON as Python does: bare `NaN`, `Infinity` and `-Infinity` are numbers. Throws `SyntaxError`.
 *
 * Python's integers have no bounds. One beyond 2^53 that would be written back as another number, or a number that
 * is not finite, is named in `lossy`.
 */
export function parseJson(text: string): Parsed {
  if (!longNumber.test(text)) return { value: JSON.parse(text), lossy: undefined }
  let lossy: string | undefined
  let bare = false
  for (const [token] of text.matchAll(bareNumber)) {
    if (token.startsWith('"')) continue
    const isBare = token.endsWith('N') || token.endsWith('y')
    bare ||= isBare
    if (isBare || !survives(token)) lossy ??= token.slice(0, 60)
  }
  return { value: bare ? parseBare(text) : JSON.parse(text), lossy }
}

const survives = (token: string): boolean => {
  const number = Number(token)
  if (!Number.isFinite(number)) return false
  return !/^-?\d+$/.test(token) || Number.isSafeInteger(number) || String(number) === token
}

function parseBare(text: string): unknown {
  const mark = `\u0000${crypto.randomUUID()}:`
  const quoted = text.replace(bareNumber, (token) =>
    token.endsWith('N') || token.endsWith('y') ? JSON.stringify(mark + token) : token,
  )
  return JSON.parse(quoted, (_key, value: unknown) =>
    typeof value === 'string' && value.startsWith(mark) ? Number(value.slice(mark.length)) : value,
  )
}

/** Whether containers are nested deeper than `limit` in the value. */
export function isDeeperThan(value: unknown, limit: number): boolean {
  if (typeof value !== 'object' || value === null) return false
  if (limit === 0) return true
  for (const member of Array.isArray(value) ? value : Object.values(value)) {
    if (typeof member === 'object' && member !== null && isDeeperThan(member, limit - 1)) return true
  }
  return false
}
